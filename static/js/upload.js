// The drop zone is a file input. Choosing a file, or dropping one anywhere on the page, sends it to be looked at; nothing runs yet.
(() => {
  const form = document.querySelector("[data-upload]");
  if (!form) return;
  const input = form.querySelector("input[type=file]");
  const error = form.querySelector("[data-drop-error]");
  const name = form.querySelector("[data-drop-name]");

  input.addEventListener("change", () => send(input.files[0]));
  document.addEventListener("dragover", (event) => hasFile(event) && event.preventDefault());
  document.addEventListener("drop", (event) => {
    if (!hasFile(event)) return;
    event.preventDefault();
    if (event.dataTransfer.files.length > 1) return say("One message at a time. Nothing was stored.");
    input.files = event.dataTransfer.files;
    form.querySelector("[name=source][value=file]").checked = true;
    send(input.files[0]);
  });

  function hasFile(event) {
    return [...(event.dataTransfer?.types ?? [])].includes("Files");
  }

  // too large is said here, before megabytes travel; the server checks again
  function send(file) {
    if (!file) return;
    const most = Number(form.dataset.most);
    if (file.size > most) {
      input.value = "";
      return say(`${file.name} has ${(file.size / 1e6).toFixed(1)} MB; one message may have ${(most / 1048576).toFixed(0)} MB. Nothing was stored.`);
    }
    error.hidden = true;
    name.textContent = `Storing ${file.name}`;
    form.requestSubmit();
  }

  function say(text) {
    error.hidden = false;
    error.textContent = text;
  }
})();
