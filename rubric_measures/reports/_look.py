"""How the report of a board looks, and what its script does: search, and opening what a link names."""

from __future__ import annotations

__all__ = ["SCRIPT", "STYLE"]

STYLE = """
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(20rem, 100%), 1fr)); gap: 0 2rem; }
.cards section { border-top: 1px solid var(--line); }
.query { border-top: 1px solid var(--line); }
.query > summary { display: flex; flex-wrap: wrap; gap: .2rem .8rem; padding: .55rem 0; align-items: baseline; }
.query > summary::-webkit-details-marker { display: none; }
.query > summary::before { content: "▸"; color: var(--note); }
.query[open] > summary::before { content: "▾"; }
.query > summary b { flex: 1 1 16rem; font-weight: 600; }
.scores { color: var(--note); font-size: .875rem; font-variant-numeric: tabular-nums; }
.head, .item > summary { display: grid; gap: 3px; align-items: stretch;
  grid-template-columns: 1fr repeat(var(--runs), minmax(1.6rem, 3.2rem)); }
.item > summary { list-style: none; padding: 1.5px 0; }
.item > summary::-webkit-details-marker { display: none; }
.item > summary > span:first-child { padding: .15rem .6rem .15rem 0; }
.head { font-size: .8rem; color: var(--note); align-items: end; }
.head .run { writing-mode: vertical-rl; transform: rotate(180deg); max-height: 9rem; overflow: hidden; padding: .2rem 0;
  overflow-wrap: normal; white-space: nowrap; text-overflow: ellipsis; justify-self: center; }
.item > summary:hover { background: var(--soft); }
.cell { display: grid; place-items: center; border-radius: 3px; min-height: 1.7rem; font-size: .875rem;
  font-variant-numeric: tabular-nums; }
.s0 { background: var(--g0); color: var(--t0); } .s1 { background: var(--g1); color: var(--t1); }
.s2 { background: var(--g2); color: var(--t2); } .s3 { background: var(--g3); color: var(--t3); }
.s4 { background: var(--g4); color: var(--t4); font-weight: 700; }
.why { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(17rem, 100%), 1fr)); gap: .2rem 1.5rem;
  margin: .2rem 0 .8rem; padding: .5rem .8rem; background: var(--soft); border-radius: .3rem; font-size: .9rem; }
.why p { margin: .15rem 0; }
.key { display: inline-block; padding: 0 .45rem; border-radius: 3px; font-size: .8rem; line-height: 1.5; }
.small { font-size: .8rem; color: var(--note); }
@media (max-width: 36rem) {
  .head > span:first-child { display: none; }
  .head, .item > summary { grid-template-columns: repeat(var(--runs), minmax(1.4rem, 1fr)); }
  .item > summary > span:first-child { grid-column: 1 / -1; }
}
"""
SCRIPT = """"use strict";
const box = document.getElementById("search"), all = [...document.querySelectorAll("details.query")];
const texts = all.map((one) => one.textContent.toLowerCase());
box.parentElement.hidden = false;
box.addEventListener("input", () => {
  const asked = box.value.toLowerCase().split(/\\s+/).filter(Boolean);
  let shown = 0;
  all.forEach((one, place) => {
    one.hidden = !asked.every((word) => texts[place].includes(word));
    shown += one.hidden ? 0 : 1;
  });
  document.getElementById("shown").textContent = asked.length ? `${shown} of ${all.length}` : "";
});
function follow() {
  const one = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let at = one; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  if (one) one.scrollIntoView();
}
addEventListener("hashchange", follow);
follow();
"""
