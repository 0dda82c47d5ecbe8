// Comments on a diff, in place: pressing a line number opens a form below it. Dragging to another number, Shift, or a
// second press by keyboard or touch while the form is empty, makes it a range. Without scripts, the links open the forms.
import { restore } from "./drafts.js";
import { readPart } from "./parts.js";

const panel = () => document.getElementById("changes");
/** @param {Element} form @param {string} name */
const field = (form, name) => /** @type {HTMLInputElement} */ (form.querySelector(`[name=${name}]`));

document.addEventListener("click", (event) => {
  if (!(event.target instanceof Element)) return;
  const by = /** @type {HTMLElement | null} */ (event.target.closest("[data-to-comment]"))?.dataset.toComment;
  if (by) return toComment(Number(by));
  const pressed = /** @type {HTMLAnchorElement | null} */ (event.target.closest("#changes a"));
  // The file's link is also pressed by a key, for the line that has the focus.
  const link = /** @type {HTMLAnchorElement | null} */ (pressed?.closest(".of-file")?.parentElement?.querySelector("a.n:focus") ?? pressed);
  if (!link || !(event instanceof MouseEvent) || event.metaKey || event.ctrlKey) return;
  const place = placeOf(link), touch = "pointerType" in event && event.pointerType === "touch";
  if (link.dataset.rows) showRows(link);
  else if ("cancel" in link.dataset) close(/** @type {HTMLFormElement} */ (link.closest("form")));
  else if (place && link.hash.startsWith("#c-")) comment(link, place, event.shiftKey || event.detail === 0 || touch, !touch);
  else return;
  event.preventDefault();
});

/** Key of the file, side and line that a link opens a comment on. @param {HTMLAnchorElement} link */
const placeOf = (link) => new URL(link.href).searchParams.getAll("comment").at(-1)?.split(":");
/** @param {Event} event */
const numberAt = (event) => event.target instanceof Element ? /** @type {HTMLAnchorElement | null} */ (event.target.closest("#changes a.n")) : null;
/** The number from which the mouse is dragged. @type {HTMLAnchorElement | null} */
let from = null;

document.addEventListener("dragstart", (event) => { if (numberAt(event)) event.preventDefault(); });
document.addEventListener("pointerdown", (event) => {
  from = event.pointerType === "mouse" && event.button === 0 && !event.shiftKey ? numberAt(event) : null;
});
document.addEventListener("pointerover", (event) => { if (from) pick(from, numberAt(event)); });
document.addEventListener("pointerup", (event) => {
  const first = from, last = numberAt(event);
  from = null;
  if (!first || !last || first === last) return;
  pick(first, null);
  const [start, end] = [placeOf(first) || [], placeOf(last) || []];
  if (start[0] === end[0] && start[1] === end[1]) extend(comment(first, start, false, true), last, end);
});

/** Mark the numbers of a range. @param {HTMLAnchorElement} first @param {HTMLAnchorElement | null} last */
function pick(first, last) {
  const [, side, line] = placeOf(first) || [], ends = [Number(line), Number(last ? placeOf(last)?.[2] : NaN)];
  for (const each of /** @type {NodeListOf<HTMLAnchorElement>} */ (first.closest(".file")?.querySelectorAll("a.n") ?? [])) {
    const [, its, number] = placeOf(each) || [];
    each.classList.toggle("picked", its === side && Number(number) >= Math.min(...ends) && Number(number) <= Math.max(...ends));
  }
}

/**
 * @param {HTMLAnchorElement} link @param {string[]} place key of the file, side, line
 * @param {boolean} extends_ @param {boolean} focus
 */
function comment(link, [file, side, line], extends_, focus) {
  const begun = [.../** @type {NodeListOf<HTMLFormElement>} */ (link.closest(".file")?.querySelectorAll(".new-comment") ?? [])]
    .find((form) => field(form, "side")?.value === side && !field(form, "text").value);
  const known = /** @type {HTMLFormElement | null} */ (document.getElementById(link.hash.slice(1)));
  const form = known ?? (extends_ && line && begun ? begun : made(link, side, line));
  if (!known && form === begun) extend(form, link, [file, side, line]);
  if (focus) field(form, "text").focus();
  remember();
  return form;
}

/** @param {HTMLFormElement} form @param {HTMLAnchorElement} link @param {string[]} place */
function extend(form, link, [, side, line]) {
  const ends = [Number(field(form, "start_line").value), Number(field(form, "end_line").value), Number(line)];
  setLines(form, side, Math.min(...ends), Math.max(...ends));
  if (Number(line) === Math.max(...ends)) link.closest(".l")?.after(form);
  field(form, "text").focus();
  remember();
}

document.addEventListener("input", ({ target }) => {
  const list = target instanceof HTMLInputElement && target.form?.dataset.filters;
  if (!list) return;
  for (const each of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(`#${list} li`))) {
    const path = `${each.closest("details")?.firstElementChild?.textContent}/${each.firstElementChild?.textContent}`;
    each.hidden = !path.toLowerCase().includes(target.value.toLowerCase());
  }
});

/** @param {HTMLAnchorElement} link @param {string} side @param {string} line */
function made(link, side, line) {
  const template = /** @type {HTMLTemplateElement} */ (document.getElementById("new-comment"));
  const form = /** @type {HTMLFormElement} */ (document.importNode(template.content, true).querySelector("form"));
  const section = /** @type {HTMLElement} */ (link.closest(".file"));
  form.id = link.hash.slice(1);
  form.dataset.draft = form.dataset.base = `order:${panel()?.dataset.order}:review:${section.dataset.key}.file`;
  field(form, "path").value = section.dataset.path || "";
  if (line) setLines(form, side, Number(line), Number(line));
  else for (const each of form.querySelectorAll("[name=side], [name=start_line], .inline")) each.remove();
  const row = link.closest(".l");
  if (row) row.after(form);
  else section.querySelector(".lines")?.prepend(form);
  const details = section.querySelector("details");
  if (details) details.open = true;
  restore();
  return form;
}

/** @param {HTMLFormElement} form @param {string} side @param {number} first @param {number} last */
function setLines(form, side, first, last) {
  form.id = form.id.replace(/\d+$/, String(first));
  form.dataset.draft = form.dataset.base?.replace(/file$/, `${side}.${first}${last > first ? `-${last}` : ""}`);
  field(form, "side").value = side;
  field(form, "start_line").value = String(first);
  field(form, "end_line").value = String(last);
  const words = form.querySelector("[data-lines]");
  if (words) words.textContent = `${side === "old" ? "Old" : "New"} line ${first}`;
}

/** @type {Element | null} */
let reached = null;

/** Go to the next comment (1) or the previous one (-1) from where the focus is. @param {number} by */
function toComment(by) {
  const here = document.activeElement?.closest(".file, .thread") ? document.activeElement : reached;
  const threads = [.../** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("#changes .thread"))].filter((each) => each.checkVisibility());
  const side = by > 0 ? Node.DOCUMENT_POSITION_FOLLOWING : Node.DOCUMENT_POSITION_PRECEDING;
  const there = threads.filter((each) => !here?.isConnected || (!each.contains(here) && here.compareDocumentPosition(each) & side));
  const next = there.at(by > 0 ? 0 : -1);
  if (!next) return;
  reached = next;
  next.tabIndex = -1;
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: "center" });
}

/** The next time that the panel is fetched, it has the same forms. */
function remember(upto = "") {
  const root = panel();
  if (!root) return;
  const address = new URL(root.dataset.part || "", location.href);
  address.searchParams.delete("comment");
  for (const form of root.querySelectorAll(".new-comment")) {
    const [, file, side, line] = form.id.split("-");
    address.searchParams.append("comment", side ? `${file}:${side}:${line}-${field(form, "end_line").value}` : file);
  }
  const opened = (address.searchParams.get("open") || "").split(".").filter((each) => each && each.split(":")[0] !== upto.split(":")[0]);
  if (upto) address.searchParams.set("open", [...opened, upto].join("."));
  root.dataset.part = address.pathname + address.search;
}

/** @param {HTMLFormElement} form */
function close(form) {
  const row = form.previousElementSibling;
  form.dispatchEvent(new CustomEvent("form:done", { bubbles: true }));
  /** @type {HTMLElement | null | undefined} */ (row?.querySelector("a.n"))?.focus();
}

document.addEventListener("form:done", (event) => {
  const form = /** @type {HTMLFormElement} */ (event.target);
  const later = /** @type {CustomEvent} */ (event).detail?.length;
  if (form.matches(".new-comment") && !later) { form.remove(); remember(); }
  const details = form.matches(".viewed, .edit > form, .send > form") ? form.closest(".file")?.querySelector("details") : null;
  if (form.matches(".viewed") && details) details.open = form.querySelector("[aria-pressed=true]") !== null;
  else /** @type {HTMLDetailsElement | null} */ (form.closest("details.edit, details.send"))?.removeAttribute("open");
});

/** @param {HTMLAnchorElement} link */
async function showRows(link) {
  const fresh = /** @type {HTMLElement | null | undefined} */ ((await readPart(link.dataset.rows || ""))?.querySelector(".lines"));
  if (!fresh) return location.assign(link.href);
  // What stood at the top of the file, because its line was not shown, is in its place now.
  for (const each of fresh.querySelectorAll("[id]")) document.getElementById(each.id)?.remove();
  link.closest(".more")?.replaceWith(fresh);
  /** @type {HTMLElement | null} */ (fresh.querySelector("a"))?.focus();
  remember(fresh.dataset.upto);
}
