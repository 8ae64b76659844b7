// Revealing: the dialog that asks why, and the end of it. What is shown for a time leaves the page when its time is over, by itself.
(() => {
  document.addEventListener("htmx:load", ({ detail }) => detail.elt.matches?.("dialog[data-opens]") && opened(detail.elt));
  document.addEventListener("revealed", () => document.querySelector("dialog[data-opens][open]")?.close()); // the answer says so, before it is drawn
  document.addEventListener("click", barPressed);
  setInterval(() => document.querySelectorAll("[data-reveal]").forEach((shown) => over(shown) && hide(shown)), 500);
  window.addEventListener("pagehide", leave);
  // a page that comes back out of the browser's memory shows nothing that was revealed
  window.addEventListener("pageshow", ({ persisted }) => persisted && document.querySelectorAll("[data-reveal]").forEach(hide));

  function opened(dialog) {
    for (const other of document.querySelectorAll("dialog[data-opens]")) if (other !== dialog) other.remove();
    dialog.addEventListener("close", () => setTimeout(() => dialog.remove()));
    dialog.showModal();
  }

  // a bar over a hidden place asks as the button does
  function barPressed({ target }) {
    const paper = target.closest?.(".redacted")?.closest(".may-reveal");
    if (paper) document.querySelector(`#${CSS.escape(paper.dataset.for)} a[data-ask]`)?.click();
  }

  function over(shown) {
    return handrail.now() >= Date.parse(shown.dataset.until);
  }

  // first it is gone from the page, then the server is asked what stands there now
  function hide(shown) {
    const id = shown.dataset.reveal;
    empty(id);
    delete shown.dataset.reveal;
    htmx.ajax("GET", `/reveals/${id}`, { target: shown, swap: "outerHTML" });
  }

  function empty(id) {
    for (const part of document.querySelectorAll(`[data-revealed="${CSS.escape(id)}"]`)) part.replaceChildren();
  }

  // what is shown while the page is open ends with it
  function leave() {
    const headers = { ...JSON.parse(document.body.getAttribute("hx-headers") || "{}"), "HX-Request": "true" };
    for (const shown of document.querySelectorAll("[data-while-open]")) fetch(shown.dataset.whileOpen, { method: "POST", keepalive: true, headers });
    for (const shown of document.querySelectorAll("[data-reveal]")) empty(shown.dataset.reveal);
  }
})();
