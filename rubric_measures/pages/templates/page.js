"use strict";
const search = document.getElementById("search");
if (search) {
  const rows = [...document.querySelectorAll(search.dataset.rows)];
  const texts = rows.map((row) => row.textContent.toLowerCase());
  search.closest("[hidden]").hidden = false;
  let waiting = 0;
  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    rows.forEach((row, place) => { row.hidden = !words.every((word) => texts[place].includes(word)); });
    const shown = rows.filter((row) => !row.hidden);
    if (words.length) for (const row of shown) {
      for (let box = row.parentElement; box; box = box.parentElement) if (box.tagName === "DETAILS") box.open = true;
    }
    document.getElementById("shown").textContent = words.length ? `${shown.length} of ${rows.length}` : "";
  };
  search.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(filter, 120); });
}
const numberOf = (text) => text.trim() === "" ? NaN : Number(text.replace("−", "-").replace(/\s?%$/, ""));
for (const head of document.querySelectorAll("thead th")) {
  const button = document.createElement("button");
  button.append(...head.childNodes);
  head.append(button);
  button.addEventListener("click", () => {
    const way = head.ariaSort === "ascending" ? -1 : 1;
    for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
    head.ariaSort = way > 0 ? "ascending" : "descending";
    const body = head.closest("table").tBodies[0], place = head.cellIndex;
    const keyed = [...body.rows].map((row) => {
      const text = row.cells[place].textContent;
      return {row, text, number: numberOf(text)};
    });
    keyed.sort((a, b) => Number.isNaN(a.number) || Number.isNaN(b.number)
      ? Number.isNaN(a.number) - Number.isNaN(b.number) || way * a.text.localeCompare(b.text)
      : way * (a.number - b.number));
    body.append(...keyed.map(({row}) => row));
  });
}
// What a link names is opened.
function openTarget() {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let box = target; box; box = box.parentElement) if (box.tagName === "DETAILS") box.open = true;
  if (target) {
    if (target.tagName === "TR") for (const box of target.querySelectorAll("details")) box.open = true;
    target.scrollIntoView();
  }
}
addEventListener("hashchange", openTarget);
openTarget();
