// A long run: a press on its map goes to the event that lies there, and the page to the place that is looked at.
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
})();
