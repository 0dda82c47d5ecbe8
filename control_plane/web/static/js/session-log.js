// The log of an order: pages, search, links to lines (#L120-L140), and following while it grows.
import { getPart } from "./parts.js";

const NEAR_END = 80;
const LINES = /^#L(\d+)(?:-L(\d+))?$/;
const log = () => document.getElementById("log");
const scroller = () => document.getElementById("panel-body") || document.scrollingElement;

/** @param {string} address */
async function show(address) {
  const old = log();
  const answer = await getPart(address);
  if (!old || !answer.ok) return;
  await htmx.swap({ target: old, text: await answer.text(), swap: "outerHTML", sourceElement: old });
  const hash = new URL(address, location.href).hash;
  if (hash) history.replaceState(null, "", hash);
  mark();
}

/** Mark the lines that the address names; load their page if they are on another one. */
function mark() {
  const [, from, to] = LINES.exec(location.hash) ?? [];
  if (!from || !log()) return;
  const [first, last] = [Number(from), Number(to ?? from)].sort((a, b) => a - b);
  for (const each of document.querySelectorAll(".log-line.marked")) each.classList.remove("marked");
  const line = document.getElementById(`L${first}`);
  if (!line) return void (first <= Number(log()?.dataset.lines) && show(`${log()?.dataset.part?.split("?")[0]}?line=${Math.max(1, first - 20)}`));
  for (let number = first; number <= last && number < first + 5000; number += 1) document.getElementById(`L${number}`)?.classList.add("marked");
  line.scrollIntoView({ block: "center" });
}

document.addEventListener("click", (event) => {
  if (!(event.target instanceof Element) || !(event instanceof MouseEvent) || event.metaKey || event.ctrlKey) return;
  const page = /** @type {HTMLAnchorElement | null} */ (event.target.closest("a[data-log-page]"));
  const line = event.target.closest("a.no:not([data-log-page])");
  if (page) { event.preventDefault(); show(page.href); }
  if (!line) return;
  event.preventDefault();
  const [, from] = LINES.exec(location.hash) ?? [];
  history.replaceState(null, "", event.shiftKey && from ? `#L${from}-L${line.textContent}` : `#L${line.textContent}`);
  mark();
});
document.addEventListener("submit", (event) => {
  const form = /** @type {HTMLFormElement} */ (event.target);
  if (!form.matches("[data-log-search]")) return;
  event.preventDefault();
  show(`${form.action}?${new URLSearchParams(/** @type {any} */ (new FormData(form)))}`);
});
/** Whether the reader is at the end of the log, which they follow then; also while another panel is shown. */
let atEnd = true;
document.addEventListener("scroll", ({ target }) => {
  const place = scroller();
  if (place && target instanceof Node && target.contains(log()) && log()?.checkVisibility()) atEnd = place.scrollHeight - place.scrollTop - place.clientHeight < NEAR_END;
}, { capture: true, passive: true });
document.addEventListener("htmx:after:swap", () => {
  const place = scroller();
  const follows = atEnd && log()?.checkVisibility() && log()?.dataset.follows !== undefined;
  if (place && follows && !document.querySelector(".log-line.marked")) place.scrollTop = place.scrollHeight;
});
addEventListener("hashchange", mark);
mark();
