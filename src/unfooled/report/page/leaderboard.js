"use strict";
(() => {
  const table = document.getElementById("board");
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];

  // What was not measured stays below, whichever way the table is sorted.
  function sort(place, descending) {
    const number = heads[place].dataset.kind === "number";
    const by = (row) => row.cells[place].dataset.by;
    const rows = [...body.rows].sort((a, b) => {
      const [one, two] = [by(a), by(b)];
      if (one === "" || two === "") return (one === "") - (two === "");
      const order = number ? Number(one) - Number(two) : one.localeCompare(two);
      return descending ? -order : order;
    });
    body.append(...rows);
    heads.forEach((head, index) => {
      if (index === place) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
  }

  heads.forEach((head, place) => {
    head.querySelector("button").addEventListener("click", () => {
      const first = head.dataset.kind === "number" ? "descending" : "ascending";
      const now = head.getAttribute("aria-sort");
      const next = now === null ? first : now === "ascending" ? "descending" : "ascending";
      sort(place, next === "descending");
    });
  });
  document.body.dataset.ready = "true";
})();
