// A long run: a press on its map goes to the event that lies there, and the page to the place that is looked at. As the page is left it
// says how far it was drawn, so that what comes later is new to who comes back.
(() => {
  document.addEventListener("click", ({ target, clientX }) => {
    const map = target.closest?.("[data-map]");
    if (!map) return;
    const { left, width } = map.getBoundingClientRect();
    const total = Number(map.dataset.map);
    const at = Math.min(total, Math.max(1, Math.ceil((total * (clientX - left)) / width)));
    const query = new URLSearchParams({ ...(map.dataset.q && { q: map.dataset.q }), at });
    location.assign(`?${query}`);
  });
  // whoever went to a place sees it, and as much as there is room for of what stands above
  document.addEventListener("DOMContentLoaded", () => document.getElementById("here")?.scrollIntoView({ block: "nearest" }));
  let said = 0;
  const say = () => {
    const form = document.querySelector("[data-glance]"), seq = Number(document.getElementById("run-head")?.dataset.seq);
    if (!form || !seq || seq === said) return;
    const glance = new FormData(form);
    glance.set("seq", seq);
    if (navigator.sendBeacon(form.action, glance)) said = seq;
  };
  document.addEventListener("visibilitychange", () => document.visibilityState === "hidden" && say());
  window.addEventListener("pagehide", say);
})();
