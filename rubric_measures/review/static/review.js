// Single keys press the button or follow the link that carries them; the page works without this file too. On the
// screen that checks a passage, forms and links are sent from here and their answer takes the page's place, so that no
// page is loaded between items. What is next is in the answer: nothing is decided here.
"use strict";
const find = (selector) => document.querySelector(selector);
const all = (selector) => Array.from(document.querySelectorAll(selector));

// What the screens of passages and of the bank share.
const page = {
  ready() {
    const box = find("#keys");
    if (box) box.checked = localStorage.getItem("rubric-review-keys") !== "off";
    for (const time of all("time[datetime]")) time.textContent = new Date(time.dateTime).toLocaleString();
  },
  say: (text) => (find("#live").textContent = text),
  // In sight wherever the page is scrolled to; empty once something was kept.
  complain: (text) => Object.assign(find("#bar"), { textContent: text, hidden: !text }),
  read: async (answer) => new DOMParser().parseFromString(await answer.text(), "text/html"),
  problem: (made, answer) => made.querySelector("main [role=alert]")?.textContent || answer.statusText,
  replace(made) {
    for (const id of ["main", "head"]) find("#" + id).replaceWith(document.adoptNode(made.getElementById(id)));
  },
  isPlain: (event) => !(event.ctrlKey || event.altKey || event.metaKey || event.repeat),
  lost: "The server does not answer: this was not kept. Start it again, and then do this again.",
};

(function () {
  // Keys that are pressed while an answer is awaited are done after it, in their order.
  let chain = Promise.resolve();
  let waiting = 0;
  // The digits typed so far of a grade that may have more.
  let held = "";

  function ready() {
    page.ready();
    const current = find("#current");
    if (!current) return;
    current.scrollIntoView({ block: "nearest" });
    current.focus({ preventScroll: true });
  }

  function hold(digits, text) {
    held = digits;
    if (find("#held")) find("#held").textContent = text || "";
  }

  const isLive = () => find("#main").hasAttribute("data-live");

  async function show(answer) {
    const made = await page.read(answer);
    const main = made.getElementById("main");
    if (!main || !main.hasAttribute("data-live")) {
      return answer.ok ? location.assign(answer.url) : page.complain(page.problem(made, answer));
    }
    const same = main.dataset.live === find("#main").dataset.live;
    const top = find("#passage").scrollTop;
    held = "";
    page.replace(made);
    page.complain("");
    if (same) find("#passage").scrollTop = top;
    else window.scrollTo(0, 0);
    history[same ? "replaceState" : "pushState"](null, "", answer.url);
    ready();
    return page.say(find("#said").textContent);
  }

  async function ask(url, options) {
    try {
      await show(await fetch(url, options));
    } catch (problem) {
      // What was typed ahead was meant for other items.
      waiting += 1;
      hold("");
      page.complain(page.lost);
    }
  }

  function send(form, button) {
    return ask(form.getAttribute("action"), { method: "POST", body: new URLSearchParams(new FormData(form, button)) });
  }

  function later(work) {
    const mine = waiting;
    chain = chain.then(() => (mine === waiting ? work() : undefined));
  }

  function open(id) {
    find("#" + id)?.showModal();
    return !!find("#" + id);
  }

  // The key that is meant: of a grade of several digits, all of them; none while a longer grade may follow.
  function meant(key) {
    const typed = held + key;
    const before = held;
    hold("");
    if (key === "Enter" && before) return before;
    if (!/^[0-9]$/.test(key)) return key;
    const field = find("input[data-digits]");
    if (field) {
      field.focus();
      field.value = typed;
      hold(typed);
      return "";
    }
    const grades = all("button[name=grade][data-key]").map((one) => one.dataset.key);
    if (grades.some((grade) => grade.startsWith(typed) && grade !== typed)) {
      hold(typed, typed + "… the next digit, or Enter for " + typed);
      return "";
    }
    if (before && !grades.includes(typed)) hold("", typed + " is no grade: nothing was kept");
    return typed;
  }

  function press(typed) {
    const field = held && typed === "Enter" ? find("input[data-digits]") : null;
    const key = meant(typed);
    if (field) return field.reportValidity() ? send(field.form, null) : undefined;
    const target = find('[data-key="' + CSS.escape(key) + '"]');
    if (!target) return undefined;
    if (target.matches("input, textarea")) return target.focus();
    if (target.dataset.dialog && open(target.dataset.dialog)) return undefined;
    if (isLive() && target.matches("a[data-live]")) return ask(target.href);
    if (isLive() && target.form && target.type === "submit") return send(target.form, target);
    return target.click();
  }

  // What a key does in a field: Escape leaves it, Enter gives a grade or ends a note.
  function inField(event, at) {
    const gives = event.key === "Enter" && at.matches("[data-digits]");
    const ends = event.key === "Enter" && at.matches("[data-key=c]");
    if (!(event.key === "Escape" || ends || gives)) return;
    event.preventDefault();
    at.blur();
    hold("");
    if (gives || (ends && at.form.getAttribute("action") === "/note")) at.form.requestSubmit();
  }

  document.addEventListener("change", (event) => {
    if (event.target.id === "keys") localStorage.setItem("rubric-review-keys", event.target.checked ? "on" : "off");
  });
  document.addEventListener("click", (event) => {
    const opener = event.target.closest("[data-dialog]");
    if (opener && open(opener.dataset.dialog)) event.preventDefault();
    const link = event.target.closest("a[data-live]");
    if (!link || !isLive() || event.shiftKey || !page.isPlain(event)) return;
    event.preventDefault();
    later(() => ask(link.href));
  });
  document.addEventListener("submit", (event) => {
    if (!isLive() || event.target.method !== "post") return;
    event.preventDefault();
    later(() => send(event.target, event.submitter));
  });
  document.addEventListener("keydown", (event) => {
    if (!page.isPlain(event)) return;
    const at = event.target instanceof HTMLElement ? event.target : document.body;
    if (at.matches("input:not([type=checkbox]), textarea, select")) return inField(event, at);
    const box = find("#keys");
    if ((box && !box.checked) || at.closest("dialog")) return;
    const key = event.key;
    if (key === "Enter" && !held && at.closest("a, button, summary")) return;
    if (isLive() && (key === "Escape" || key === "Backspace")) hold("");
    if (isLive() ? key.length > 1 && key !== "Enter" : !find('[data-key="' + CSS.escape(key) + '"]')) return;
    event.preventDefault();
    return isLive() ? later(() => press(key)) : press(key);
  });
  window.addEventListener("popstate", () => location.reload());
  ready();
})();
