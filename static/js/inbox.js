// The inbox: tells the server which action is open, what was looked at before a decision, and where the focus goes after it.
(() => {
  const BESIDE = window.matchMedia("(min-width: 60.0625rem)"); // the queue stands beside the action; else above it, and what was decided stays in sight
  let socket = null;
  let since = Date.now();
  let opened = new Set();
  let goal = null; // the row that has the focus since a decision, until the reader goes elsewhere
  let asking = ""; // the thread in which the reader asked last

  document.addEventListener("htmx:wsOpen", ({ detail }) => {
    socket = detail.socketWrapper;
    tell();
  });
  document.addEventListener("handrail:beat", () => tell(true));
  document.addEventListener("htmx:afterSettle", ({ detail }) => detail.target.id === "panel" && settled(detail));
  document.addEventListener("htmx:configRequest", ({ detail }) => detail.elt.matches("form[data-decides]") && witness(detail.parameters));
  document.addEventListener("htmx:configRequest", ({ detail }) => (detail.headers["Inbox-Shown"] = shown()));
  document.addEventListener("htmx:afterSettle", ({ detail }) => detail.target.id === "more" && tell());
  document.addEventListener("htmx:afterSettle", ({ detail }) => detail.target.id?.startsWith("thread-") && asked(detail));
  document.addEventListener("htmx:afterSettle", ({ detail }) => detail.target.id?.startsWith("decide-") && unlock());
  document.addEventListener("htmx:oobAfterSwap", ({ detail }) => pushed(detail.target));
  document.addEventListener("htmx:wsAfterMessage", () => queueMicrotask(follow)); // after what brings a lost focus back
  document.addEventListener("toggle", ({ target }) => target.matches?.("details[data-fold]") && target.open && opened.add(target.dataset.fold), true);
  document.addEventListener("change", ({ target }) => target.matches(".ack") && unlock());
  unlock();
  openInSight();

  function panel() {
    return document.getElementById("panel");
  }

  // which action is open, and as what it is drawn: the server pushes only what has changed since. With each heartbeat it is told again, so
  // that whatever a page missed is made good
  function tell(again = false) {
    const state = panel()?.querySelector("[data-drawn]")?.dataset.drawn;
    socket?.send(JSON.stringify({ open: panel()?.dataset.action ?? null, state: state ?? "", again, shown: shown() }));
  }

  // how many rows are there: of a reader who asked for more, what comes is drawn as long
  function shown() {
    return document.querySelectorAll("#queue [data-item]").length;
  }

  function settled(detail) {
    tell();
    unlock();
    if (detail.requestConfig?.verb === "post") return detail.xhr.status < 400 && goOn();
    since = Date.now();
    opened = new Set();
    goal = null;
  }

  // a page that was opened from elsewhere: its row is in sight within the queue, and nothing else moves
  function openInSight() {
    const queue = document.getElementById("queue");
    const row = queue?.querySelector("[aria-current=true]:is(.qi)");
    if (!row || !BESIDE.matches) return;
    const [here, all] = [row.getBoundingClientRect(), queue.getBoundingClientRect()];
    if (here.top >= all.top && here.bottom <= all.bottom) return;
    queue.scrollTop += here.top - all.top - (all.height - here.height) / 2;
    wholeOnTop(queue);
  }

  // below the head, which stays, a row begins: none is cut there
  function wholeOnTop(queue) {
    const edge = queue.querySelector(".queue__head").getBoundingClientRect().bottom;
    const cut = [...queue.querySelectorAll("li")].map((row) => row.getBoundingClientRect()).find((row) => row.top < edge - 1 && row.bottom > edge + 1);
    if (cut) queue.scrollTop += cut.top - edge;
  }

  // after a decision the focus is on the next row; the outcome stays where the bar was
  function goOn() {
    goal = next();
    goal?.focus({ preventScroll: true });
    if (BESIDE.matches) goal?.scrollIntoView({ block: "nearest" });
  }

  function next() {
    return document.getElementById(panel()?.querySelector("[data-next]")?.dataset.next)?.querySelector("a");
  }

  // what “Next in queue” names and what has the focus are one row, whatever came into the queue meanwhile; unless the reader went elsewhere
  function follow() {
    if (!goal) return;
    if (goal.isConnected && document.activeElement !== goal) return (goal = null);
    if (goal !== next()) goOn();
  }

  // what became of a question is in sight of who asked it, above the bar
  function asked(detail) {
    if (detail.requestConfig?.verb === "post" && detail.xhr.status < 400) asking = detail.target.id;
    inSight(detail.target.id);
  }

  function inSight(id) {
    if (id === asking) document.getElementById(id)?.querySelector("li.msg:last-child")?.scrollIntoView({ block: "nearest" });
  }

  function witness(parameters) {
    parameters.seconds = Math.round((Date.now() - since) / 1000);
    const open = [...panel().querySelectorAll("details[data-fold][open]")].map((fold) => fold.dataset.fold);
    parameters.opened = [...new Set([...opened, ...open])];
  }

  // a warning that needs a tick holds Approve back, and so does a freeze, which comes and goes while somebody decides; the server holds it
  // back as well
  function unlock() {
    const form = panel()?.querySelector("form.decide");
    const approve = form?.querySelector(".primary:is([value=approve], [value=approved])");
    if (!approve) return;
    const frozen = panel().querySelector("[data-frozen]") !== null;
    const ticked = [...form.querySelectorAll(".ack")].every((box) => box.checked);
    const says = form.querySelector("[data-while-frozen]"); // not there while something else locks it, which says so itself
    says?.toggleAttribute("hidden", !frozen);
    if (says) frozen ? approve.setAttribute("aria-describedby", says.id) : approve.removeAttribute("aria-describedby");
    approve.setAttribute("aria-disabled", String(!ticked || frozen || approve.hasAttribute("data-locked")));
  }

  // what came by itself: an action that replaced the open one is shown in its place; an empty inbox opens what arrives first
  function pushed(target) {
    if (target.id) inSight(target.id);
    unlock();
    const newer = target.querySelector?.("[data-newer]")?.dataset.newer;
    if (newer && panel().contains(target)) show(newer);
    const first = target.id === "queue" && panel()?.matches("[data-empty]:not([data-asks])") && document.querySelector("#queue [data-item]");
    if (first) show(first.getAttribute("href"));
  }

  function show(address) {
    htmx.ajax("GET", address, { source: panel(), target: "#panel", swap: "outerHTML" });
  }
})();
