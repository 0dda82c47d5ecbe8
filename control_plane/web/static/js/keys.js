// Shortcuts are declared on what they press: <button data-hotkey="a" data-hotkey-label="Approve">. `?` lists them all.
import { install, uninstall } from "../vendor/hotkey.js";

/** @type {Set<HTMLElement>} */
const installed = new Set();

function installAll() {
  const present = new Set(/** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-hotkey]")));
  for (const gone of installed) if (!present.has(gone)) { uninstall(gone); installed.delete(gone); }
  for (const each of present) if (!installed.has(each)) { install(each, each.dataset.hotkey); installed.add(each); }
}

/** Move between the rows of the page's list. @param {number} by */
function move(by) {
  const rows = [.../** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("main [data-row]"))];
  const at = rows.findIndex((row) => row.contains(document.activeElement));
  const next = rows[Math.max(0, Math.min(rows.length - 1, at + by))];
  const first = next?.matches("a, button") ? next : /** @type {HTMLElement | null | undefined} */ (next?.querySelector("a, button"));
  first?.focus();
}

document.addEventListener("keydown", (event) => {
  const target = /** @type {HTMLElement} */ (event.target);
  if (target.matches("input, textarea, select, [contenteditable]") || event.metaKey || event.ctrlKey || event.altKey) return;
  if (event.key === "j") move(1);
  if (event.key === "k") move(-1);
  if (event.key === "?") showAll();
  pressInRow(event.key);
});

/** Press what the row with the focus has for this key; without a focus, what the only row has. @param {string} key */
function pressInRow(key) {
  const rows = [.../** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("main [data-row]"))];
  const row = rows.find((each) => each.contains(document.activeElement)) ?? (rows.length === 1 ? rows[0] : null);
  const pressed = [.../** @type {HTMLElement[]} */ ([...row?.querySelectorAll("[data-row-key]") ?? []])].find((each) => each.dataset.rowKey === key);
  pressed?.click();
}

// Ctrl+Enter or Cmd+Enter presses the first button of the form that is being written.
document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || !(event.target instanceof HTMLTextAreaElement)) return;
  const button = /** @type {HTMLButtonElement | null} */ (event.target.form?.querySelector("button.primary"));
  if (button) { event.preventDefault(); button.click(); }
});

function showAll() {
  const dialog = /** @type {HTMLDialogElement} */ (document.getElementById("keys"));
  const list = dialog.querySelector("[data-keys]");
  if (!list) return;
  list.replaceChildren(...known().map(([key, label]) => {
    const line = document.createElement("div");
    const keys = document.createElement("kbd");
    keys.textContent = key;
    line.append(label, keys);
    return line;
  }));
  dialog.showModal();
}

/** @returns {[string, string][]} */
function known() {
  /** @type {Map<string, string>} */
  const all = new Map([["j", "Next row"], ["k", "Previous row"], ["?", "Show all shortcuts"], ["Ctrl Enter", "Send what you write"]]);
  for (const each of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("main [data-row-key]"))) {
    all.set(each.dataset.rowKey || "", each.dataset.hotkeyLabel || each.textContent?.trim() || "");
  }
  for (const each of installed) all.set((each.dataset.hotkey || "").split(",")[0], each.dataset.hotkeyLabel || each.textContent?.trim() || "");
  return [...all];
}

installAll();
document.addEventListener("htmx:after:swap", installAll);
document.addEventListener("keys:changed", installAll);
