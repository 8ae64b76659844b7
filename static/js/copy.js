// [data-copy="text"] copies that text; [data-copy-from="id"] the text of that element. Then the toast "Copied".
(() => {
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy], [data-copy-from]");
    if (!button) return;
    const text = button.dataset.copy ?? document.getElementById(button.dataset.copyFrom)?.textContent ?? "";
    if (await copy(text)) handrail.toast("Copied");
    else handrail.say("The browser did not allow copying. Select the text instead.");
  });

  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      return copyBySelection(text); // no clipboard outside https and localhost
    }
  }

  function copyBySelection(text) {
    const before = document.activeElement;
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "vh";
    (document.querySelector("dialog[open]") || document.body).append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    before?.focus();
    return done;
  }
})();
