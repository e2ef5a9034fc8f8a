// A queue without a server: grades are kept in this browser and saved as JSON lines. Texts are only ever set as text.
"use strict";
(function () {
  const queue = JSON.parse(document.getElementById("data").dataset.queue);
  const cells = queue.cells;
  const names = ["not at all", "barely", "partly", "fairly", "well", "completely"];
  const find = function (id) {
    return document.getElementById(id);
  };
  const key = function (cell) {
    return JSON.stringify([cell.query_id, cell.doc_id, cell.item_id]);
  };
  const store = "rubric-review-queue-" + queue.id;
  let said = {};
  let kept = true;
  try {
    said = JSON.parse(localStorage.getItem(store) || "{}");
  } catch (problem) {
    kept = false;
  }
  let place = 0;

  function uid() {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    return Array.from(bytes, function (byte) {
      return byte.toString(16).padStart(2, "0");
    }).join("");
  }

  function keep() {
    try {
      localStorage.setItem(store, JSON.stringify(said));
    } catch (problem) {
      kept = false;
    }
  }

  function show() {
    const cell = cells[place];
    const mine = cell ? said[key(cell)] : undefined;
    find("doc").textContent = cell ? cell.doc_id : "";
    find("passage").textContent = cell ? cell.text : "Nothing to check.";
    find("item").textContent = cell ? cell.item || cell.item_id : "";
    find("gold").textContent = cell && cell.gold.length ? "Gold answers: " + cell.gold.join("; ") : "";
    find("query").textContent = cell ? "Query " + cell.query_id + (cell.query ? ": " + cell.query : "") : "";
    find("note").value = mine && mine.note ? mine.note : "";
    for (const button of find("grades").children) {
      const is = mine !== undefined && String(mine.grade === null ? "u" : mine.grade) === button.dataset.grade;
      button.setAttribute("aria-pressed", String(is));
    }
    const done = cells.filter(function (one) {
      return said[key(one)] !== undefined;
    }).length;
    const where = cells.length ? place + 1 + " of " + cells.length + "; " + done + " done" : "";
    find("count").textContent = where + (kept ? "" : " (this browser keeps nothing: save before you leave)");
  }

  function move(step) {
    place = Math.min(Math.max(place + step, 0), Math.max(cells.length - 1, 0));
    show();
  }

  function now() {
    return new Date().toISOString().replace(/\.\d+Z$/, "+00:00");
  }

  function grade(value) {
    const cell = cells[place];
    if (!cell) return;
    said[key(cell)] = {
      uid: uid(),
      time: now(),
      grade: value === "u" ? null : Number(value),
      note: find("note").value.trim(),
    };
    keep();
    move(1);
  }

  function save() {
    const person = find("person").value.trim();
    if (!person) {
      find("person").focus();
      find("count").textContent = "Say who you are first.";
      return;
    }
    const lines = cells
      .filter(function (cell) {
        return said[key(cell)] !== undefined;
      })
      .map(function (cell) {
        const ids = { person: person, query_id: cell.query_id, doc_id: cell.doc_id, item_id: cell.item_id };
        return JSON.stringify(Object.assign(ids, said[key(cell)])) + "\n";
      });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob(lines, { type: "application/jsonl" }));
    link.download = "review-grades.jsonl";
    link.click();
  }

  for (const value of ["0", "1", "2", "3", "4", "5", "u"]) {
    const button = document.createElement("button");
    button.type = "button";
    button.dataset.grade = value;
    button.textContent = value + " " + (value === "u" ? "undecided" : names[Number(value)]);
    button.addEventListener("click", function () {
      grade(value);
    });
    find("grades").append(button);
  }
  find("back").addEventListener("click", function () {
    move(-1);
  });
  find("on").addEventListener("click", function () {
    move(1);
  });
  find("save").addEventListener("click", save);
  find("note").addEventListener("change", function () {
    const cell = cells[place];
    if (cell && said[key(cell)] !== undefined) {
      said[key(cell)].note = find("note").value.trim();
      said[key(cell)].uid = uid();
      said[key(cell)].time = now();
      keep();
    }
  });
  document.addEventListener("keydown", function (event) {
    if (event.ctrlKey || event.altKey || event.metaKey || event.repeat || !find("keys").checked) return;
    if (event.target.matches("input:not([type=checkbox]), textarea")) return;
    if ("012345u".includes(event.key) && event.key.length === 1) grade(event.key);
    else if (event.key === "j") move(1);
    else if (event.key === "k") move(-1);
  });
  show();
})();
