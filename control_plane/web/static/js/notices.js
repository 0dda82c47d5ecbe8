// Short notices for what was just done; screen readers hear them through the one polite live region.
import { button, element } from "./parts.js";

const SHOWN_MS = 6000;
const UNDO_MS = 12000;

/** @param {string} text @param {(() => void) | null} [undo] */
export function notice(text, undo) {
  const region = document.getElementById("notices");
  if (!region) return;
  const toast = element("p", { className: "toast" }, text);
  if (undo) toast.append(" ", button("Undo", () => { toast.remove(); undo(); }));
  region.append(toast);
  setTimeout(() => toast.remove(), undo ? UNDO_MS : SHOWN_MS);
}

document.addEventListener("clipboard-copy", (event) => {
  const element = /** @type {HTMLElement} */ (event.target);
  element.dataset.copied = "";
  notice("Copied");
  setTimeout(() => delete element.dataset.copied, 1500);
});

/** Why a request was refused, for people. @param {Response | null} answer @returns {Promise<string>} */
export async function reasonOf(answer) {
  const problem = await answer?.json().catch(() => null);
  if (!problem) return answer ? `the server answered ${answer.status}.` : "the server does not answer.";
  return [problem.detail, problem.why].filter(Boolean).join(" · ");
}
