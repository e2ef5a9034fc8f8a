// The bank's table: a text is edited in its place, rows are found and chosen by keys, and what the server answers takes
// the page's place, so that the search, the choice and the place on the screen stay. All of it works without this file,
// too: every item has a page with its forms.
"use strict";
(function () {
  const stored = "rubric-review-keys";
  const find = function (selector) {
    return document.querySelector(selector);
  };
  const all = function (selector) {
    return Array.from(document.querySelectorAll(selector));
  };
  // The row that is edited: its form, and what its cells held.
  let open = null;

  function rows() {
    return all("#items tbody tr");
  }

  function key(row) {
    const value = row.querySelector("[name=merge]").value;
    return value.slice(0, value.lastIndexOf("@"));
  }

  function filter() {
    const words = find("#filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    const only = find("#only").value;
    for (const row of rows()) {
      const text = row.textContent.toLowerCase();
      const is = {
        "": true,
        chosen: row.querySelector("[name=merge]").checked,
        unsaid: !row.matches(".vital, .okay"),
      };
      const fits = only in is ? is[only] : row.classList.contains(only);
      row.hidden = !(fits && words.every((word) => text.includes(word)));
    }
  }

  function count() {
    const chosen = all("#items [name=merge]:checked").length;
    find("#count-chosen").textContent = chosen ? chosen + " chosen" : "Choose items";
    for (const button of all("#chosen button")) {
      const fits = { item_merge: chosen > 1, item_split: chosen === 1, item_retire: chosen > 0 };
      button.disabled = !fits[button.value];
    }
  }

  function complain(text) {
    const alert = document.createElement("p");
    alert.className = "alert";
    alert.setAttribute("role", "alert");
    alert.textContent = text;
    find("#main").prepend(alert);
    alert.scrollIntoView({ block: "nearest" });
  }

  // Takes the main part and the head of another page; the search, the choice, the place and the focus stay.
  function take(made, url, at) {
    const kept = { words: find("#filter").value, only: find("#only").value };
    const chosen = all("#items [name=merge]:checked").map((box) => key(box.closest("tr")));
    const top = window.scrollY;
    for (const id of ["main", "head"]) {
      document.getElementById(id).replaceWith(document.adoptNode(made.getElementById(id)));
    }
    find("#filter").value = kept.words;
    find("#only").value = kept.only;
    for (const row of rows()) {
      if (chosen.includes(key(row))) row.querySelector("[name=merge]").checked = true;
    }
    if (url) history.replaceState(null, "", url);
    ready();
    window.scrollTo(0, top);
    const row = rows().find((one) => key(one) === at);
    if (row) row.querySelector("[name=merge]").focus({ preventScroll: true });
    // A live region speaks of what changes in it, not of what it comes with.
    const said = find("#saved [role=status], #taken-back");
    if (said) find("#live").textContent = said.textContent;
  }

  async function send(form, button) {
    const action = form.getAttribute("action");
    const at = open && open.form === form ? key(open.row) : "";
    try {
      const fields = new URLSearchParams(new FormData(form, button));
      const answer = await fetch(action, { method: "POST", body: fields });
      const made = new DOMParser().parseFromString(await answer.text(), "text/html");
      const main = made.getElementById("main");
      if (main && main.dataset.bank !== undefined) {
        open = null;
        // What was merged, split or retired is chosen no more.
        if (answer.ok && form.id === "chosen") for (const box of all("#items [name=merge]")) box.checked = false;
        return take(made, answer.ok ? answer.url : "", at);
      }
      if (at) return point(made);
      if (answer.ok) return location.assign(answer.url);
      complain(main ? main.querySelector("[role=alert]").textContent : answer.statusText);
    } catch (problem) {
      complain("The server does not answer: this was not kept. Start it again, and send it again.");
    }
    return undefined;
  }

  // Puts what the server says of a field to the field.
  function point(made) {
    for (const old of all("#items .error")) old.remove();
    const said = made.querySelector("[data-error]");
    const field = (said && open.form.elements[said.dataset.error]) || open.form.elements.text;
    const error = document.createElement("p");
    error.className = "error";
    error.id = "error-row";
    error.setAttribute("role", "alert");
    error.textContent = (said || made.querySelector("[role=alert]")).textContent;
    field.after(error);
    field.setAttribute("aria-invalid", "true");
    field.setAttribute("aria-describedby", error.id);
    field.focus();
  }

  function control(name, label, value) {
    const made = document.createElement(name);
    made.setAttribute("aria-label", label);
    made.setAttribute("form", "row-form");
    made.name = label.toLowerCase();
    if (name === "select") {
      for (const one of ["", "vital", "okay"]) made.add(new Option(one || "not said", one));
    }
    made.value = value;
    return made;
  }

  function edit(row) {
    if (open) close();
    const cells = row.cells;
    const form = document.createElement("form");
    form.id = "row-form";
    form.method = "post";
    form.action = "/bank";
    const value = row.querySelector("[name=merge]").value;
    const hidden = {
      form_token: find("#chosen [name=form_token]").value,
      query: find("#main").dataset.bank,
      edit: "item_edit",
      key: key(row),
      version: value.slice(value.lastIndexOf("@") + 1),
    };
    for (const name of Object.keys(hidden)) {
      const field = document.createElement("input");
      field.type = "hidden";
      field.name = name;
      field.value = hidden[name];
      form.append(field);
    }
    open = { row: row, form: form, texts: [1, 3, 4].map((place) => cells[place].textContent) };
    const text = control("textarea", "Text", open.texts[0]);
    text.dir = "auto";
    text.rows = Math.min(8, 1 + Math.floor(open.texts[0].length / 36));
    const same = document.createElement("label");
    same.className = "inline";
    const box = document.createElement("input");
    box.type = "checkbox";
    box.name = "same_meaning";
    box.value = "yes";
    same.append(box, " means the same (grades stay) ");
    const save = document.createElement("button");
    save.textContent = "Save";
    const leave = document.createElement("button");
    leave.type = "button";
    leave.className = "quiet";
    leave.textContent = "Leave";
    leave.addEventListener("click", close);
    form.append(same, save, " ", leave);
    cells[1].replaceChildren(text, form);
    cells[3].replaceChildren(control("select", "Importance", open.texts[1]));
    const weight = control("input", "Weight", open.texts[2]);
    weight.size = 5;
    weight.inputMode = "decimal";
    cells[4].replaceChildren(weight);
    text.focus();
  }

  function close() {
    const row = open.row;
    [1, 3, 4].forEach(function (place, number) {
      row.cells[place].replaceChildren(open.texts[number]);
    });
    open = null;
    row.querySelector("[name=merge]").focus();
  }

  function save() {
    const now = ["text", "importance", "weight"].map((name) => open.form.elements[name].value);
    if (now.every((value, number) => value === open.texts[number])) return close();
    return open.form.requestSubmit();
  }

  function move(step) {
    const shown = rows().filter((row) => !row.hidden);
    const at = shown.indexOf(document.activeElement.closest("#items tbody tr"));
    const row = shown[at < 0 ? 0 : Math.max(0, Math.min(shown.length - 1, at + step))];
    if (row) row.querySelector("[name=merge]").focus();
    if (row) row.scrollIntoView({ block: "nearest" });
  }

  function ready() {
    const box = find("#keys");
    if (box) box.checked = localStorage.getItem(stored) !== "off";
    for (const time of all("time[datetime]")) time.textContent = new Date(time.dateTime).toLocaleString();
    filter();
    count();
  }

  document.addEventListener("input", function (event) {
    if (event.target.matches("#filter, #only")) filter();
  });
  document.addEventListener("change", function (event) {
    if (event.target.name === "merge") count();
  });
  document.addEventListener("click", function (event) {
    const cell = event.target.closest("#items tbody td:nth-child(2)");
    const row = cell && cell.parentElement;
    // A text that is marked to be copied is not meant to be edited.
    if (row && !(open && open.row === row) && !String(getSelection())) edit(row);
  });
  document.addEventListener("submit", function (event) {
    const form = event.target;
    if (form.method !== "post") return;
    event.preventDefault();
    const text = find("#merge-text");
    const box = find("#items [name=merge]:checked");
    const kind = event.submitter && event.submitter.value;
    if (form.id === "chosen" && box && kind !== "item_retire" && !text.value.trim()) {
      // The text to begin with; what it shall be is typed into it.
      text.value = box.closest("tr").cells[1].textContent;
      text.dataset.kind = kind;
      text.focus();
      return;
    }
    send(form, event.submitter);
  });
  document.addEventListener("keydown", function (event) {
    if (event.ctrlKey || event.altKey || event.metaKey || event.repeat) return;
    const at = event.target instanceof HTMLElement ? event.target : document.body;
    if (open && at.form === open.form && !at.matches("button")) {
      if (event.key === "Escape") close();
      else if (event.key === "Enter" && !event.shiftKey) save();
      else return;
      event.preventDefault();
      return;
    }
    if (at.id === "merge-text" && event.key === "Enter" && !event.shiftKey && at.dataset.kind === "item_merge") {
      event.preventDefault();
      return find("#chosen").requestSubmit(find("#chosen [value=item_merge]"));
    }
    if (at.matches("input:not([type=checkbox]), textarea, select") || !find("#keys").checked) return;
    const row = at.closest("#items tbody tr");
    const actions = { j: () => move(1), k: () => move(-1) };
    if (row) {
      actions.e = () => edit(row);
      actions.x = () => row.querySelector("[name=merge]").click();
      actions.o = () => row.querySelector("a").click();
    }
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  });
  ready();
})();
