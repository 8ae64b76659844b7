// Speaks and shows small things. `handrail.say(text)` is read out, unseen; `handrail.toast(text)` shows for 4 s.
// A toast says only "Copied", "View saved" or "Draft saved": never an action, never an error.
window.handrail = window.handrail || {};

handrail.say = (text) => {
  const region = document.getElementById("say");
  if (!region) return;
  region.textContent = "";
  // the same sentence twice must be two changes
  requestAnimationFrame(() => (region.textContent = text));
};

handrail.toast = (text) => {
  const region = document.getElementById("toasts");
  if (!region) return;
  const toast = document.createElement("p");
  toast.className = "toast";
  toast.textContent = text;
  region.replaceChildren(toast);
  setTimeout(() => toast.remove(), 4000);
};
