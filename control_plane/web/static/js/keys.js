// Shortcuts are declared on what they press: <button data-hotkey="a" data-hotkey-label="Approve">. `g i` is a sequence;
// `Mod+k` also works in text boxes, `Mod+Enter` in those of its form. A key within a row ([data-row]) is for the row with
// the focus. All keys belong to the topmost open thing: a dialog, else a menu, else the page. `?` lists them.
import { closeMenu, openMenus } from "./dialogs.js";
import { element } from "./parts.js";

const SEQUENCE_MS = 1500;
const FIELD = "textarea, select, [contenteditable], input:not([type=checkbox], [type=radio], [type=button], [type=submit])";
const ENTRY = "a, button, summary, [role=button]";
const APPLE = /Mac|iP(hone|ad|od)/.test(navigator.platform);
/** @type {Record<string, number>} */
const STEPS = { j: 1, k: -1, ArrowDown: 1, ArrowUp: -1 };
let begun = "";
let until = 0;
/** What had the focus before the text box that has it. @type {EventTarget | null} */
let before = null;

document.addEventListener("focusin", ({ target, relatedTarget }) => {
  const from = /** @type {Element | null} */ (relatedTarget);
  if (/** @type {Element} */ (target).matches(FIELD) && !from?.matches(FIELD)) before = from;
});

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.isComposing) return;
  const key = nameOf(event);
  const field = /** @type {HTMLInputElement | null} */ (/** @type {Element} */ (event.target).closest(FIELD));
  if (!key || (field && key.length === 1)) return;
  const scope = topmost();
  const follows = Boolean(begun) && event.timeStamp < until && !key.startsWith("Mod+");
  if (key === "Escape" && !follows) { if (leave(scope, field)) event.preventDefault(); return; }
  if (field && /^Mod\+.*Enter$/.test(key)) { if (field.form && !event.repeat) submitOf(field.form, key)?.click(); return; }
  if (field && !key.startsWith("Mod+")) return;
  const wanted = follows ? `${begun} ${key}` : key;
  const all = declared(scope);
  begun = all.some((each) => each.dataset.hotkey?.startsWith(`${wanted} `)) ? wanted : "";
  until = event.timeStamp + SEQUENCE_MS;
  const handled = Boolean(begun) || press(all, wanted, event.repeat);
  // The keys of a sequence act as nothing else, also where nothing has this sequence.
  if (handled || follows || step(scope, key)) event.preventDefault();
});

/** `a`, `?`, `Shift+s`, `Mod+k`; empty for what belongs to the browser. @param {KeyboardEvent} event */
function nameOf({ key, altKey, ctrlKey, metaKey, shiftKey }) {
  const [mod, other] = APPLE ? [metaKey, ctrlKey] : [ctrlKey, metaKey];
  if (other || (altKey && !mod) || ["Control", "Alt", "AltGraph", "Meta", "Shift"].includes(key)) return "";
  const letter = key.length === 1 && key.toLowerCase() !== key.toUpperCase();
  // The sign that Shift makes, such as `?`, says it already.
  const shift = shiftKey && (letter || key.length > 1);
  return `${mod ? "Mod+" : ""}${altKey ? "Alt+" : ""}${shift ? "Shift+" : ""}${letter ? key.toLowerCase() : key}`;
}

/** @returns {Document | HTMLElement} */
const topmost = () => /** @type {HTMLElement | null} */ (document.querySelector("dialog[open]")) ?? openMenus().at(-1) ?? document;

/** @param {Document | HTMLElement} scope */
const declared = (scope) => [.../** @type {NodeListOf<HTMLElement>} */ (scope.querySelectorAll("[data-hotkey]"))].filter(reachable);

/** Whether it can be pressed without a pointer: it is seen, or in a closed menu. @param {HTMLElement} each */
export function reachable(each) {
  return each.checkVisibility() || (each.closest(".side, .menu, .tabs") !== null && !each.closest("[hidden]"));
}

/** @param {Element} each */
const rowOf = (each) => each.closest("[data-row]");

/** Press what has this key; whether anything has it. @param {HTMLElement[]} all @param {string} key @param {boolean} held */
function press(all, key, held) {
  const same = all.filter((each) => each.dataset.hotkey === key);
  const row = document.activeElement && rowOf(document.activeElement);
  const found = same.find((each) => row && rowOf(each) === row) ?? same.findLast((each) => !rowOf(each));
  if (found && !held) activate(found);
  // Without a row that has the focus, the key chooses one: what it decides there, it does when it is pressed again.
  const first = found || row || !same.length ? null : rowOf(same[0]);
  /** @type {HTMLElement | null | undefined} */ (first?.querySelector(ENTRY))?.focus();
  return Boolean(found || first);
}

/** @param {HTMLElement} each */
export function activate(each) {
  if (each.matches(FIELD)) each.focus();
  else each.click();
}

/** Move between the rows of the page, the lines of the row, or the entries of the menu. @param {Document | HTMLElement} scope @param {string} key */
function step(scope, key) {
  const by = STEPS[key];
  const here = document.activeElement ?? document.body;
  const places = by ? placesOf(scope, here, key.startsWith("Arrow")).filter((each) => each.checkVisibility()) : [];
  const at = places.findIndex((each) => each === here || each === rowOf(here));
  const next = places[Math.max(0, Math.min(places.length - 1, at + by))];
  /** @type {HTMLElement | null | undefined} */ (next?.matches(ENTRY) ? next : next?.querySelector(ENTRY))?.focus();
  return Boolean(next);
}

/** @param {Document | HTMLElement} scope @param {Element} here @param {boolean} arrow @returns {HTMLElement[]} */
function placesOf(scope, here, arrow) {
  if (scope instanceof HTMLDetailsElement) return [.../** @type {NodeListOf<HTMLElement>} */ (scope.querySelectorAll(`.menu :is(${ENTRY})`))];
  if (scope !== document) return [];
  if (!arrow) return [.../** @type {NodeListOf<HTMLElement>} */ (scope.querySelectorAll("main [data-row]"))];
  const column = (/** @type {Element} */ each) => [...each.parentElement?.children ?? []].indexOf(each);
  const lines = [.../** @type {NodeListOf<HTMLElement>} */ (rowOf(here)?.querySelectorAll("a.n") ?? [])];
  return here.matches("a.n") ? lines.filter((each) => column(each) === column(here)) : lines;
}

/** Escape: close the menu, else leave the text box. The browser closes a dialog. @param {Document | HTMLElement} scope @param {HTMLElement | null} field */
function leave(scope, field) {
  if (scope instanceof HTMLDetailsElement) closeMenu(scope);
  else if (scope !== document || !field) return false;
  else if (before instanceof HTMLElement && before.isConnected && before !== document.body) before.focus();
  else field.blur();
  return true;
}

/** What Ctrl+Enter sends: in a form with several decisions, nothing. @param {HTMLFormElement} form @param {string} key @returns {HTMLElement | undefined} */
function submitOf(form, key) {
  const buttons = [.../** @type {NodeListOf<HTMLElement>} */ (form.querySelectorAll("button:not([type=button])"))].filter(reachable);
  const own = buttons.find((each) => each.dataset.hotkey === key);
  if (own || key !== "Mod+Enter") return own;
  return "decides" in form.dataset && buttons.length > 1 ? undefined : buttons.find((each) => each.matches(".primary"));
}

// --- the list --------------------------------------------------------------------------------

document.addEventListener("click", (event) => {
  if (!(event.target instanceof Element) || !event.target.closest("[data-keys-list]")) return;
  openMenus().forEach(closeMenu);
  /** @type {Record<string, [string, string][]>} */
  const groups = {
    "This page": document.querySelector("main [data-row]") ? [["j", "Next row"], ["k", "Previous row"]] : [],
    "Row with the focus": [],
    Anywhere: [["Mod+Enter", "Send what you write"], ["Escape", "Leave a text box, close a menu or dialog"]],
  };
  for (const each of declared(document)) {
    const group = each.closest(".side, [data-palette]") ? "Anywhere" : rowOf(each) ? "Row with the focus" : "This page";
    groups[group].push([each.dataset.hotkey || "", each.dataset.hotkeyLabel || each.textContent?.trim() || ""]);
  }
  const dialog = /** @type {HTMLDialogElement} */ (document.getElementById("keys"));
  dialog.querySelector("[data-keys]")?.replaceChildren(...Object.entries(groups).flatMap(([name, keys]) => group(name, new Map(keys))));
  dialog.showModal();
});

/** @param {string} name @param {Map<string, string>} keys */
function group(name, keys) {
  if (!keys.size) return [];
  const lines = [...keys].map(([key, label]) => element("div", {}, label, ...key.split(" ").map(shown)));
  return [element("h3", {}, name), element("div", { className: "keys" }, ...lines)];
}

/** A key as it is written on the keyboard. @param {string} key */
export function shown(key) {
  const words = key.replace("Mod", APPLE ? "⌘" : "Ctrl").replace("Escape", "Esc").split("+");
  return element("kbd", {}, words.map((each) => (each.length > 1 || words.length === 1 ? each : each.toUpperCase())).join(" "));
}
