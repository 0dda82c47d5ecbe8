// Times relative to now, in the reader's language and zone, and clocks that run. A clock of the browser that is wrong does
// not matter: all are measured from the server's.
const UNITS = /** @type {[Intl.RelativeTimeFormatUnit, number][]} */ ([["year", 31536000], ["month", 2592000], ["day", 86400], ["hour", 3600], ["minute", 60]]);
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "narrow" });
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
let ahead = Date.now() - Date.parse(document.body.dataset.now || new Date().toISOString());

/** @param {number} now the server's clock, in ms */
export function setServerNow(now) {
  ahead = Date.now() - now;
}

/** `3 min. ago`, `in 2 hr.` @param {number} ms from now */
export function fromNow(ms) {
  const seconds = Math.round(ms / 1000);
  for (const [unit, length] of UNITS) {
    if (Math.abs(seconds) >= length) return relative.format(Math.trunc(seconds / length), unit);
  }
  return Math.abs(seconds) < 5 ? relative.format(0, "second") : relative.format(seconds, "second");
}

/** `2 min 10 s`, as the server writes durations. @param {number} ms */
export function duration(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  if (hours) return `${hours} h ${minutes} min`;
  return minutes ? `${minutes} min ${seconds % 60} s` : `${seconds} s`;
}

export function showTimes() {
  const now = Date.now() - ahead;
  for (const each of /** @type {NodeListOf<HTMLTimeElement>} */ (document.querySelectorAll("time[data-as]"))) {
    const at = Date.parse(each.dateTime);
    const text = each.dataset.as === "clock" ? duration(now - at) : fromNow(at - now);
    if (each.textContent !== text) each.textContent = text;
    if (!each.title) each.title = exact.format(at);
  }
}

showTimes();
setInterval(showTimes, 1000);
document.addEventListener("htmx:after:swap", showTimes);
