// Permissions: the list of sections at the side marks the one that is being read. Some sections come in after the page and move the others:
// the one that the address names stays in place until the reader moves.
(() => {
  let due = false;
  let named = location.hash;
  for (const move of ["wheel", "touchmove", "keydown", "pointerdown"]) window.addEventListener(move, () => (named = ""), { passive: true });
  window.addEventListener("scroll", soon, { passive: true });
  document.addEventListener("DOMContentLoaded", mark);
  document.addEventListener("htmx:afterSettle", () => {
    if (/^#[a-z]+$/.test(named)) document.querySelector(named)?.scrollIntoView();
    soon();
  });

  function soon() {
    if (due) return;
    due = true;
    requestAnimationFrame(mark);
  }

  function mark() {
    due = false;
    const links = [...document.querySelectorAll("[data-sections] a")];
    const line = window.innerHeight / 3;
    const begun = links.filter((link) => document.querySelector(link.hash)?.getBoundingClientRect().top < line);
    const end = window.scrollY > 0 && window.innerHeight + window.scrollY >= document.documentElement.scrollHeight - 2;
    const here = end ? links.at(-1) : (begun.at(-1) ?? links[0]);
    for (const link of links) link === here ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current");
  }
})();
