// A form with much to change: beside its Save stands how many changes are not saved. While there are none the button is off, and nothing
// is to be undone. Without this script it saves whatever the form holds.
(() => {
  document.addEventListener("input", told);
  document.addEventListener("change", told);
  document.addEventListener("reset", () => setTimeout(told)); // once all is as it was
  document.addEventListener("DOMContentLoaded", told);
  window.addEventListener("pageshow", told); // a browser that comes back keeps what was typed

  let before;

  function told() {
    const says = document.querySelector("[data-pending]");
    if (!says) return;
    before ??= says.textContent;
    const changes = [...document.getElementById(says.dataset.pending).elements].filter(changed).length;
    says.textContent = changes ? `${changes} change${changes === 1 ? "" : "s"} not saved` : before;
    document.querySelector("[data-saves]").disabled = !changes;
    document.querySelector("[data-undoes]").hidden = !changes;
  }

  function changed(field) {
    if (field.matches("[type=hidden], button")) return false;
    if (field.matches("[type=checkbox], [type=radio]")) return field.checked !== field.defaultChecked;
    if (field.matches("select")) {
      const first = [...field.options].findIndex((option) => option.defaultSelected);
      return field.selectedIndex !== Math.max(first, 0);
    }
    return field.value !== field.defaultValue;
  }
})();
