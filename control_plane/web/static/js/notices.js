// Short notices for what was just done; screen readers hear them through the one polite live region.
const SHOWN_MS = 6000;

const UNDO_MS = 12000;

/** @param {string} text @param {(() => void) | null} [undo] */
export function notice(text, undo) {
  const region = document.getElementById("notices");
  if (!region) return;
  const toast = document.createElement("p");
  toast.className = "toast";
  toast.textContent = text;
  if (undo) toast.append(" ", Object.assign(document.createElement("button"), { type: "button", textContent: "Undo", onclick: () => { toast.remove(); undo(); } }));
  region.append(toast);
  setTimeout(() => toast.remove(), undo ? UNDO_MS : SHOWN_MS);
}

document.addEventListener("clipboard-copy", (event) => {
  const element = /** @type {HTMLElement} */ (event.target);
  element.dataset.copied = "";
  notice("Copied");
  setTimeout(() => delete element.dataset.copied, 1500);
});
