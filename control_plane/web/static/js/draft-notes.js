// Below a field whose draft is not on the server yet: why, and where the text is. Or another text for the same field, of
// another window or an earlier visit: the user chooses, and until then both are kept.
import { button, element } from "./parts.js";

/** @param {import("./draft.js").Draft} draft @param {import("./drafts.js").Field} field */
export function showNote(draft, field) {
  const place = field.closest("text-expander") ?? field;
  const old = place.nextElementSibling?.matches(".draft-note") ? place.nextElementSibling : null;
  const both = draft.other !== null;
  const said = both ? "Another text was written here and not sent:" : draft.problem && `Not saved yet: ${draft.problem}. The text stays in this browser, and is saved as soon as possible.`;
  if (!said) return void old?.remove();
  const note = element("div", { className: "note small draft-note", role: "status" }, said);
  if (both) note.append(element("pre", { className: "block", tabIndex: 0 }, draft.other ?? ""), choices(draft, field));
  if (old?.textContent === note.textContent) return;
  if (old) old.replaceWith(note);
  else place.after(note);
}

/** @param {import("./draft.js").Draft} draft @param {import("./drafts.js").Field} field */
function choices(draft, field) {
  /** @param {string} text */
  const choose = (text) => {
    field.value = text;
    draft.other = null;
    draft.type(text === field.defaultValue ? "" : text, 0);
    field.focus();
  };
  const [other, own] = [button("Use this text", () => choose(draft.other ?? "")), button("Keep the one above", () => choose(field.value))];
  return element("div", { className: "acts" }, other, own);
}
