// <time datetime data-time> in words: the viewer's zone, "ago", countdowns. The server's text (absolute, UTC) stays true without this.
// Everything is counted by the server's clock: <meta name="now"> says how far the viewer's is off.
(() => {
  const MINUTE = 60e3, HOUR = 60 * MINUTE, DAY = 24 * HOUR;
  const HOT = 15 * MINUTE;
  const skew = clockSkew();
  const clock = format({ hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  const clockSeconds = format({ hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
  const day = format({ day: "numeric", month: "short" });
  const dayYear = format({ day: "numeric", month: "short", year: "numeric" });
  const whole = format({ dateStyle: "full", timeStyle: "long" });

  const WORDS = {
    ago,
    clock: (at) => dated(at, clock),
    "clock-s": (at) => dated(at, clockSeconds),
    "so-far": (at) => `${span(now() - at)} so far`,
    "left-short": (at) => left(at, ""),
    "left-left": (at) => left(at, " left"),
    "left-long": (at) => (at <= now() ? left(at, "") : near(at) ? `${left(at, " left")}, until ${clock.format(at)}` : `Until ${relativeDay(at)}, ${clock.format(at)}`),
  };

  const drawn = new WeakMap(); // time → [datetime, text], so that a clock is worded once
  let today = new Date(now()).toDateString();

  draw(document.documentElement);
  setInterval(tick, 1000);
  document.addEventListener("visibilitychange", tick);
  // pushed and swapped parts, before they are painted
  new MutationObserver((changes) => {
    for (const { type, target, addedNodes } of changes) {
      const time = (target.nodeType === 1 ? target : target.parentElement)?.closest("time[data-time]");
      if (time) word(time);
      else if (type === "childList") for (const node of addedNodes) if (node.nodeType === 1) draw(node);
    }
  }).observe(document.documentElement, { childList: true, subtree: true, characterData: true });

  window.handrail = window.handrail || {};
  handrail.now = now;
  handrail.span = span;

  // each second what counts; at midnight every clock too, for its date
  function tick() {
    if (document.hidden) return;
    const newDay = today !== (today = new Date(now()).toDateString());
    for (const time of document.querySelectorAll(newDay ? "time[data-time]" : "time[data-time]:not([data-time^='clock'])")) word(time);
    for (const fuse of document.querySelectorAll(".fuse[data-until]")) burn(fuse);
  }

  function draw(root) {
    for (const time of root.querySelectorAll("time[data-time]")) word(time);
    for (const fuse of root.querySelectorAll(".fuse[data-until]")) burn(fuse);
    if (root.matches("time[data-time]")) word(root);
    if (root.matches(".fuse[data-until]")) burn(root);
  }

  function word(time) {
    const at = Date.parse(time.dateTime);
    const words = WORDS[time.dataset.time];
    if (!words || Number.isNaN(at)) return;
    const [before, text] = drawn.get(time) ?? [];
    const fresh = words(at);
    if (before === time.dateTime && text === fresh && time.textContent === fresh) return;
    drawn.set(time, [time.dateTime, fresh]);
    if (time.textContent !== fresh) time.textContent = fresh;
    if (before !== time.dateTime) time.title = whole.format(at);
  }

  // as `left_of` and `is_hot` on the server: one scale for all bars, amber for the last quarter of an hour
  function burn(fuse) {
    const since = Date.parse(fuse.dataset.since), until = Date.parse(fuse.dataset.until);
    const rest = Math.max(until - now(), 0), length = until - since;
    const share = length <= HOT ? rest / length : Math.log1p(rest / HOT) / Math.log1p(DAY / HOT);
    const percent = rest === 0 ? 0 : length <= 0 ? 100 : Math.min(100, Math.max(1, Math.round(100 * share)));
    if (fuse.dataset.p !== String(percent)) fuse.dataset.p = percent;
    const hot = rest <= HOT && rest * 2 <= length;
    if (fuse.classList.contains("hot") !== hot) fuse.classList.toggle("hot", hot);
  }

  function ago(at) {
    const past = now() - at;
    if (past < 5e3) return "just now";
    return past < 7 * DAY ? `${span(past)} ago` : dayYear.format(at);
  }

  function left(at, word) {
    const rest = at - now();
    if (rest <= 0) return "Time is up";
    if (!near(at)) return capital(relativeDay(at));
    return span(rest) + word;
  }

  // near: counted down in hours; further away: named by its day
  function near(at) {
    return at - now() < 12 * HOUR || relativeDay(at) === "today";
  }

  function relativeDay(at) {
    const midnight = new Date(now());
    midnight.setHours(0, 0, 0, 0);
    const days = Math.floor((at - midnight) / DAY);
    return days === 0 ? "today" : days === 1 ? "tomorrow" : day.format(at);
  }

  function dated(at, time) {
    const today = new Date(now()).toDateString() === new Date(at).toDateString();
    const year = new Date(now()).getFullYear() === new Date(at).getFullYear();
    return today ? time.format(at) : `${(year ? day : dayYear).format(at)}, ${time.format(at)}`;
  }

  // as `spell` on the server: 0.4 s, 38 s, 4 min, 2 h 10, 3 days
  function span(ms) {
    const seconds = Math.max(ms, 0) / 1000;
    if (seconds < 59.5) return `${Math.round(seconds)} s`;
    const minutes = seconds < 3570 ? Math.round(seconds / 60) : Math.floor(seconds / 60);
    if (minutes < 60) return `${minutes} min`;
    const hours = Math.floor(minutes / 60);
    if (hours < 24) return minutes % 60 ? `${hours} h ${String(minutes % 60).padStart(2, "0")}` : `${hours} h`;
    const days = Math.floor(hours / 24);
    return days > 1 ? `${days} days` : "1 day";
  }

  function now() {
    return Date.now() + skew;
  }

  // a page takes a moment to arrive, so a small difference says nothing
  function clockSkew() {
    const server = Date.parse(document.querySelector('meta[name="now"]')?.content ?? "");
    const entry = performance.getEntriesByType("navigation")[0];
    const asked = Date.now() - performance.now() + (entry?.responseStart ?? 0); // by the clock that is shown, which timeOrigin need not follow
    const off = server - asked;
    return Number.isNaN(off) || Math.abs(off) < 5e3 ? 0 : off;
  }

  function format(options) {
    return new Intl.DateTimeFormat("en-GB", options);
  }

  function capital(text) {
    return text[0].toUpperCase() + text.slice(1);
  }
})();
