// Follows the stream of events while the page is visible, and says how many are new. Rows do not
// move: a link shows the new ones.

const place = document.querySelector("[data-follow]");
if (place && globalThis.EventSource) {
  let source;
  let count = 0;
  let cursor = "";
  const follow = () => {
    if (document.hidden) {
      source?.close();
      source = undefined;
      return;
    }
    if (source) return;
    const url = new URL(place.dataset.follow, location.href);
    url.searchParams.set("as", "message");
    if (cursor) url.searchParams.set("after", cursor);
    source = new EventSource(url);
    source.onopen = () => { place.dataset.live = "on"; };
    source.onerror = () => { place.dataset.live = "off"; };
    source.onmessage = add;
  };
  const add = (event) => {
    cursor = event.lastEventId;
    count++;
    place.querySelector("a").hidden = false;
    place.querySelector("a").textContent = `Show ${count > 999 ? "999+" : count} new`;
  };
  document.addEventListener("visibilitychange", follow);
  follow();
}
