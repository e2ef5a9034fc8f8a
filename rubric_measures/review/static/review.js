// Single keys press the button or follow the link that carries them; the page works without this file too. On the
// screen that checks a passage, forms and links are sent from here and their answer takes the page's place, so that no
// page is loaded between items. What is next is in the answer: nothing is decided here.
"use strict";
(function () {
  const stored = "rubric-review-keys";
  // Keys that are pressed while an answer is awaited are done after it, in their order.
  let chain = Promise.resolve();
  let waiting = 0;
  // The digits typed so far of a grade that may have more.
  let held = "";

  function ready() {
    const box = document.getElementById("keys");
    if (box) box.checked = localStorage.getItem(stored) !== "off";
    for (const time of document.querySelectorAll("time[datetime]")) {
      time.textContent = new Date(time.dateTime).toLocaleString();
    }
    const current = document.getElementById("current");
    if (current) {
      current.scrollIntoView({ block: "nearest" });
      current.focus({ preventScroll: true });
    }
  }

  function say(text) {
    document.getElementById("live").textContent = text;
  }

  function hold(digits, text) {
    held = digits;
    const shown = document.getElementById("held");
    if (shown) shown.textContent = text || "";
  }

  function isLive() {
    return document.getElementById("main").hasAttribute("data-live");
  }

  function complain(text) {
    const alert = document.createElement("p");
    alert.className = "alert";
    alert.setAttribute("role", "alert");
    alert.textContent = text;
    document.getElementById("main").prepend(alert);
  }

  async function show(answer) {
    const made = new DOMParser().parseFromString(await answer.text(), "text/html");
    const main = made.getElementById("main");
    const old = document.getElementById("main");
    if (!main || !main.hasAttribute("data-live")) {
      if (answer.ok) return location.assign(answer.url);
      return complain(main ? main.querySelector("[role=alert]").textContent : answer.statusText);
    }
    const same = main.dataset.live === old.dataset.live;
    held = "";
    const top = old.querySelector("#passage").scrollTop;
    old.replaceWith(document.adoptNode(main));
    document.getElementById("head").replaceWith(document.adoptNode(made.getElementById("head")));
    if (same) document.getElementById("passage").scrollTop = top;
    else window.scrollTo(0, 0);
    history[same ? "replaceState" : "pushState"](null, "", answer.url);
    ready();
    say(document.getElementById("said").textContent);
    return undefined;
  }

  async function ask(url, options) {
    try {
      await show(await fetch(url, options));
    } catch (problem) {
      // What was typed ahead was meant for other items.
      waiting += 1;
      hold("");
      complain("The server does not answer: this was not kept. Start it again, and press the key again.");
    }
  }

  function send(form, button) {
    const fields = new URLSearchParams(new FormData(form, button));
    return ask(form.getAttribute("action"), { method: "POST", body: fields });
  }

  function later(work) {
    const mine = waiting;
    chain = chain.then(function () {
      return mine === waiting ? work() : undefined;
    });
  }

  function open(id) {
    const dialog = document.getElementById(id);
    if (dialog) dialog.showModal();
    return !!dialog;
  }

  // The key that is meant: of a grade of several digits, all of them; none while a longer grade may follow.
  function meant(key) {
    if (key === "Enter" && held) {
      const digits = held;
      hold("");
      return digits;
    }
    if (!/^[0-9]$/.test(key)) {
      hold("");
      return key;
    }
    const typed = held + key;
    const field = document.querySelector("input[data-digits]");
    if (field) {
      field.focus();
      field.value = typed;
      hold(typed);
      return "";
    }
    const grades = Array.from(document.querySelectorAll("button[name=grade][data-key]"), (one) => one.dataset.key);
    if (grades.some((grade) => grade.startsWith(typed) && grade !== typed)) {
      hold(typed, typed + "… the next digit, or Enter for " + typed);
      return "";
    }
    hold("", !held || grades.includes(typed) ? "" : typed + " is no grade: nothing was kept");
    return typed;
  }

  function press(typed) {
    const field = held && typed === "Enter" ? document.querySelector("input[data-digits]") : null;
    const key = meant(typed);
    if (field) return field.reportValidity() ? send(field.form, null) : undefined;
    const target = document.querySelector('[data-key="' + CSS.escape(key) + '"]');
    if (!target) return undefined;
    if (target.matches("input, textarea")) return target.focus();
    if (target.dataset.dialog && open(target.dataset.dialog)) return undefined;
    if (isLive() && target.matches("a[data-live]")) return ask(target.href);
    if (isLive() && target.form && target.type === "submit") return send(target.form, target);
    return target.click();
  }

  document.addEventListener("change", function (event) {
    if (event.target.id === "keys") localStorage.setItem(stored, event.target.checked ? "on" : "off");
  });
  document.addEventListener("click", function (event) {
    const opener = event.target.closest("[data-dialog]");
    if (opener && open(opener.dataset.dialog)) event.preventDefault();
    const link = event.target.closest("a[data-live]");
    if (link && isLive() && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault();
      later(function () {
        return ask(link.href);
      });
    }
  });
  document.addEventListener("submit", function (event) {
    const form = event.target;
    if (!isLive() || form.method !== "post") return;
    event.preventDefault();
    later(function () {
      return send(form, event.submitter);
    });
  });
  document.addEventListener("keydown", function (event) {
    if (event.ctrlKey || event.altKey || event.metaKey || event.repeat) return;
    const at = event.target instanceof HTMLElement ? event.target : document.body;
    if (at.matches("input:not([type=checkbox]), textarea, select")) {
      const gives = event.key === "Enter" && at.matches("[data-digits]");
      const leaves = event.key === "Escape" || (event.key === "Enter" && at.matches("[data-key=c]")) || gives;
      if (!leaves) return;
      event.preventDefault();
      const form = at.form;
      at.blur();
      hold("");
      if (gives || (event.key === "Enter" && form && form.getAttribute("action") === "/note")) form.requestSubmit();
      return;
    }
    const box = document.getElementById("keys");
    if ((box && !box.checked) || at.closest("dialog")) return;
    if (event.key === "Enter" && !held && at.closest("a, button, summary")) return;
    if (!isLive()) {
      if (document.querySelector('[data-key="' + CSS.escape(event.key) + '"]')) {
        event.preventDefault();
        press(event.key);
      }
      return;
    }
    if (event.key === "Escape" || event.key === "Backspace") hold("");
    if (event.key.length > 1 && event.key !== "Enter") return;
    event.preventDefault();
    const key = event.key;
    later(function () {
      return press(key);
    });
  });
  window.addEventListener("popstate", function () {
    location.reload();
  });
  ready();
})();
