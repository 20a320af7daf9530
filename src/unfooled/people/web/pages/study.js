"use strict";
// Answers are saved as soon as they are chosen. Until the server has confirmed one it also lies in this browser,
// so that neither a dead server nor a closed tab loses it.
(() => {
  const signIn = document.getElementById("sign-in");
  if (signIn) {
    // A link may carry the code behind '#', which is never sent to a server by itself.
    const given = /^#code=([\w-]{4,40})$/.exec(location.hash);
    if (given) {
      history.replaceState(null, "", location.pathname);
      document.getElementById("code").value = given[1];
      signIn.submit();
    }
  }
  const form = document.getElementById("answers");
  if (!form) return;
  const { place, after, before, kept } = form.dataset;
  const status = document.getElementById("saved");
  const proof = form.elements.proof.value;
  const questions = [...form.querySelectorAll("fieldset")];

  const store = {
    read() { try { return JSON.parse(localStorage.getItem(kept)) || {}; } catch { return {}; } },
    write(all) { try { Object.keys(all).length ? localStorage.setItem(kept, JSON.stringify(all)) : localStorage.removeItem(kept); } catch { /* private windows may refuse */ } },
  };
  let open = store.read(); // place → { name: value } not confirmed yet
  let sending = null;

  // The store is shared by all tabs: only what this tab did is changed in it.
  const keep = (name, value) => { const all = store.read(); for (const one of [open, all]) (one[place] ??= {})[name] = value; store.write(all); };
  const drop = (all, number, sent) => {
    for (const name of Object.keys(sent)) if (all[number]?.[name] === sent[name]) delete all[number][name];
    if (!Object.keys(all[number] ?? {}).length) delete all[number];
  };
  const wait = (ms) => new Promise((done) => setTimeout(done, ms));
  const say = (text, kind = "") => { if (status.textContent !== text) status.textContent = text; status.className = `status ${kind}`; };

  async function send() {
    for (let failures = 0; Object.keys(open).length; ) {
      const [number, values] = Object.entries(open)[0];
      const sent = { ...values };
      try {
        const answer = await fetch(`/items/${number}`, {
          method: "POST", headers: { Accept: "application/json" }, body: new URLSearchParams({ proof, ...sent }), keepalive: true,
        });
        // Signed out, or somebody else signed in: the answer stays here until its annotator is back.
        if (answer.status === 401 || answer.status === 403) { location.assign("/"); return new Promise(() => {}); }
        if (answer.status >= 500) throw new Error("busy");
        drop(open, number, sent);
        const all = store.read();
        drop(all, number, sent);
        store.write(all);
        if (!answer.ok) { say("This answer was refused. Please reload the page.", "bad"); return; }
        const state = await answer.json();
        document.getElementById("finished").textContent = state.done;
        document.getElementById("progress").value = state.done;
        failures = 0;
      } catch {
        failures += 1;
        say("No connection. Your answer is kept here and sent as soon as the server is back.", "bad");
        await wait(Math.min(250 * 2 ** failures, 3000));
      }
    }
    say("Saved.", "good");
  }
  // One request at a time: an older answer can never arrive after a newer one.
  const save = () => (sending ??= send().finally(() => { sending = null; }));
  const saved = async () => { while (Object.keys(open).length) await save(); };

  const chosen = (set) => set.querySelector("input:checked");
  const current = () => questions.find((set) => set.contains(document.activeElement) && !chosen(set)) ?? questions.find((set) => !chosen(set)) ?? questions.at(-1);
  const mark = () => { const now = questions.find((set) => !chosen(set)); for (const set of questions) set.classList.toggle("current", set === now); };

  for (const [name, value] of Object.entries(open[place] ?? {})) {
    const radio = [...form.elements[name] ?? []].find((one) => one.value === value);
    if (radio) radio.checked = true;
  }
  mark();
  if (Object.keys(open).length) save();

  form.addEventListener("change", (event) => {
    keep(event.target.name, event.target.value);
    mark();
    save();
  });
  let leaving = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (leaving) return;
    leaving = true;
    await saved();
    location.assign(after);
  });
  document.getElementById("back").addEventListener("click", async (event) => {
    event.preventDefault();
    await saved();
    location.assign(before);
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const radio = document.activeElement?.type === "radio";
    if (/^[1-9]$/.test(event.key)) {
      const focused = radio && document.activeElement.closest("fieldset");
      const set = focused && focused === questions.at(-1) && !questions.find((one) => !chosen(one)) ? focused : current();
      const option = set.querySelector(`input[data-key="${event.key}"]`);
      if (!option) return;
      event.preventDefault();
      option.checked = true;
      option.focus();
      option.dispatchEvent(new Event("change", { bubbles: true }));
    } else if (event.key === "Enter" && !document.activeElement?.closest("a, button")) {
      event.preventDefault();
      form.requestSubmit();
    } else if (event.key === "Backspace") {
      event.preventDefault();
      document.getElementById("back").click();
    }
  });
  document.body.dataset.ready = "true";
})();
