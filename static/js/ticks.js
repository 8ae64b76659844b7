// Recovery: the button that tries the ticked runs again says how many they are, and is off while there are none.
(() => {
  document.addEventListener("change", ({ target }) => target.name === "case" && counted());
  document.addEventListener("reset", () => setTimeout(counted)); // once the ticks are gone
  document.addEventListener("DOMContentLoaded", counted);
  window.addEventListener("pageshow", counted); // a browser that comes back keeps its ticks

  function counted() {
    const button = document.querySelector("[data-ticks]");
    if (!button) return;
    const boxes = [...document.querySelectorAll('[name="case"]')]; // also those that can only be tried one by one
    const ticked = boxes.filter((box) => box.checked && !box.disabled).length;
    button.disabled = !ticked;
    button.textContent = ticked ? `Try ${ticked} again` : "Try the ticked ones again";
    document.querySelector("[data-ticked]").textContent = ticked ? `${ticked} of ${boxes.length} selected` : "";
  }
})();
