// The page's event stream. Used by writing ws-connect="/ws/runs/…?after=33" on an element; htmx draws what comes.
// The extension would open one fixed URL and give up on most close codes. This socket asks again from the last seq it drew,
// on every close code, with growing pauses. It tells the page by:
//   <html data-live="open|connecting|lost|ended">, an event `handrail:live` on document ({state, seq, retryAt}), and one `handrail:beat`
//   for each heartbeat,
//   [data-live-indicator] (word in [data-live-text], or in itself), [data-live-seq] for people and [data-live-cursor] for machines,
//   [data-live-notice] after 3 s.
// A message is HTML with data-seq on a fragment; one whose seq was drawn before is dropped, if the URL has a cursor (`after`). [data-live-end] in it says that nothing follows.
// An empty message or comment is a heartbeat: once one was heard, 45 s of silence count as a lost connection.
(() => {
  const NOTICE_AFTER = 3000, CONNECT_WITHIN = 10000, SILENCE = 45000, ASLEEP = 150000, STEADY = 5000;
  const PAUSES = [500, 1000, 2000, 4000, 8000, 15000];
  // close codes 4400…4599 are refusals, 4000 + the HTTP status: asking again rarely helps, reloading the page does
  const REFUSED = { 4401: "You are signed out.", 4403: "You may no longer see this.", 4404: "This is no longer here." };
  const sockets = new Set();
  let drawing = null;

  class SteadySocket extends EventTarget {
    constructor(url) {
      super();
      this.url = new URL(url);
      this.counts = this.url.searchParams.has("after"); // a stream without a cursor (the inbox: many runs) sends what is true now
      this.seq = Number(this.url.searchParams.get("after"));
      this.attempt = 0;
      this.state = "connecting";
      this.word = "Connection lost.";
      this.refused = false;
      this.lostAt = Date.now();
      sockets.add(this);
      this.open();
    }

    // what the extension reads of a WebSocket
    get OPEN() { return WebSocket.OPEN; }
    get readyState() { return this.state === "open" ? WebSocket.OPEN : this.state === "closed" ? WebSocket.CLOSED : WebSocket.CONNECTING; }
    send(text) { this.socket.send(text); }
    close() { this.end("closed"); }

    open() {
      this.drop();
      this.retryAt = null;
      if (this.counts) this.url.searchParams.set("after", this.seq);
      const socket = (this.socket = new WebSocket(this.url));
      this.beats = false;
      this.heardAt = Date.now();
      this.timer = setTimeout(() => this.lost(), CONNECT_WITHIN);
      socket.onopen = (event) => this.opened(event);
      socket.onmessage = ({ data }) => this.heard(data);
      socket.onclose = ({ code }) => this.lost(code);
      tell();
    }

    opened(event) {
      this.state = "open";
      this.refused = false;
      this.heardAt = Date.now();
      clearTimeout(this.timer);
      this.timer = setTimeout(() => (this.attempt = 0), STEADY);
      this.onopen?.(event);
      tell();
    }

    heard(data) {
      this.heardAt = Date.now();
      const html = typeof data === "string" ? data.trim() : "";
      if (!html || /^<!--[^>]*-->$/.test(html)) {
        this.beats = true;
        document.dispatchEvent(new CustomEvent("handrail:beat"));
        return;
      }
      const message = document.createElement("template");
      message.innerHTML = html;
      const seq = this.counts ? highest(message.content) : 0;
      if (seq && seq <= this.seq) return;
      leaveOut(message.content);
      if (!this.draw(message.innerHTML)) return this.lost(); // not drawn, so asked for again
      this.attempt = 0; // it brought something, so if it is cut off now, come back at once
      this.seq = Math.max(this.seq, seq);
      if (message.content.querySelector("[data-live-end]")) this.end("ended");
      tell();
    }

    draw(html) {
      if (!html.trim()) return true;
      drawing = this;
      this.drawn = false;
      this.dispatchEvent(new MessageEvent("message", { data: html }));
      drawing = null;
      return this.drawn || !this.connected;
    }

    get connected() { return this.state === "open"; }

    lost(code) {
      if (this.state === "closed" || this.state === "ended") return;
      this.drop();
      if (this.state === "open") this.lostAt = Date.now();
      this.state = "lost";
      this.refused = code >= 4400 && code < 4600;
      this.word = REFUSED[code] ?? (this.refused ? "The server does not go on from here." : "Connection lost.");
      const pause = this.refused ? PAUSES.at(-1) : PAUSES[Math.min(this.attempt, PAUSES.length - 1)];
      this.attempt += 1;
      const jittered = pause * (0.8 + 0.4 * Math.random()); // many viewers must not all come back at once
      this.retryAt = Date.now() + jittered;
      this.timer = setTimeout(() => this.open(), jittered);
      tell();
    }

    end(state) {
      this.state = state;
      this.drop();
      if (state === "closed") sockets.delete(this);
      tell();
    }

    drop() {
      clearTimeout(this.timer);
      if (!this.socket) return;
      this.socket.onopen = this.socket.onmessage = this.socket.onclose = null;
      this.socket.close();
      this.socket = null;
    }

    // the network or the lid came back: do not sit out the pause
    now() {
      if (this.state === "lost") this.open();
    }

    // the browser has no network: a socket may hear nothing of that, not even its close
    cut() {
      if (this.state === "open") this.lost();
    }

    check(slept) {
      if (this.state === "open" && (slept || (this.beats && Date.now() - this.heardAt > SILENCE))) this.lost();
    }
  }

  htmx.createWebSocket = (url) => new SteadySocket(url);
  document.addEventListener("htmx:wsAfterMessage", () => drawing && (drawing.drawn = true));

  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-live-retry]")) return;
    if (worst()?.refused) location.reload();
    else each("now");
  });
  addEventListener("online", () => each("now"));
  addEventListener("offline", () => each("cut"));
  addEventListener("pageshow", (event) => event.persisted && each("now"));
  document.addEventListener("visibilitychange", () => document.hidden || each("now"));

  let tick = Date.now();
  setInterval(() => {
    const slept = Date.now() - tick > ASLEEP;
    tick = Date.now();
    each("check", slept);
    if (sockets.size) show();
  }, 1000);

  function each(verb, ...args) {
    for (const socket of [...sockets]) socket[verb](...args);
  }

  // the page shows the worst of its sockets; there is normally one
  function worst() {
    const order = ["lost", "connecting", "open", "ended"];
    return [...sockets].sort((a, b) => order.indexOf(a.state) - order.indexOf(b.state))[0];
  }

  function tell() {
    const socket = worst();
    const state = socket?.state ?? "";
    if (state) document.documentElement.dataset.live = state;
    else delete document.documentElement.dataset.live;
    document.dispatchEvent(new CustomEvent("handrail:live", { detail: socket && { state, seq: socket.seq, retryAt: socket.retryAt } }));
    show();
  }

  function show() {
    const socket = worst();
    for (const indicator of document.querySelectorAll("[data-live-indicator]")) indicate(indicator, socket);
    for (const place of document.querySelectorAll("[data-live-seq]")) if (socket?.counts) write(place, socket.seq.toLocaleString("en"));
    for (const place of document.querySelectorAll("[data-live-cursor]")) if (socket?.counts) write(place, String(socket.seq));
    for (const notice of document.querySelectorAll("[data-live-notice]")) note(notice, socket);
  }

  function indicate(indicator, socket) {
    indicator.hidden = !socket;
    if (!socket) return;
    const on = socket.state === "open" || (socket.state === "connecting" && socket.attempt === 0);
    const word = socket.state === "ended" ? "Complete" : on ? "Live" : "Not live";
    indicator.dataset.live = socket.state === "ended" ? "ended" : on ? "on" : "off";
    const place = indicator.querySelector("[data-live-text]") ?? (indicator.childElementCount ? null : indicator);
    if (place) write(place, word);
  }

  function note(notice, socket) {
    const away = socket && (socket.state === "lost" || socket.state === "connecting");
    const late = away && (socket.refused || Date.now() - socket.lostAt >= NOTICE_AFTER); // a refusal does not pass by itself
    if (late) {
      write(notice.querySelector("[data-live-word]"), socket.word);
      write(notice.querySelector("[data-live-next]"), (socket.seq + 1).toLocaleString("en"));
      write(notice.querySelector("[data-live-when]"), when(socket));
      write(notice.querySelector("[data-live-retry]"), socket.refused ? "Reload the page" : "Try now");
    }
    if (notice.hidden === !late) return;
    notice.hidden = !late;
    // read out once each way, without a number that changes
    handrail.say(late ? `${socket.word} Trying again.` : "Connected again.");
  }

  function when(socket) {
    if (socket.state === "connecting") return "Trying now";
    const seconds = Math.max(1, Math.round((socket.retryAt - Date.now()) / 1000));
    return `Trying again in ${seconds} second${seconds === 1 ? "" : "s"}`;
  }

  function write(place, text) {
    if (place && place.textContent !== text) place.textContent = text;
  }

  // what is about something that is no longer open: it was under way while the reader went on
  function leaveOut(content) {
    for (const part of [...content.children]) {
      if (part.id && part.getAttribute("hx-swap-oob") === "morph" && !document.getElementById(part.id)) part.remove();
    }
  }

  function highest(root) {
    return Math.max(0, ...[...root.querySelectorAll("[data-seq]")].map((element) => Number(element.dataset.seq) || 0));
  }
})();
