// Dialogs open by command="show-modal" commandfor="…". Where the browser knows that, this only adds the backdrop click.
(() => {
  const native = "commandForElement" in HTMLButtonElement.prototype;

  document.addEventListener("click", (event) => {
    if (!native) obey(event.target.closest("button[commandfor]"));
    // data-closes: a click beside the dialog leaves it as Esc does. A dialog with a form does not have it: typing would be lost.
    if (event.target.matches?.("dialog[data-closes]") && outside(event)) event.target.close();
  });

  function obey(button) {
    const target = button && !button.disabled && document.getElementById(button.getAttribute("commandfor"));
    if (!target) return;
    const command = button.getAttribute("command");
    if (command === "show-modal" && !target.open) target.showModal();
    if (command === "close" && target.open) target.close(button.value);
    if (command?.endsWith("-popover")) target[`${command.slice(0, -8)}Popover`]?.();
  }

  function outside({ target, clientX: x, clientY: y }) {
    const box = target.getBoundingClientRect();
    return x < box.left || x > box.right || y < box.top || y > box.bottom;
  }
})();
