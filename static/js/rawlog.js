// The raw log: which row is open, the newest row, and rows that came since. New rows are appended only for a reader who is at the end;
// for anybody else the foot says how many there are. The socket only says how far the log goes (#event-head).
(() => {
  const AT_END = 24; // pixels from the end that still count as the end
  const table = () => document.querySelector(".vtable");
  const rows = () => document.getElementById("event-rows");

  document.addEventListener("htmx:afterSettle", () => mark());
  document.addEventListener("htmx:wsAfterMessage", () => news());
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-newest]")) newest();
    if (event.target.closest("[data-news]")) fetchNew(true);
  });
  addEventListener("DOMContentLoaded", () => opened());

  // an event's own address: its row beside its panel; on a narrow screen, where the panel is below the log, the panel itself
  function opened() {
    if (wide()) {
      document.querySelector("[data-row][aria-selected]")?.scrollIntoView({ block: "nearest" });
      if (atEnd()) toEnd();
      return;
    }
    if (/\/events\/\d+$/.test(location.pathname)) document.getElementById("event-detail")?.scrollIntoView({ block: "start" });
  }

  function atEnd() {
    const box = table();
    return box && box.scrollTop + box.clientHeight >= box.scrollHeight - AT_END;
  }

  // the end of the log, with as much room after it as leaves no row cut under the head
  function toEnd() {
    const box = table();
    const list = box.querySelector("table");
    if (list) list.style.marginBlockEnd = "";
    box.scrollTop = box.scrollHeight;
    if (!list || !wide()) return;
    const edge = list.tHead.getBoundingClientRect().bottom;
    const first = [...rows().children].find((row) => row.getBoundingClientRect().bottom > edge + 1)?.getBoundingClientRect();
    if (!first || first.top > edge - 1) return;
    list.style.marginBlockEnd = `${first.bottom - edge}px`;
    box.scrollTop = box.scrollHeight;
  }

  // the panel stands beside the log; on a narrow screen it is below it, and nothing scrolls by itself
  function wide() {
    return matchMedia("(min-width: 75.0625rem)").matches;
  }

  // the row of the event that the panel shows
  function mark() {
    const seq = document.getElementById("event-detail")?.dataset.shows;
    if (!seq) return;
    for (const row of document.querySelectorAll("[data-row]")) {
      const open = row.dataset.row === seq;
      if (open) row.setAttribute("aria-selected", "true");
      else row.removeAttribute("aria-selected");
      const link = row.querySelector("[data-item]");
      if (open) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
      if (open && wide()) row.scrollIntoView({ block: "nearest" });
    }
  }

  function newest() {
    const last = rows()?.lastElementChild?.querySelector("[data-item]");
    if (!last) return;
    toEnd();
    last.focus({ preventScroll: true });
    last.click();
  }

  function news() {
    const head = Number(document.getElementById("event-head")?.dataset.head || 0);
    const last = Number(rows()?.lastElementChild?.dataset.row || 0);
    const button = document.querySelector("[data-news]");
    if (!button || !head || head <= last) return;
    if (atEnd()) return fetchNew(true);
    button.hidden = false;
    button.textContent = `${head - last} new`;
  }

  async function fetchNew(follow) {
    const form = document.getElementById("events-filter");
    const last = rows()?.lastElementChild?.dataset.row;
    if (!form || !last) return;
    const query = new URLSearchParams(new FormData(form));
    query.set("part", "rows");
    query.set("after", last);
    await htmx.ajax("GET", `${form.getAttribute("action")}?${query}`, { target: "#event-rows", swap: "beforeend" });
    const button = document.querySelector("[data-news]");
    if (button) button.hidden = true;
    if (follow) toEnd();
  }
})();
