// The palette (Ctrl K): what was worked on last, what can be done on this page, what can be created, and every thing by its
// name. What a page offers is read from its own buttons, links and menus.
import { activate, reachable, shown } from "./keys.js";
import { element } from "./parts.js";

/**
 * @typedef {{kind: string, label: string, run: () => void, href?: string, key?: string, far?: boolean}} Choice
 * @typedef {{kind: string, label: string, href: string, is_form: boolean}} Place
 */
const MOST = 80;
const RECENT = 6;
const FIXED = ["Create", "Settings"];
const ACTS = "[data-hotkey], main button, .bar button, :is(main, .bar) a.button, .menu :is(a, button, clipboard-copy), nav.side a";
const dialog = /** @type {HTMLDialogElement | null} */ (document.getElementById("palette"));
const input = dialog?.querySelector("input");
const list = dialog?.querySelector("[role=listbox]");
/** @type {Choice[]} */
let own = [];
/** What the server offers without a text. @type {Choice[]} */
let known = [];
/** @type {Choice[]} */
let found = [];
let at = 0;
let asked = 0;

document.addEventListener("click", (event) => {
  if (event.target instanceof Element && event.target.closest("[data-palette]")) open();
});

async function open() {
  if (!dialog || !input) return;
  input.value = "";
  own = acts();
  found = [];
  show(0);
  dialog.showModal();
  // Until the first answer nothing is chosen, so that Enter does not take what would only be the first for a moment.
  if (known.length) search();
  known = await ask("");
  if (!at) search();
}

/** What the page's buttons, links and menus do; what belongs to a row without the focus (`far`) last. */
function acts() {
  const row = document.activeElement?.closest("[data-row]");
  /** @type {Map<string, Choice>} */
  const all = new Map();
  for (const each of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(ACTS))) {
    if (each.closest("dialog") || each.matches("[data-palette], :disabled") || !reachable(each)) continue;
    const of = each.closest("[data-row]");
    const far = of !== null && of !== row;
    const kind = each.closest(".side") ? "Go to" : of && !far ? "This row" : "This page";
    const label = far ? `${nameOf(each)}: ${titleOf(of)}` : nameOf(each);
    const href = each.getAttribute("href") ?? undefined;
    const run = () => { if (each.isConnected) activate(each); };
    if (nameOf(each) && !all.has(kind + label)) all.set(kind + label, { kind, label, run, href, far, key: each.dataset.hotkey });
  }
  const rank = (/** @type {Choice} */ { kind, far }) => (far ? 3 : ["This row", "This page", "Go to"].indexOf(kind));
  return [...all.values()].sort((one, other) => rank(one) - rank(other));
}

/** @param {HTMLElement} each */
function nameOf(each) {
  const text = [...each.childNodes].filter((part) => !(part instanceof Element && part.matches("kbd, .figure"))).map((part) => part.textContent).join("");
  return each.dataset.hotkeyLabel || each.ariaLabel || text.replace(/\s+/g, " ").trim();
}

/** @param {Element} row */
function titleOf(row) {
  const title = /** @type {HTMLElement | null} */ (row.querySelector("[data-title], h2, h3"));
  return (title?.dataset.title || title?.textContent || "").trim();
}

/** @param {string} text @returns {Promise<Choice[]>} */
async function ask(text) {
  const answer = await fetch(`/search?text=${encodeURIComponent(text)}`, { headers: { Accept: "application/json" } }).catch(() => null);
  const places = /** @type {Place[]} */ (answer?.ok ? await answer.json() : []);
  return places.map(({ kind, label, href, is_form }) => ({ kind, label, href, run: () => lead(href, is_form) }));
}

/** @param {string} href @param {boolean} isForm */
function lead(href, isForm) {
  const link = element("a", { href });
  if (isForm) link.dataset.dialog = "";
  document.body.append(link);
  link.click();
  link.remove();
}

async function search() {
  const text = input?.value.trim().toLowerCase() ?? "";
  const mine = ++asked;
  const recent = known.filter(({ kind }) => !FIXED.includes(kind));
  const fixed = known.filter(({ kind, href }) => FIXED.includes(kind) && !own.some((each) => each.href === href));
  found = text ? best([...own, ...fixed, ...recent], text) : [...recent.slice(0, RECENT), ...own.filter(({ far }) => !far), ...fixed];
  show(0);
  if (text.length < 2) return;
  const more = await ask(text);
  if (mine !== asked) return;
  // Added below, so that nothing moves under the hand.
  const have = new Set(found.map(({ href }) => href).filter(Boolean));
  found.push(...more.filter(({ href }) => !have.has(href)));
  show(at);
}

/** Those with a word that begins with each of the typed ones; first those that begin with the text. @param {Choice[]} all @param {string} text */
function best(all, text) {
  const typed = text.split(/\s+/);
  const words = (/** @type {Choice} */ { kind, label }) => ` ${label} ${kind}${kind === "Create" ? " new add" : ""}`.toLowerCase();
  const later = (/** @type {Choice} */ { label }) => Number(!label.toLowerCase().startsWith(text));
  return all.filter((each) => typed.every((word) => words(each).includes(` ${word}`))).sort((one, other) => later(one) - later(other)).slice(0, MOST / 4);
}

/** @param {number} chosen */
function show(chosen) {
  const offered = found.slice(0, MOST);
  at = Math.max(0, Math.min(chosen, offered.length - 1));
  list?.replaceChildren(...offered.map(option));
  const none = dialog?.querySelector("p");
  if (none) none.hidden = offered.length > 0;
  input?.setAttribute("aria-activedescendant", offered.length ? `palette-${at}` : "");
  document.getElementById(`palette-${at}`)?.scrollIntoView({ block: "nearest" });
}

/** @param {Choice} choice @param {number} index */
function option({ kind, label, key }, index) {
  const texts = [element("span", { className: "clip" }, label), element("span", { className: "muted small end" }, kind)];
  const keys = key?.split(" ").map(shown) ?? [];
  return element("div", { id: `palette-${index}`, role: "option", ariaSelected: String(index === at), onclick: () => choose(index) }, ...texts, ...keys);
}

/** @param {number} index */
function choose(index) {
  dialog?.close();
  found[index]?.run();
}

input?.addEventListener("input", search);
input?.addEventListener("keydown", (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step) { event.preventDefault(); show(at + step); }
  if (event.key === "Enter" && !event.isComposing) { event.preventDefault(); choose(at); }
  // A search field would only be emptied.
  if (event.key === "Escape") { event.preventDefault(); dialog?.close(); }
});
