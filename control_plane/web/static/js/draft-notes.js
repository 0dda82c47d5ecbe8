// Below a field whose draft is not on the server yet: why, and where the text is. Or another text for the same field, of
// another window or an earlier visit: the user chooses, and until then both are kept.

/** @param {import("./draft.js").Draft} draft @param {import("./drafts.js").Field} field */
export function showNote(draft, field) {
  const place = field.closest("text-expander") ?? field;
  const old = place.nextElementSibling?.matches(".draft-note") ? place.nextElementSibling : null;
  const both = draft.other !== null;
  const said = both ? "Another text was written here and not sent:" : draft.problem && `Not saved yet: ${draft.problem}. The text stays in this browser, and is saved as soon as possible.`;
  if (!said) return void old?.remove();
  const note = Object.assign(document.createElement("div"), { className: "note small draft-note", role: "status", textContent: said });
  if (both) note.append(Object.assign(document.createElement("pre"), { className: "block", textContent: draft.other, tabIndex: 0 }), choices(draft, field));
  if (old?.textContent === note.textContent) return;
  if (old) old.replaceWith(note);
  else place.after(note);
}

/** @param {import("./draft.js").Draft} draft @param {import("./drafts.js").Field} field */
function choices(draft, field) {
  const row = Object.assign(document.createElement("div"), { className: "acts" });
  /** @param {string} textContent @param {() => void} choose */
  const button = (textContent, choose) => {
    const onclick = () => { choose(); draft.other = null; draft.type(field.value === field.defaultValue ? "" : field.value, 0); field.focus(); };
    row.append(Object.assign(document.createElement("button"), { type: "button", textContent, onclick }));
  };
  button("Use this text", () => { field.value = draft.other ?? ""; });
  button("Keep the one above", () => {});
  return row;
}
