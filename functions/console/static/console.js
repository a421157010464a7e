// The pages work without this module. It adds copy buttons, the reader's own time zone and the
// keys "/" and "?".

for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(button.previousElementSibling.textContent);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
}

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
refreshTimes();
setInterval(() => { if (!document.hidden) refreshTimes(); }, 5000);
