// <a data-dialog href="ADDRESS"> opens the page at the address in a dialog; without scripts, the page itself opens.
import { discard } from "./drafts.js";
import { follow } from "./live.js";
import { notice, reasonOf } from "./notices.js";
import { getPart } from "./parts.js";

const dialog = /** @type {HTMLDialogElement} */ (document.getElementById("dialog"));

/** The open menus, the topmost last. @returns {HTMLDetailsElement[]} */
export const openMenus = () => [.../** @type {NodeListOf<HTMLDetailsElement>} */ (document.querySelectorAll("details[open]:has(> .menu)"))];

/** Close a menu, and leave the focus where it was opened. @param {HTMLDetailsElement} menu */
export function closeMenu(menu) {
  if (menu.contains(document.activeElement)) menu.querySelector("summary")?.focus();
  menu.open = false;
}

// A menu closes once something else is pressed, or has the focus.
for (const name of ["click", "focusin"]) {
  document.addEventListener(name, ({ target }) => {
    for (const menu of openMenus()) if (target instanceof Node && !menu.contains(target)) closeMenu(menu);
  });
}

document.addEventListener("click", async (event) => {
  if (!(event.target instanceof Element) || !(event instanceof MouseEvent)) return;
  const close = event.target.closest("[data-close]");
  if (close) return close.closest("dialog") ? close.closest("dialog")?.close() : history.back();
  const link = /** @type {HTMLAnchorElement | null} */ (event.target.closest("a[data-dialog]"));
  if (!link || event.metaKey || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  openMenus().forEach(closeMenu);
  const answer = await getPart(link.href).catch(() => null);
  if (answer?.ok) return showDialog(await answer.text());
  // It was removed meanwhile, or the right to it was: said here, and what is being written on the page stays.
  notice(`Not opened: ${await reasonOf(answer)}`);
});

/** Show this in the dialog. @param {string} html from our server, which escapes every text in it */
export function showDialog(html) {
  dialog.innerHTML = html;
  dialog.setAttribute("aria-label", dialog.querySelector("h2")?.textContent || "Form");
  htmx.process(dialog);
  for (const part of /** @type {NodeListOf<HTMLElement>} */ (dialog.querySelectorAll("[data-live]"))) (part.dataset.live || "").split(" ").forEach(follow);
  if (!dialog.open) dialog.showModal();
  document.dispatchEvent(new CustomEvent("dialog:shown"));
}

dialog.addEventListener("close", () => discard(dialog));
// A dialog whose form holds text closes by its own buttons only, so that a slip of the hand loses nothing.
dialog.addEventListener("cancel", (event) => {
  const fields = /** @type {NodeListOf<HTMLTextAreaElement | HTMLInputElement>} */ (dialog.querySelectorAll("textarea, input:not([type=hidden])"));
  const changed = [...fields].some((each) => each.value !== each.defaultValue);
  if (changed && !confirm("Close and discard what you wrote?")) event.preventDefault();
});
