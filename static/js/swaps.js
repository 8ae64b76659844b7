// What a swap must not take away: the place you are in, what you typed, what you opened, where the focus is.
(() => {
  const FIELD = "input, textarea, select";
  const dirty = new WeakSet();
  const remembered = new Map(); // what was typed in a field that is gone for now, by its name

  Object.assign(Idiomorph.defaults.callbacks, { beforeNodeMorphed: mayMorph, beforeAttributeUpdated: mayChange });

  // hx-swap="morph" and "morph:innerHTML", also out of band: what is the same stays the same element
  const STYLES = { morph: "outerHTML", "morph:outerHTML": "outerHTML", "morph:innerHTML": "innerHTML" };
  // htmx looks for the extension above whoever asked. If a push took that element away meanwhile it finds none, and would put the answer
  // into the target instead of in its place: then swap plainly.
  document.addEventListener("htmx:beforeSwap", ({ detail }) => {
    const asked = detail.requestConfig && detail.requestConfig.elt;
    const style = asked && !asked.isConnected && STYLES[asked.getAttribute("hx-swap")];
    if (style) detail.swapOverride = style;
  });
  // a whole page of which a part is shown here brings its title too, and that is not the title here, unless the reader goes there
  document.addEventListener("htmx:beforeSwap", ({ detail }) => {
    const goes = detail.requestConfig?.elt.closest("[hx-push-url], [hx-replace-url]");
    if (!goes && /^\s*<!doctype/i.test(detail.serverResponse)) detail.ignoreTitle = true;
  });
  htmx.defineExtension("morph", {
    isInlineSwap: (style) => STYLES[style] === "outerHTML",
    handleSwap: (style, target, fragment) => STYLES[style] && Idiomorph.morph(target, fragment.children, { morphStyle: STYLES[style] }),
  });

  document.addEventListener("input", (event) => event.target.form && dirty.add(event.target.form));
  document.addEventListener("reset", (event) => dirty.delete(event.target));
  document.addEventListener("htmx:oobBeforeSwap", (event) => around(event.detail.target));
  document.addEventListener("htmx:beforeSwap", (event) => refused(event) || around(event.detail.target, sent(event.detail)));
  document.addEventListener("htmx:sendError", unanswered);
  document.addEventListener("htmx:timeout", unanswered);
  // what was to come does not come: no shape of it, but the way to it
  document.addEventListener("htmx:afterRequest", ({ target, detail }) => {
    const came = detail.xhr.status >= 200 && detail.xhr.status < 400;
    if (!came) for (const shape of target.querySelectorAll?.(".skeleton") ?? []) shape.hidden = true;
  });
  // of an outerHTML swap the target is gone, and the event is at what came for it
  document.addEventListener("htmx:afterSwap", ({ target, detail }) => detail.elt && focusNew(detail.target.isConnected ? detail.target : target));
  // the same for a page that came whole: before its scripts ran, or of a form that was posted without them
  if (!location.hash) focusNew(document);

  // never live: a form you are in or have written in, an open dialog or menu. data-over on the new one says that it was overtaken.
  function mayMorph(old, fresh) {
    if (old.nodeType !== 1) return true;
    if (old.matches("dialog[open], [popover]:popover-open, [data-reveal]")) return false; // what is revealed has a time of its own
    if (old.matches("form") && !fresh.hasAttribute?.("data-over")) return !dirty.has(old) && !writingIn(old);
    return true;
  }

  // a fold stays as the reader left it
  function mayChange(name, element) {
    return !(name === "open" && element.matches("details, dialog"));
  }

  function writingIn(form) {
    const active = document.activeElement;
    return form.contains(active) && active.matches(FIELD) && !active.matches("[type=submit], [type=button]");
  }

  // the swap itself is synchronous, so a microtask comes right after it and before the page is painted
  function around(target, sentForm) {
    if (!target) return;
    const going = (form) => form && (form === sentForm || form.matches(".htmx-request")); // sent, or on its way: an answer brings back what was refused
    const kept = typed(target).filter(([field]) => !going(field.form)).map(([field, value]) => [field.dataset.kept, value]);
    const focus = focused(target);
    queueMicrotask(() => { restore(kept); refocus(focus); });
  }

  // [data-kept="name"]: what was typed there comes back in the field of that name that replaces it
  function typed(target) {
    return [...target.querySelectorAll("[data-kept]")].filter((field) => field.value).map((field) => [field, field.value]);
  }

  // the form whose words were taken: they are not typed any more
  function sent(detail) {
    const asked = detail.requestConfig;
    return asked?.verb === "post" && detail.xhr.status < 400 ? asked.elt.closest("form") : null;
  }

  function restore(kept) {
    for (const [name, value] of kept) remembered.set(name, value);
    for (const field of document.querySelectorAll("[data-kept]")) {
      if (!field.value && remembered.has(field.dataset.kept)) field.value = remembered.get(field.dataset.kept);
      remembered.delete(field.dataset.kept);
    }
  }

  function focused(target) {
    const active = document.activeElement;
    if (!active || active === document.body || !target.contains(active)) return null;
    return { active, id: active.id, name: active.name, home: target.id || target.closest("[id]")?.id };
  }

  // the same thing, else its replacement's heading: the focus is never lost to the top of the page
  function refocus(was) {
    if (!was || was.active.isConnected) return;
    if (document.activeElement && document.activeElement !== document.body) return; // the answer asked for it meanwhile
    const home = document.getElementById(was.home) ?? document.getElementById("main");
    const same = (was.id && document.getElementById(was.id)) || (was.name && home?.querySelector(`[name="${CSS.escape(was.name)}"]`));
    (same || home?.querySelector("[data-focus], [tabindex='-1']") || home)?.focus({ preventScroll: true });
  }

  // an answer that asks for the focus: a refused form, the next action's heading
  function focusNew(target) {
    const place = target?.matches?.("[data-focus]") ? target : target?.querySelector?.("[data-focus]");
    if (!place) return;
    place.focus({ preventScroll: true }); // by itself a browser scrolls to where a bar that sticks would be without sticking
    const { top, bottom } = place.getBoundingClientRect();
    if (top < 0 || bottom > window.innerHeight) place.scrollIntoView({ block: "nearest" });
  }

  // Of an error with a fragment, the fragment is swapped as asked: the page knows better. Of a whole error page, its words are shown here.
  function refused({ detail }) {
    if (detail.xhr.status < 400) return false;
    detail.isError = false; // it is shown here; htmx would only write it to the console. So scripts ask for xhr.status, not for `successful`
    const html = detail.serverResponse;
    if (html && !/^\s*<!doctype/i.test(html)) {
      detail.shouldSwap = true;
      return false;
    }
    const page = new DOMParser().parseFromString(html, "text/html").querySelector("[data-refused]");
    if (!page) return unanswered({ detail });
    const note = clone("refused-note");
    note.querySelector("strong").textContent = page.querySelector("h1").textContent;
    note.querySelector("[data-text]").textContent = [...page.querySelectorAll("p:not(.row)")].map((p) => p.textContent.trim()).join(" ");
    show(note, asker(detail));
    return true;
  }

  // no answer: nobody knows whether it was recorded, so say that, and that repeating is safe
  function unanswered({ detail }) {
    if (detail.requestConfig?.verb === "get") return true;
    const note = clone("no-answer");
    show(note, asker(detail));
    note.querySelector("button").addEventListener("click", () => {
      note.remove();
      asker(detail).requestSubmit ? asker(detail).requestSubmit() : asker(detail).click();
    });
    return true;
  }

  // the form or button that asked; the event itself may be the target's
  function asker(detail) {
    return detail.requestConfig?.elt ?? detail.elt;
  }

  // beside the thing: the form's own [data-outcome], else the page's first
  function show(note, by) {
    const place = by?.closest("form")?.querySelector("[data-outcome]") ?? document.querySelector("#outcome, [data-outcome]");
    if (!place) return handrail.say(note.textContent);
    place.replaceChildren(note);
    note.focus();
  }

  function clone(id) {
    return document.getElementById(id).content.firstElementChild.cloneNode(true);
  }
})();
