// The pages work without this module. It adds copy buttons, the reader's own time zone and the
// key "/".

/** enhance adds what needs a script to the elements below an element. */
export function enhance(root = document) {
  for (const button of root.querySelectorAll("[data-copy]")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.previousElementSibling.textContent);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  }
  for (const button of root.querySelectorAll("[data-all]")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      const boxes = [...button.form.querySelectorAll("input[name=run]")];
      const check = !boxes.every((box) => box.checked);
      for (const box of boxes) box.checked = check;
    });
  }
  for (const place of root.querySelectorAll(".table, .scroll, .card, .card details, pre")) scrollers.observe(place);
  refreshTimes(root);
}

// The keyboard reaches what scrolls and has nothing else to focus.
const scrollers = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const scrolls = (target.scrollWidth > target.clientWidth || target.scrollHeight > target.clientHeight) && getComputedStyle(target).overflowX !== "visible";
    if (scrolls && !target.hasAttribute("tabindex")) {
      target.tabIndex = 0;
      target.dataset.scrolls = "";
    } else if (!scrolls && "scrolls" in target.dataset) {
      target.removeAttribute("tabindex");
      delete target.dataset.scrolls;
    }
  }
});

const units = [["d", 172800, 86400], ["h", 3600, 3600], ["min", 60, 60], ["s", 0, 1]];

/** relative returns the time between a date and now in its largest unit. */
function relative(ms) {
  const s = Math.abs(ms) / 1000;
  if (s < 2) return "now";
  const [unit, , divisor] = units.find(([, from]) => s >= from);
  const text = `${Math.floor(s / divisor)} ${unit}`;
  return ms < 0 ? `in ${text}` : `${text} ago`;
}

/** refreshTimes updates the relative times below an element. */
export function refreshTimes(root = document) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (!time.dataset.zone) {
      time.dataset.zone = "1";
      time.title += `\n${at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "long" })}`;
    }
    const text = relative(Date.now() - at);
    if (time.textContent !== text) time.textContent = text;
  }
}
enhance();
setInterval(() => { if (!document.hidden) refreshTimes(); }, 5000);

// Live change. One tab of the browser reads the stream of changes and relays them to the others.
// A page that shows a changed run reads itself again and replaces the parts that differ.

const page = document.querySelector("main[data-live]");
const root = document.querySelector('link[rel="stylesheet"]').getAttribute("href").replace(/static\/.*/, "");
const dot = document.querySelector("[data-live-dot]");

if (page && dot) {
  const bus = new BroadcastChannel("sortie-console");
  const kept = new Map(); // the markup of each part as the server sent it
  let paused = false, dirty = false, reading = false, timer = 0, last = 0;

  const show = (state) => {
    dot.hidden = false;
    dot.dataset.liveDot = paused ? "paused" : state;
    dot.textContent = paused ? "Paused" : { open: "Live", lost: "Reconnecting" }[state];
  };
  let state = "lost";
  dot.addEventListener("click", () => {
    paused = !paused;
    dot.setAttribute("aria-pressed", String(paused));
    show(state);
    if (!paused && dirty) schedule();
  });

  const concerns = (change) => {
    const run = page.dataset.live;
    if (!change.runId) return change.type !== "";
    const graph = run.slice(run.indexOf(":")); // runs of jobs that come after each other have the same end of their ids
    return run === "" || run === change.runId || change.runId.endsWith(graph[0] === ":" ? graph : `:${run}`) || Boolean(page.querySelector(`[href$="${CSS.escape(change.runId)}"]`));
  };

  /** schedule reads the page again, at most once a second, and not while it is hidden. */
  function schedule() {
    dirty = true;
    if (paused || document.hidden || timer || reading) return;
    timer = setTimeout(refresh, Math.max(150, last + 1000 - Date.now()));
  }

  async function refresh() {
    timer = 0;
    dirty = false;
    reading = true;
    last = Date.now();
    try {
      const response = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" });
      if (response.redirected && new URL(response.url).pathname.endsWith("/sign-in")) {
        location.assign(response.url);
        return;
      }
      if (!response.ok) return;
      const next = new DOMParser().parseFromString(await response.text(), "text/html");
      requestAnimationFrame(() => apply(next));
    } catch { // the server does not respond; the stream reports when it does
      dirty = true;
    } finally {
      reading = false;
      if (dirty) schedule();
    }
  }

  const markup = (part) => {
    const copy = part.cloneNode(true);
    for (const time of copy.querySelectorAll("time")) { time.textContent = ""; time.removeAttribute("title"); time.removeAttribute("data-zone"); }
    for (const field of copy.querySelectorAll('[name="key"]')) field.removeAttribute("value");
    for (const menu of copy.querySelectorAll("details")) menu.removeAttribute("open");
    for (const button of copy.querySelectorAll("[data-copy]")) button.hidden = true;
    return copy.outerHTML;
  };

  const busy = (part) => {
    const selection = getSelection();
    return part.contains(document.activeElement) || (!selection.isCollapsed && part.contains(selection.anchorNode));
  };

  function apply(next) {
    const list = page.querySelector("[data-rows]");
    for (const part of next.querySelectorAll("[data-part]")) {
      const here = document.getElementById(part.id);
      if (!here || here.closest("[data-rows]") && !list.contains(here)) continue;
      const text = markup(part);
      if (kept.get(part.id) === text || busy(here)) continue;
      kept.set(part.id, text);
      const open = [...here.querySelectorAll("details")].map((d) => d.open);
      const checked = here.querySelector("input[name=run]")?.checked;
      const fresh = document.adoptNode(part);
      [...fresh.querySelectorAll("details")].forEach((d, i) => { if (open[i] !== undefined) d.open = open[i]; });
      if (checked) fresh.querySelector("input[name=run]").checked = true;
      here.replaceWith(fresh);
      enhance(fresh);
    }
    const rows = next.querySelector("[data-rows]");
    const added = rows ? [...rows.children].filter((row) => row.id && !document.getElementById(row.id)) : [];
    const pill = page.querySelector("[data-new]");
    if (pill && (added.length > 0 || (!list && rows))) {
      pill.hidden = false;
      pill.textContent = added.length > 0 ? `${added.length} new` : "New runs";
    }
  }

  for (const part of page.querySelectorAll("[data-part]")) kept.set(part.id, markup(part));
  page.querySelector("[data-new]")?.addEventListener("click", () => location.reload());

  // The stream begins after the page was read. What is under way may have ended in between.
  let connected = false;
  const underWay = () => page.dataset.live ? !page.dataset.ended : page.querySelector("[data-run] .badge:is(.wait, .start, .run, .retry)");

  const receive = (message) => {
    if (message.state) show(state = message.state);
    if (message.state === "open" && !connected) {
      connected = true;
      if (underWay()) schedule();
    }
    if (message.again) schedule();
    if (message.change && concerns(message.change)) schedule();
  };
  bus.onmessage = (event) => receive(event.data);
  const relay = (message) => { bus.postMessage(message); receive(message); };

  function lead() {
    let wait = 1000, lost = false;
    const connect = () => {
      const source = new EventSource(`${root}stream`);
      source.onopen = () => {
        wait = 1000;
        relay({ state: "open", again: lost });
        lost = false;
      };
      source.addEventListener("change", (event) => relay({ change: JSON.parse(event.data) }));
      source.onerror = () => {
        lost = true;
        relay({ state: "lost" });
        if (source.readyState !== EventSource.CLOSED) return; // it reconnects by itself
        relay({ again: true }); // the session may have ended
        setTimeout(connect, wait);
        wait = Math.min(2 * wait, 30000);
      };
    };
    connect();
    return new Promise(() => {}); // until the tab closes
  }
  if (navigator.locks) {
    navigator.locks.request("sortie-console-stream", lead);
    relay({ hello: true });
    bus.addEventListener("message", (event) => { if (event.data.hello && state === "open") bus.postMessage({ state }); });
  } else {
    lead();
  }
  document.addEventListener("visibilitychange", () => { if (!document.hidden && dirty) schedule(); });
}

const end = document.querySelector("ol.log[data-end]");
if (end && !location.hash.startsWith("#L")) end.scrollTop = end.scrollHeight;

// The log of a run that has not ended: its lines are appended as they come.

const log = document.querySelector("ol.log[data-follow]");
if (log) {
  const most = 5000;
  let reader = null, queue = "", timer = 0, rest = 0;

  // A log that grows fast is painted less often, so that the page stays free for its reader.
  const paint = () => {
    const began = performance.now();
    timer = 0;
    const end = queue.lastIndexOf("\n") + 1;
    let from = end, added = 0;
    for (; added < most && from > 0; added++) from = queue.lastIndexOf("\n", from - 2) + 1;
    const whole = queue.slice(from, end);
    queue = queue.slice(end);
    const below = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
    if (added === most) log.replaceChildren();
    for (let n = log.childElementCount + added; n > most; n--) log.firstElementChild.remove(); // counting again after each would be slow
    log.insertAdjacentHTML("beforeend", whole); // the server has escaped each line
    if (below) log.scrollTop = log.scrollHeight;
    log.previousElementSibling?.querySelector("[data-none]")?.remove();
    rest = 4 * (performance.now() - began);
  };

  async function follow() {
    if (reader || document.hidden) return;
    reader = new AbortController();
    const signal = reader.signal;
    let wait = 1000;
    while (!signal.aborted) {
      const after = Number(log.lastElementChild?.id.slice(1) ?? 0);
      try {
        const response = await fetch(`${log.dataset.follow}&after=${after}`, { signal, cache: "no-store" });
        if (!response.ok || response.redirected) return;
        const text = response.body.pipeThrough(new TextDecoderStream()).getReader();
        for (;;) {
          const { done, value } = await text.read();
          if (done) break;
          wait = 1000;
          queue += value;
          timer ||= setTimeout(() => requestAnimationFrame(paint), rest);
        }
        if (document.querySelector("main").dataset.ended) return;
      } catch { // the server has left, or the tab is hidden
        queue = "";
      }
      if (!signal.aborted) await new Promise((resolve) => { setTimeout(resolve, wait); });
      wait = Math.min(2 * wait, 30000);
    }
  }
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) { follow(); return; }
    reader?.abort();
    reader = null;
  });
  follow();
}

// "/" goes to the search, unless the reader writes something.
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, [contenteditable]")) return;
  const search = document.querySelector(".find input");
  if (!search) return;
  event.preventDefault();
  search.focus();
  search.select();
});
