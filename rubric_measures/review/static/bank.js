// The bank's table: a text is edited in its place, rows are found and chosen by keys, and what the server answers takes
// the page's place, so that the search, the choice and the place on the screen stay. All of it works without this file,
// too: every item has a page with its forms.
"use strict";
(function () {
  // The cells of a row that can be edited, with their fields.
  const cells = { text: 1, importance: 3, weight: 4 };
  // The row that is edited: its form, and what its cells held.
  let open = null;

  const rows = () => all("#items tbody tr");
  const box = (row) => row.querySelector("[name=merge]");
  const rowOf = (element) => element.closest("#items tbody tr");
  // The key of a row's item, and the version that is shown.
  function parts(row) {
    const at = box(row).value.lastIndexOf("@");
    return [box(row).value.slice(0, at), box(row).value.slice(at + 1)];
  }

  function filter() {
    const words = find("#filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    const only = find("#only").value;
    for (const row of rows()) {
      const text = row.textContent.toLowerCase();
      const is = { "": true, chosen: box(row).checked, unsaid: !row.matches(".vital, .okay") };
      const fits = only in is ? is[only] : row.classList.contains(only);
      row.hidden = !(fits && words.every((word) => text.includes(word)));
    }
  }

  function count() {
    const chosen = all("#items [name=merge]:checked").length;
    find("#count-chosen").textContent = chosen ? chosen + " chosen" : "Choose items";
    const fits = { item_merge: chosen > 1, item_split: chosen === 1, item_retire: chosen > 0 };
    for (const button of all("#chosen button")) button.disabled = !fits[button.value];
  }

  // Takes the main part and the head of another page; the search, the choice, the place and the focus stay.
  function take(made, url, at) {
    const kept = ["#filter", "#only"].map((name) => [name, find(name).value]);
    const chosen = all("#items [name=merge]:checked").map((one) => parts(rowOf(one))[0]);
    const top = window.scrollY;
    page.replace(made);
    page.complain("");
    for (const [name, value] of kept) find(name).value = value;
    for (const row of rows()) box(row).checked ||= chosen.includes(parts(row)[0]);
    if (url) history.replaceState(null, "", url);
    ready();
    window.scrollTo(0, top);
    const row = rows().find((one) => parts(one)[0] === at);
    if (row) box(row).focus({ preventScroll: true });
    // A live region speaks of what changes in it, not of what it comes with.
    const said = find("#saved [role=status], #taken-back");
    if (said) page.say(said.textContent);
  }

  async function send(form, button) {
    const at = open && open.form === form ? parts(open.row)[0] : "";
    try {
      const fields = new URLSearchParams(new FormData(form, button));
      const answer = await fetch(form.getAttribute("action"), { method: "POST", body: fields });
      const made = await page.read(answer);
      const main = made.getElementById("main");
      if (main && main.dataset.bank !== undefined) {
        open = null;
        // What was merged, split or retired is chosen no more.
        if (answer.ok && form.id === "chosen") for (const row of rows()) box(row).checked = false;
        return take(made, answer.ok ? answer.url : "", at);
      }
      if (at) return point(made);
      return answer.ok ? location.assign(answer.url) : page.complain(page.problem(made, answer));
    } catch (problem) {
      return page.complain(page.lost);
    }
  }

  // Puts what the server says of a field to the field.
  function point(made) {
    for (const old of all("#items .error")) old.remove();
    const said = made.querySelector("[data-error]") || made.querySelector("main [role=alert]");
    const error = Object.assign(document.adoptNode(said), { className: "error", id: "error-row" });
    // What was said is of the newest version: sent again, it goes over that.
    const version = made.querySelector("#edit [name=version]");
    if (version) open.form.elements.version.value = version.value;
    const field = open.form.elements[error.dataset.error] || open.form.elements.text;
    field.after(error);
    field.setAttribute("aria-invalid", "true");
    field.setAttribute("aria-describedby", error.id);
    field.focus();
  }

  function edit(row) {
    if (open) close();
    const made = find("#row-template").content.cloneNode(true);
    const form = made.querySelector("form");
    open = { row: row, form: form, texts: {} };
    [form.elements.key.value, form.elements.version.value] = parts(row);
    for (const [name, place] of Object.entries(cells)) {
      const field = made.querySelector("[name=" + name + "]");
      open.texts[name] = field.value = row.cells[place].textContent;
      row.cells[place].replaceChildren(field);
    }
    row.cells[cells.text].append(form);
    form.elements.text.rows = Math.min(8, 1 + Math.floor(open.texts.text.length / 36));
    form.elements.text.focus();
  }

  function close() {
    const row = open.row;
    for (const [name, place] of Object.entries(cells)) row.cells[place].replaceChildren(open.texts[name]);
    open = null;
    box(row).focus();
  }

  function save() {
    const same = Object.keys(cells).every((name) => open.form.elements[name].value === open.texts[name]);
    return same ? close() : open.form.requestSubmit();
  }

  function move(step) {
    const shown = rows().filter((row) => !row.hidden);
    const at = shown.indexOf(rowOf(document.activeElement));
    const row = shown[at < 0 ? 0 : Math.max(0, Math.min(shown.length - 1, at + step))];
    if (!row) return;
    box(row).focus();
    row.scrollIntoView({ block: "nearest" });
  }

  function ready() {
    page.ready();
    filter();
    count();
  }

  document.addEventListener("input", (event) => {
    if (event.target.matches("#filter, #only")) filter();
    if (event.target.name === "merge") count();
  });
  document.addEventListener("click", (event) => {
    if (event.target.matches("[data-leave]")) return close();
    const cell = event.target.closest("#items tbody td:nth-child(2)");
    // A text that is marked to be copied is not meant to be edited.
    if (cell && !(open && open.row === rowOf(cell)) && !String(getSelection())) edit(rowOf(cell));
  });
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.method !== "post") return;
    event.preventDefault();
    const text = find("#merge-text");
    const first = find("#items [name=merge]:checked");
    const kind = event.submitter && event.submitter.value;
    if (form.id !== "chosen" || !first || kind === "item_retire" || text.value.trim()) {
      send(form, event.submitter);
      return;
    }
    // The text to begin with; what it shall be is typed into it.
    text.value = rowOf(first).cells[1].textContent;
    text.dataset.kind = kind;
    text.focus();
  });
  document.addEventListener("keydown", (event) => {
    if (!page.isPlain(event)) return;
    const at = event.target instanceof HTMLElement ? event.target : document.body;
    const row = rowOf(at);
    const isMerge = at.id === "merge-text" && at.dataset.kind === "item_merge";
    let actions = { j: () => move(1), k: () => move(-1) };
    if (open && at.form === open.form && !at.matches("button")) actions = { Escape: close, Enter: save };
    else if (isMerge) actions = { Enter: () => find("#chosen").requestSubmit(find("#chosen [value=item_merge]")) };
    else if (at.matches("input:not([type=checkbox]), textarea, select") || !find("#keys").checked) return;
    else if (row) {
      actions.e = () => edit(row);
      actions.x = () => box(row).click();
      actions.o = () => row.querySelector("a").click();
    }
    if (event.key === "Enter" && event.shiftKey) return;
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  });
  ready();
})();
