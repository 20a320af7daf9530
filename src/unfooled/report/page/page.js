"use strict";
// The examples arrive packed, so that the page above is drawn first. Texts are only ever set as text.
(async () => {
  const PAGE = 50;
  const $ = (id) => document.getElementById(id);
  const bytes = Uint8Array.from(atob($("data").textContent.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const { rows, labels, outcomes, names } = JSON.parse(await new Response(stream).text());
  // run, key, outcome, label, before, after, p before, p after, changed, share, queries, similarity, pieces, others, note, output
  const [RUN, KEY, OUTCOME, LABEL, BEFORE, AFTER, P0, P1, CHANGED, SHARE, QUERIES, SIMILARITY, PIECES, OTHERS, NOTE, OUTPUT] = Array(16).keys();
  const found = rows.map((row) =>
    [[...row[PIECES], ...row[OUTPUT]].map((piece) => (typeof piece === "string" ? piece : piece[1])).join(" "), row[OTHERS].flat().join(" "), row[NOTE], `#${row[KEY]}`].join("\n").toLowerCase());
  let shown = [];
  let page = 0;

  const percent = (value) => (value === null ? "–" : `${(100 * value).toFixed(1)} %`);
  const className = (index) => (index < 0 ? "abstained" : labels[index]);

  function draw(row) {
    const item = document.createElement("li");
    const facts = add(item, "p", undefined, "facts");
    add(facts, "span", outcomes[row[OUTCOME]], `outcome ${outcomes[row[OUTCOME]]}`);
    add(facts, "span", `#${row[KEY]}`);
    if (names.length > 1) add(facts, "span", names[row[RUN]]);
    if (row[P0] !== null) add(facts, "span", `true ${className(row[LABEL])}, decided ${className(row[BEFORE])} → ${className(row[AFTER])}`);
    if (row[P0] !== null) add(facts, "span", `p(true) ${percent(row[P0])} → ${percent(row[P1])}`);
    if (row[CHANGED]) add(facts, "span", `${row[CHANGED]} ${row[CHANGED] === 1 ? "word" : "words"} changed (${percent(row[SHARE])})`);
    if (row[QUERIES] !== null) add(facts, "span", `${row[QUERIES]} queries`);
    if (row[SIMILARITY] !== null) add(facts, "span", `similarity ${row[SIMILARITY].toFixed(3)}`);
    for (const [name, content] of row[OTHERS]) {
      const field = add(item, "p", undefined, "field");
      add(field, "span", `${name}: `, "name");
      field.append(content);
    }
    const diff = (parent, pieces) => {
      const field = add(parent, "p", undefined, "field");
      for (const piece of pieces) {
        if (typeof piece === "string") field.append(piece);
        else add(field, piece[0] ? "ins" : "del", piece[1]);
      }
    };
    // What a translation model reads and what it writes stand side by side.
    const place = row[OUTPUT].length ? add(item, "div", undefined, "sides") : item;
    diff(place, row[PIECES]);
    if (row[OUTPUT].length) diff(place, row[OUTPUT]);
    if (row[NOTE]) add(item, "p", row[NOTE], "note");
    return item;
  }

  function render() {
    const pages = Math.max(1, Math.ceil(shown.length / PAGE));
    page = Math.min(page, pages - 1);
    $("list").replaceChildren(...shown.slice(page * PAGE, (page + 1) * PAGE).map((index) => draw(rows[index])));
    $("list").start = page * PAGE + 1;
    $("count").textContent = `${shown.length.toLocaleString("en")} of ${rows.length.toLocaleString("en")} examples`;
    $("page").textContent = `page ${page + 1} of ${pages}`;
    $("previous").disabled = page === 0;
    $("next-page").disabled = page === pages - 1;
  }

  const SORTS = {
    changed: (row) => row[CHANGED] || Infinity,
    queries: (row) => row[QUERIES] ?? Infinity,
    similarity: (row) => (row[SIMILARITY] === null ? Infinity : -row[SIMILARITY]),
    fall: (row) => (row[P0] === null ? Infinity : row[P1] - row[P0]),
  };
  const given = (id) => ($(id) ? $(id).value : "");

  function filter() {
    const run = given("f-run"), outcome = given("f-outcome"), label = given("f-label");
    const changed = given("f-changed"), similarity = given("f-similarity");
    const words = given("f-search").toLowerCase().split(/\s+/).filter(Boolean);
    shown = [];
    rows.forEach((row, index) => {
      if (run !== "" && row[RUN] !== +run) return;
      if (outcome !== "" && row[OUTCOME] !== +outcome) return;
      if (label !== "" && row[LABEL] !== +label) return;
      if (changed !== "" && row[CHANGED] > +changed) return;
      if (similarity !== "" && !(row[SIMILARITY] !== null && row[SIMILARITY] >= +similarity)) return;
      if (!words.every((word) => found[index].includes(word))) return;
      shown.push(index);
    });
    const by = SORTS[given("f-sort")];
    if (by) shown.sort((a, b) => by(rows[a]) - by(rows[b]) || a - b);
    page = 0;
    render();
  }

  for (const id of ["f-run", "f-outcome", "f-label", "f-changed", "f-similarity", "f-sort", "f-search"]) {
    if ($(id)) $(id).addEventListener("input", filter);
  }
  const turn = (step) => { page += step; render(); $("examples").scrollIntoView(); };
  $("previous").addEventListener("click", () => turn(-1));
  $("next-page").addEventListener("click", () => turn(1));
  const first = outcomes.indexOf("success");
  if (rows.some((row) => row[OUTCOME] === first)) $("f-outcome").value = String(first);
  filter();
  document.body.dataset.ready = "true";
})();
