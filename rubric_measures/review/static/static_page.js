// A queue without a server: grades are kept in this browser and saved as JSON lines. Texts are only ever set as text.
"use strict";
(function () {
  const queue = JSON.parse(document.getElementById("data").dataset.queue);
  const cells = queue.cells;
  const find = function (id) {
    return document.getElementById(id);
  };
  const key = function (cell) {
    return JSON.stringify([cell.query_id, cell.doc_id, cell.item_id]);
  };
  const store = "rubric-review-queue-" + queue.id + "-";
  const drawer = "rubric-review-notes-" + queue.id + "-";
  const last = "rubric-review-person";
  // Several assessors may share one browser: each has grades of their own, and sees nobody else's. Beside them lie notes
  // that were typed before a grade was given; those of nobody yet are the first assessor's who says their name.
  const assessors = Object.create(null);
  const drafts = Object.create(null);
  let assessor = "";
  let before = "";
  let kept = true;
  let place = 0;

  function uid() {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    return Array.from(bytes, function (byte) {
      return byte.toString(16).padStart(2, "0");
    }).join("");
  }

  function read(known, place, name) {
    if (known[name] === undefined) {
      known[name] = {};
      try {
        known[name] = JSON.parse(localStorage.getItem(place + name) || "{}");
      } catch (problem) {
        kept = false;
      }
    }
    return known[name];
  }

  function grades(name) {
    return read(assessors, store, name);
  }

  function notes(name) {
    return read(drafts, drawer, name);
  }

  function keep(name) {
    // What has no name yet is gone when the page is left: the next assessor may be another one.
    if (!name) return;
    try {
      localStorage.setItem(store + name, JSON.stringify(grades(name)));
      localStorage.setItem(drawer + name, JSON.stringify(notes(name)));
    } catch (problem) {
      kept = false;
    }
  }

  // Notes of a name that stand beside no grade.
  function waiting(name) {
    return cells.filter(function (cell) {
      return notes(name)[key(cell)] && (!name || grades(name)[key(cell)] === undefined);
    }).length;
  }

  // A note is kept beside its grade, or until there is one.
  function jot() {
    const cell = cells[place];
    if (!cell) return;
    const mine = assessor ? grades(assessor)[key(cell)] : undefined;
    const note = find("note").value.trim();
    if (mine === undefined) {
      if (note) notes(assessor)[key(cell)] = note;
      else delete notes(assessor)[key(cell)];
    } else if ((mine.note || "") !== note) {
      mine.note = note;
      mine.uid = uid();
      mine.time = now();
    }
    keep(assessor);
  }

  // Takes the name from its field; the grades of a name stay with it until somebody says that they are theirs.
  function know() {
    const name = find("person").value.trim().normalize("NFC");
    if (name && name !== assessor) {
      jot();
      before = assessor && (Object.keys(grades(assessor)).length || waiting(assessor)) ? assessor : "";
      if (!assessor) take("", name);
      assessor = name;
      try {
        localStorage.setItem(last, name);
      } catch (problem) {
        kept = false;
      }
      show();
    }
    return name !== "";
  }

  // Notes without a grade go from one name to another, unless that one has a note or a grade there.
  function take(from, to) {
    for (const [cell, note] of Object.entries(notes(from))) {
      if (grades(to)[cell] === undefined && !notes(to)[cell]) notes(to)[cell] = note;
    }
    drafts[from] = {};
    keep(from);
    keep(to);
  }

  function ask() {
    find("person").focus();
    find("count").textContent = "Say who you are first.";
  }

  // They keep their uids: whoever imports them again sees that the name was corrected.
  function rename() {
    const mine = grades(assessor);
    for (const [cell, one] of Object.entries(grades(before))) {
      if (mine[cell] === undefined || mine[cell].time < one.time) mine[cell] = one;
    }
    assessors[before] = {};
    take(before, assessor);
    before = "";
    show();
  }

  function show() {
    const cell = cells[place];
    const said = assessor ? grades(assessor) : {};
    const mine = cell ? said[key(cell)] : undefined;
    find("renaming").hidden = !before;
    find("before").textContent = before;
    find("rename").textContent = "They are mine, too: they go to " + assessor;
    find("doc").textContent = cell ? cell.doc_id : "";
    const end = cells.length ? "Finished: every grade of this page is done. Save your grades as a file." : "";
    find("passage").textContent = cell ? cell.text : end || "Nothing to check.";
    find("item").textContent = cell ? cell.item || cell.item_id : "";
    find("gold").textContent = cell && cell.gold.length ? "Gold answers: " + cell.gold.join("; ") : "";
    find("query").textContent = cell ? "Query " + cell.query_id + (cell.query ? ": " + cell.query : "") : "";
    find("note").value = (mine ? mine.note : cell && notes(assessor)[key(cell)]) || "";
    for (const button of find("grades").children) {
      const is = mine !== undefined && String(mine.grade === null ? "u" : mine.grade) === button.dataset.grade;
      button.setAttribute("aria-pressed", String(is));
    }
    const done = cells.filter(function (one) {
      return said[key(one)] !== undefined;
    }).length;
    const open = waiting(assessor);
    const notOf = open ? "; " + open + (open === 1 ? " note" : " notes") + " without a grade, in no file: grade or u" : "";
    const at = cell ? place + 1 + " of " + cells.length : "Finished";
    const where = cells.length ? at + "; " + done + " done" + notOf : "";
    find("count").textContent = where + (kept ? "" : " (this browser keeps nothing: save before you leave)");
  }

  function move(step) {
    place = Math.min(Math.max(place + step, 0), Math.max(cells.length - 1, 0));
    show();
  }

  // The first one without a grade from a place on, then from the start; behind the last one where all have one.
  function open(from) {
    const said = assessor ? grades(assessor) : {};
    for (let step = 0; step < cells.length; step += 1) {
      const at = (from + step) % cells.length;
      if (said[key(cells[at])] === undefined) return at;
    }
    return cells.length;
  }

  function now() {
    return new Date().toISOString().replace(/\.\d+Z$/, "+00:00");
  }

  function grade(value) {
    const cell = cells[place];
    if (!cell) return;
    if (!know()) return ask();
    grades(assessor)[key(cell)] = {
      uid: uid(),
      time: now(),
      grade: value === "u" ? null : Number(value),
      note: find("note").value.trim(),
    };
    delete notes(assessor)[key(cell)];
    keep(assessor);
    place = open(place + 1);
    show();
  }

  function save() {
    if (!know()) return ask();
    const said = grades(assessor);
    const lines = cells
      .filter(function (cell) {
        return said[key(cell)] !== undefined;
      })
      .map(function (cell) {
        const ids = { person: assessor, query_id: cell.query_id, doc_id: cell.doc_id, item_id: cell.item_id };
        return JSON.stringify(Object.assign(ids, said[key(cell)])) + "\n";
      });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob(lines, { type: "application/jsonl" }));
    link.download = "review-grades.jsonl";
    link.click();
    show();
  }

  for (const [value, name] of queue.grades.concat([["u", "undecided"]])) {
    const button = document.createElement("button");
    button.type = "button";
    button.dataset.grade = value;
    button.textContent = (value + " " + name).trim();
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
  find("person").addEventListener("change", know);
  find("rename").addEventListener("click", rename);
  find("note").addEventListener("change", jot);
  document.addEventListener("keydown", function (event) {
    if (event.ctrlKey || event.altKey || event.metaKey || event.repeat || !find("keys").checked) return;
    if (event.target.matches("input:not([type=checkbox]), textarea")) return;
    const isGrade = function (one) {
      return one[0] === event.key;
    };
    if (event.key === "u" || queue.grades.some(isGrade)) {
      // Where the name is asked for, the key is no part of it.
      event.preventDefault();
      grade(event.key);
    } else if (event.key === "j") move(1);
    else if (event.key === "k") move(-1);
  });
  try {
    find("person").value = localStorage.getItem(last) || "";
  } catch (problem) {
    kept = false;
  }
  know();
  if (assessor) place = open(0);
  show();
})();
