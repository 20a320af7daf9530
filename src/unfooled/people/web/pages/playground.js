"use strict";
// Shows an attack while it runs. Everything that comes from a text is set as text, never as markup.
(() => {
  const $ = (id) => document.getElementById(id);
  const form = $("wish");
  const proof = form.elements.proof.value;
  const labels = [...$("label-names").content.children].map((one) => one.textContent);
  const STEP = matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 90; // milliseconds a step stays readable
  const percent = (value) => `${(100 * value).toFixed(1)} %`;
  const say = (text, kind = "") => { $("state").textContent = text; $("state").className = `status ${kind}`; };
  const plural = (n, one, many) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

  class Lane {
    constructor(element) {
      this.element = element;
      this.part = (name) => element.querySelector(name);
      this.name = element.getAttribute("aria-label");
      element.querySelector(".copy").addEventListener("click", () => this.copy());
    }

    clear() {
      this.element.hidden = true;
      for (const name of [".verdict-chip", ".shown-text", ".trying", ".edits", ".note", ".tried", ".took"]) this.part(name).replaceChildren();
      this.part(".verdict-chip").className = "verdict-chip";
      this.part(".queries").textContent = "0 queries";
      this.part(".command").hidden = this.part(".legend").hidden = true;
      this.words = []; this.outcome = null; this.total = 0; this.label = null; this.edits = [];
      for (const one of this.element.querySelectorAll(".was, .now")) one.style.width = "0";
      for (const one of this.element.querySelectorAll(".bar-value")) one.textContent = "–";
    }

    show(event) {
      this.element.hidden = false;
      if (event.queries !== undefined) this.part(".queries").textContent = plural(event.queries, "query", "queries");
      if (event.command) { this.part(".command").hidden = false; this.part("pre").textContent = event.command; }
      this[event.kind]?.(event);
    }

    others(parent, others) {
      for (const [name, content] of others) { const line = add(parent, "span", undefined, "other"); add(line, "span", `${name}: `, "name"); line.append(content); }
    }

    start(event) {
      const text = this.part(".shown-text");
      text.replaceChildren();
      this.others(text, event.others);
      this.label = event.label;
      this.words = event.words.map((word, i) => { text.append(event.gaps[i]); return add(text, "span", word, "word"); });
      text.append(event.gaps.at(-1));
      this.words.push(add(text, "span", "", "word"));
      this.bars(event.probs, true);
      this.part(".verdict-chip").textContent = `decides ${labels[event.probs.indexOf(Math.max(...event.probs))]}`;
    }

    importance({ worth }) {
      const most = Math.max(1e-9, ...Object.values(worth));
      for (const [i, value] of Object.entries(worth)) {
        this.words[i]?.style.setProperty("--worth", Math.max(0, value / most).toFixed(2));
        if (this.words[i]) this.words[i].title = `worth ${value.toFixed(3)}`;
      }
      this.part(".legend").hidden = false;
    }

    tries({ tries, count }) {
      this.total += count;
      this.part(".tried").textContent = `${this.total.toLocaleString("en")} candidates tried`;
      const line = this.part(".trying");
      line.replaceChildren();
      for (const word of this.words) word.classList.remove("trying-now");
      if (!tries.length) return;
      this.words[tries[0][0]]?.classList.add("trying-now");
      add(line, "span", tries[0][2] || "insert", "tried-word");
      for (const [, , , after, p, won] of tries.slice(0, 8)) {
        const chip = add(line, "span", undefined, won ? "candidate won" : "candidate");
        add(chip, "b", after || "(deleted)");
        add(chip, "span", percent(p));
      }
    }

    accepted({ edits, probs }) {
      if (probs) this.bars(probs);
      this.list(edits);
      this.diff(edits);
    }

    // Words keep their shading; what went and what came stands in its place. The last place takes what follows the text.
    diff(edits) {
      this.words.forEach((word, i) => {
        const here = edits.filter(([position]) => position === i);
        const change = here.find(([, kind]) => kind !== "insert");
        const original = (word.dataset.original ??= word.textContent);
        word.replaceChildren();
        for (const [, kind, , after] of here) if (kind === "insert") { add(word, "ins", after); word.append(i < this.words.length - 1 ? " " : ""); }
        if (!change) { word.append(original); return; }
        add(word, "del", change[2]);
        if (change[3]) { word.append(" "); add(word, "ins", change[3]); }
      });
    }

    list(edits) {
      const list = this.part(".edits");
      edits.slice(list.children.length).forEach(([, kind, before, after]) => {
        const item = add(list, "li");
        if (kind !== "insert") add(item, "del", before);
        if (kind === "replace") item.append(" → ");
        if (kind !== "delete") add(item, "ins", after);
      });
    }

    done(event) {
      this.outcome = event.outcome;
      const text = this.part(".shown-text");
      if (this.words.length) this.diff(event.edits);
      else {
        text.replaceChildren();
        this.others(text, event.others);
        for (const [kind, piece] of event.pieces) {
          if (kind === "same") text.append(piece);
          else { add(text, kind === "gone" ? "del" : "ins", piece); if (kind === "gone") text.append(" "); }
        }
      }
      this.part(".edits").replaceChildren();
      this.list(event.edits);
      this.part(".trying").replaceChildren();
      for (const word of this.words) word.classList.remove("trying-now");
      if (event.before.length) this.bars(event.before, true);
      if (event.probs.length) this.bars(event.probs);
      this.part(".took").textContent = `${event.seconds} s`;
      const anyway = event.outcome === "skipped" && form.elements.label.value ? ". Choose “what the model says” as the class to attack its decision anyway." : "";
      this.part(".note").textContent = event.note + anyway;
      const told = {
        success: ["broken", `broken by ${plural(event.edits.length, "edit", "edits")}`], failure: ["held", "holds"],
        abstained: ["none", "abstains"], skipped: ["none", "not attacked"], error: ["none", "error"],
      }[event.outcome];
      this.verdict(told[0], told[1]);
    }

    failed({ cause, remedy }) {
      this.outcome = "error";
      this.verdict("none", "error");
      this.part(".note").textContent = [cause, remedy].filter(Boolean).join(" ");
    }

    verdict(kind, text) {
      this.part(".verdict-chip").className = `verdict-chip ${kind}`;
      this.part(".verdict-chip").textContent = text;
    }

    bars(probs, first = false) {
      const rows = [...this.element.querySelectorAll(".bar-row")];
      rows.forEach((row, i) => {
        if (first) row.querySelector(".was").style.width = `${100 * probs[i]}%`;
        row.querySelector(".now").style.width = `${100 * probs[i]}%`;
        row.querySelector(".bar-value").textContent = percent(probs[i]);
        row.classList.toggle("decided", probs[i] === Math.max(...probs));
      });
      this.part(".bars").setAttribute("aria-label", `Probabilities: ${labels.map((name, i) => `${name} ${percent(probs[i])}`).join(", ")}`);
    }

    async copy() {
      const pre = this.part("pre");
      try { await navigator.clipboard.writeText(pre.textContent); } catch {
        const range = document.createRange();
        range.selectNodeContents(pre);
        getSelection().removeAllRanges();
        getSelection().addRange(range);
        document.execCommand("copy");
      }
      this.part(".copy").textContent = "Copied";
      setTimeout(() => { this.part(".copy").textContent = "Copy"; }, 1500);
    }
  }

  const lanes = [...document.querySelectorAll(".lane")].map((element) => new Lane(element));
  let running = null; // { id, source, queue, timer }

  function finish(text, kind) {
    if (running) { running.source?.close(); clearTimeout(running.timer); }
    running = null;
    $("cancel").disabled = true;
    $("attack-it").disabled = false;
    document.body.dataset.state = kind;
    say(text, kind === "broken" ? "bad" : kind === "held" ? "good" : "");
  }

  function sum() {
    const told = lanes.map((lane) => ({ success: "broken", failure: "holds", abstained: "abstains", skipped: "was not attacked", error: "ended in an error" })[lane.outcome]);
    const kind = lanes.some((lane) => lane.outcome === "success") ? "broken" : lanes.every((lane) => lane.outcome === "failure") ? "held" : "over";
    finish(lanes.length === 1 ? `This text ${told[0] === "broken" ? "is broken" : told[0]}.` : `${lanes.map((lane, i) => `${lane.name}: ${told[i]}`).join(". ")}.`, kind);
  }

  // Steps are shown one by one, faster when many wait, so that a quick attack can still be followed.
  function play(run) {
    if (run !== running) return;
    const many = Math.max(1, Math.ceil(run.queue.length / 40));
    for (const event of run.queue.splice(0, STEP && !document.hidden ? many : run.queue.length)) {
      if (event.kind === "cancelled") { finish("Cancelled.", "cancelled"); return; }
      lanes[event.model].show(event);
    }
    if (run.queue.length) run.timer = setTimeout(play, STEP, run);
    else { run.timer = null; if (run.ended) sum(); }
  }

  async function begin() {
    if (running) return;
    const run = running = { queue: [], timer: null, ended: false };
    lanes.forEach((lane) => lane.clear());
    $("attack-it").disabled = true;
    $("cancel").disabled = false;
    document.body.dataset.state = "running";
    say("Getting the attack ready …");
    let answer;
    try {
      const response = await fetch("/attacks", { method: "POST", body: new URLSearchParams(new FormData(form)) });
      answer = response.status === 413 ? { cause: "This text is too long." } : await response.json();
    } catch { answer = { cause: "The server does not answer.", remedy: "Start it again." }; }
    if (running !== run) { if (answer.id) stop(answer.id); return; }
    if (!answer.id) { finish([answer.cause, answer.remedy].filter(Boolean).join(" "), "refused"); $("state").classList.add("bad"); return; }
    run.id = answer.id;
    run.source = new EventSource(`/attacks/${answer.id}/events`);
    run.source.onmessage = (message) => {
      if (!run.queue.length && !run.begun) { run.begun = true; say("Attacking …"); }
      run.queue.push(JSON.parse(message.data));
      if (run.timer === null) run.timer = setTimeout(play, 0, run);
    };
    run.source.addEventListener("end", () => { run.ended = true; run.source.close(); if (run.timer === null) play(run); });
    run.source.onerror = () => {
      if (running !== run || run.ended) return;
      if (run.source.readyState === EventSource.CLOSED) finish("The connection was lost. Please attack again.", "lost");
      else say("The connection was lost, trying again …", "bad");
    };
  }

  const stop = (id) => navigator.sendBeacon(`/attacks/${id}/cancel`, new URLSearchParams({ proof }));
  function cancel() {
    if (!running) return;
    if (running.id) stop(running.id);
    finish("Cancelled.", "cancelled");
  }

  form.addEventListener("submit", (event) => { event.preventDefault(); begin(); });
  $("cancel").addEventListener("click", cancel);
  addEventListener("pagehide", () => { if (running?.id) stop(running.id); });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") cancel();
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });

  if ($("pick")) {
    let asked = 0;
    const find = async () => {
      const number = ++asked;
      const answer = await (await fetch(`/texts?${new URLSearchParams({ find: $("find").value })}`)).json();
      if (number !== asked) return; // an older answer that came late
      $("found").textContent = `${plural(answer.found, "text", "texts")} found${answer.found > answer.texts.length ? `, the first ${answer.texts.length} shown` : ""}`;
      $("texts").replaceChildren(...answer.texts.map(({ content, label }) => {
        const item = document.createElement("li");
        const button = add(item, "button");
        button.type = "button";
        add(button, "span", label, "small");
        add(button, "span", Object.values(content).join(" / "));
        button.addEventListener("click", () => {
          for (const [name, value] of Object.entries(content)) form.elements[`field.${name}`].value = value;
          form.elements.label.value = label;
          toggle(false);
          $("attack-it").focus();
        });
        return item;
      }));
    };
    const toggle = (open) => { $("picker").hidden = !open; $("pick").setAttribute("aria-expanded", String(open)); if (open) { find(); $("find").focus(); } };
    $("pick").addEventListener("click", () => toggle($("picker").hidden));
    $("find").addEventListener("input", find);
    $("find").addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault(); // it would start an attack; the first text found is what is meant
      $("texts").querySelector("button")?.click();
    });
  }
  // A text of one's own has no known class: the model's decision is attacked.
  form.addEventListener("input", (event) => { if (event.target.tagName === "TEXTAREA") form.elements.label.value = ""; });
  document.body.dataset.ready = "true";
})();
