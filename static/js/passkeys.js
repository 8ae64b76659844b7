// Passkeys: a button [data-passkey] fetches what is to be signed, asks the browser, and sends its form with the answer in it.
(() => {
  const can = window.PublicKeyCredential && "parseRequestOptionsFromJSON" in PublicKeyCredential;

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-passkey]");
    if (!button) return;
    event.preventDefault();
    use(button).catch((error) => say(button, error));
  });
  document.addEventListener("htmx:afterSettle", offer);
  offer();

  // what only such a browser can do is not shown to others
  function offer() {
    if (can) for (const each of document.querySelectorAll("[data-passkey-only][hidden]")) each.hidden = false;
  }

  async function use(button) {
    if (button.getAttribute("aria-disabled") === "true") return;
    button.setAttribute("aria-disabled", "true");
    const form = button.form;
    const headers = { "X-CSRFToken": form.elements.csrfmiddlewaretoken.value, Accept: "application/json" };
    const answer = await fetch(button.dataset.passkey, { method: "POST", headers });
    if (answer.status === 403) return location.assign(`/confirm?next=${encodeURIComponent(location.pathname)}`);
    if (answer.redirected || !answer.ok) return location.reload(); // signed out meanwhile
    const options = await answer.json();
    const credential =
      form.dataset.makes === "passkey"
        ? await navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(options) })
        : await navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(options) });
    form.elements.credential.value = JSON.stringify(credential.toJSON());
    HTMLFormElement.prototype.submit.call(form); // whatever its fields are called
  }

  function say(button, error) {
    button.removeAttribute("aria-disabled");
    const place = button.form.querySelector("[data-passkey-said]");
    place.hidden = false;
    place.textContent = error.name === "InvalidStateError" ? "This device has a passkey for you already." : place.dataset.passkeySaid;
  }
})();
