// Single keys press the button or follow the link that carries them; the page works without this file too.
"use strict";
(function () {
  const box = document.getElementById("keys");
  const stored = "rubric-review-keys";
  if (box) {
    box.checked = localStorage.getItem(stored) !== "off";
    box.addEventListener("change", function () {
      localStorage.setItem(stored, box.checked ? "on" : "off");
    });
  }
  let pressed = false;
  document.addEventListener("keydown", function (event) {
    if (event.ctrlKey || event.altKey || event.metaKey || event.repeat) return;
    if (!box || !box.checked) return;
    const at = event.target;
    const typing = at instanceof HTMLElement && at.matches("input:not([type=checkbox]), textarea, select");
    if (typing) {
      if (event.key === "Escape") at.blur();
      return;
    }
    const focus = document.querySelector('[data-focus="' + CSS.escape(event.key) + '"]');
    if (focus) {
      event.preventDefault();
      focus.focus();
      return;
    }
    const target = document.querySelector('[data-key="' + CSS.escape(event.key) + '"]');
    // One press is one action: a second one before the next page is there would grade twice.
    if (target && event.key !== "Enter" && !pressed) {
      event.preventDefault();
      pressed = true;
      target.click();
    }
  });
  window.addEventListener("pageshow", function () {
    pressed = false;
  });
})();
