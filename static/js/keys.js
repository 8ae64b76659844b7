// Keys. An element says which key is its own: [data-key="r"] is clicked, or focused if it is a field.
// j and k walk over [data-item] in [data-list]; data-list="open" also opens the one it comes to.
// Off while typing, with Ctrl, Alt or Meta, behind an open dialog, and when switched off in the list of keys.
(() => {
  const OFF = "handrail.keys";
  const TYPING = "input:not([type=checkbox], [type=radio], [type=button], [type=submit]), textarea, select, [contenteditable]";

  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === "Escape") return leave(event);
    if (localStorage.getItem(OFF) === "off" || event.target.closest?.(TYPING)) return;
    if (event.key === "Enter" && event.target !== document.body) return; // whatever has the focus is pressed by it
    const room = document.querySelector("dialog[open]") ?? document;
    if (owner(room, event)) return;
    if (room === document && (event.key === "j" || event.key === "k")) walk(event);
  });

  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-keys-switch]")) localStorage.setItem(OFF, event.target.checked ? "on" : "off");
  });
  for (const box of document.querySelectorAll("[data-keys-switch]")) box.checked = localStorage.getItem(OFF) !== "off";

  // true if an element owns this key. A key that is held down acts once.
  function owner(room, event) {
    const found = [...room.querySelectorAll(`[data-key="${CSS.escape(event.key)}"]`)].find(usable);
    if (!found) return false;
    event.preventDefault();
    if (event.repeat) return true;
    if (found.matches(TYPING)) {
      found.focus();
      found.select?.();
    } else if (found.disabled || found.getAttribute("aria-disabled") === "true") {
      found.focus(); // says why by its description, does nothing
    } else {
      found.click();
    }
    return true;
  }

  // shown, or a hidden helper button made for a key
  function usable(element) {
    return element.checkVisibility() || (element.hidden && element.matches("button[commandfor]"));
  }

  // Esc closes dialogs and menus by itself; else it presses what calls itself Escape; in a field it lets go of the field
  function leave(event) {
    if (document.querySelector("dialog[open], [popover]:popover-open")) return;
    if (owner(document, event)) return;
    if (event.target.matches?.(TYPING)) event.target.blur();
  }

  function walk(event) {
    const list = document.querySelector("[data-list]");
    const items = list ? [...list.querySelectorAll("[data-item]")].filter((item) => item.checkVisibility()) : [];
    if (!items.length) return;
    event.preventDefault();
    const at = items.findIndex((item) => item === document.activeElement || item.contains(document.activeElement));
    const from = at >= 0 ? at : items.findIndex((item) => item.matches("[aria-current]:not([aria-current=false])"));
    const to = items[Math.min(items.length - 1, Math.max(0, from + (event.key === "j" ? 1 : -1)))];
    to.focus();
    to.scrollIntoView({ block: "nearest" });
    if (list.dataset.list === "open" && to !== items[from]) to.click();
  }
})();
