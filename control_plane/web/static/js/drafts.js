// Fields whose text is kept on the server until it is sent, for all windows of a user: <textarea data-draft="task:ID:comment">,
// or a form with the attribute, for its text.
import { Draft, call } from "./draft.js";
import { showNote } from "./draft-notes.js";

/** @typedef {HTMLTextAreaElement | HTMLInputElement} Field */
const FIELDS = "textarea, input[data-draft]";
/** @type {Map<string, Draft>} by subject */
const drafts = new Map();
/** @type {WeakSet<Field>} */
const filled = new WeakSet();

/** @param {ParentNode} within */
export const textsIn = (within) => [.../** @type {NodeListOf<Field>} */ (within.querySelectorAll(FIELDS))];
/** @param {Element} field */
const subjectOf = (field) => (/** @type {HTMLElement | null} */ (field.closest("[data-draft]"))?.dataset.draft || "").replace(/[^\w.:@-]/g, "-").slice(0, 100);
/** @param {ParentNode} within @returns {[Field, Draft][]} */
const draftsIn = (within) => textsIn(within).filter(subjectOf).map((field) => [field, draftOf(field)]);

/** @param {Element} field */
function draftOf(field) {
  const subject = subjectOf(field);
  if (!drafts.has(subject)) drafts.set(subject, new Draft(subject, show));
  return /** @type {Draft} */ (drafts.get(subject));
}

/** @param {Draft} draft */
function show(draft) {
  for (const [field, each] of draftsIn(document)) if (each === draft) showNote(draft, field);
}

let restoring = Promise.resolve();
/** Fill new fields with what is stored, and those in which nothing was typed here since another window saved its text. */
export function restore() {
  return (restoring = read());
}

async function read() {
  const present = draftsIn(document);
  if (!present.length) return;
  const { status, document: list } = await call("");
  if (status !== 200) return;
  for (const [field, draft] of present) {
    const version = list.find((/** @type {any} */ each) => each.subject === subjectOf(field))?.version ?? 0;
    const before = draft.text;
    if (version !== draft.version && draft.typed === null && draft.other === null) {
      const { document } = version ? await call(draft.path) : { document: { text: "", version } };
      if (draft.typed === null && "text" in document) Object.assign(draft, { text: document.text, version: document.version });
    }
    fill(field, draft, before);
    showNote(draft, field);
  }
}

/** @param {Field} field @param {Draft} draft @param {string} before what was stored when the field was filled last */
function fill(field, draft, before) {
  const kept = filled.has(field) ? null : draft.kept();
  filled.add(field);
  if (draft.typed !== null) {
    field.value ||= draft.typed;
  } else if (kept && kept.version === draft.version && kept.text !== draft.text) {
    field.value = kept.text;
    draft.type(kept.text, 0);
  } else {
    if (field.value === before || !field.value) field.value = draft.text;
    else if (draft.text && field.value !== draft.text) draft.other = draft.text;
    if (kept?.text && kept.text !== draft.text) draft.other = kept.text;
  }
}

document.addEventListener("input", (event) => {
  const field = /** @type {Field} */ (event.target);
  if (field.matches(FIELDS) && subjectOf(field)) draftOf(field).type(field.value);
});
function leave() {
  for (const draft of drafts.values()) if (draft.typed !== null) draft.save(true);
}
function comeBack() {
  for (const draft of drafts.values()) if (draft.problem && draft.typed !== null) draft.save();
  restore();
}
addEventListener("pagehide", leave);
for (const name of ["focus", "online"]) addEventListener(name, comeBack);
document.addEventListener("visibilitychange", () => (document.hidden ? leave() : comeBack()));
function changed() {
  const present = draftsIn(document);
  if (present.some(([field]) => !filled.has(field))) restore();
  for (const [field, draft] of present) showNote(draft, field);
}
for (const name of ["htmx:after:swap", "dialog:shown"]) document.addEventListener(name, changed);
restore();

/** What a form sends is stored before it is sent, so that it is lost nowhere on its way. @param {HTMLFormElement} form */
export const stored = (form) => Promise.all(draftsIn(form).map(([, draft]) => draft.typed === null || draft.save()));

/** What was written here is not wanted any more. @param {ParentNode} within */
export function discard(within) {
  for (const [, draft] of draftsIn(within)) draft.end();
}

/** @type {WeakMap<HTMLFormElement, {body: string, key: string}>} */
const keys = new WeakMap();
// The same text sent again, because the answer was lost, has the same key and counts once.
document.addEventListener("formdata", (event) => {
  const form = /** @type {HTMLFormElement} */ (event.target);
  const own = draftsIn(form);
  if (form.method !== "post" || !own.length) return;
  event.formData.delete("idempotency_key");
  const body = JSON.stringify([...event.formData]);
  const last = keys.get(form);
  const key = last?.body === body ? last.key : [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  keys.set(form, { body, key });
  event.formData.set("idempotency_key", key);
  for (const [field] of own) event.formData.append("draft", `${field.name} ${subjectOf(field)}`);
});
document.addEventListener("form:done", (event) => {
  const form = /** @type {HTMLFormElement} */ (event.target);
  const later = /** @type {CustomEvent<Field[] | null>} */ (event).detail ?? [];
  keys.delete(form);
  for (const [field, draft] of draftsIn(form)) {
    if (later.includes(field)) draft.type(field.value);
    // What is stored is deleted once it is known: the form may be closed before.
    else restoring.then(() => draft.end()).then(() => { field.value ||= draft.text; });
  }
});
