// What is written and not sent yet is kept on the server, for all windows of a user: <form data-draft="order:ID:message">.
import { browserKey } from "./browser-key.js";

const SOON_MS = 400;
/** @type {Map<string, number>} the version of each draft that this window knows */
const versions = new Map();
/** @type {Map<string, number>} */
const soon = new Map();

const store = {
  /** @param {string} name @param {string} method @param {object} [body] @returns {Promise<any>} the draft, as it is stored now */
  async call(name, method, body) {
    const headers = { Accept: "application/json", "Content-Type": "application/json", "X-Fleet-Browser-Key": browserKey() };
    const answer = await fetch(`/api/v1/drafts/${encodeURIComponent(name)}`, { method, headers, body: body && JSON.stringify(body), cache: "no-store" });
    const document = await answer.json();
    if (answer.status === 409) return document.stored ?? {};
    return answer.ok ? document : {};
  },
  /** @param {string} name */
  load: (name) => store.call(name, "GET"),
  /** @param {string} name @param {string} text */
  async save(name, text) {
    const stored = await store.call(name, "PUT", { text, version: versions.get(name) ?? 0 });
    const other = stored.text !== undefined && stored.text !== text;
    versions.set(name, stored.version ?? 0);
    // Another window wrote meanwhile: what is being typed here is the later text.
    if (other) versions.set(name, (await store.call(name, "PUT", { text, version: stored.version })).version ?? 0);
  },
  /** @param {string} name */
  remove: (name) => store.call(name, "DELETE"),
};

/** @param {EventTarget | null} target */
const formOf = (target) => target instanceof Element ? /** @type {HTMLFormElement | null} */ (target.closest("form[data-draft]")) : null;

/** Fill an empty field with its draft. @param {HTMLFormElement} form */
export async function restore(form) {
  const box = form.querySelector("textarea");
  const name = form.dataset.draft || "";
  const { text, version } = await store.load(name).catch(() => ({}));
  versions.set(name, version ?? 0);
  if (box && text && !box.value) box.value = text;
}

document.addEventListener("input", (event) => {
  const form = formOf(event.target);
  const name = form?.dataset.draft;
  if (!form || !name || !(event.target instanceof HTMLTextAreaElement)) return;
  const { value } = event.target;
  clearTimeout(soon.get(name));
  soon.set(name, setTimeout(() => store.save(name, value).catch(() => {}), SOON_MS));
  // The same text sent twice, because the answer was lost, counts once.
  const key = /** @type {HTMLInputElement | null} */ (form.querySelector("[name=idempotency_key]"));
  if (key) key.value ||= [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
});
document.addEventListener("form:done", (event) => {
  const name = formOf(event.target)?.dataset.draft;
  if (!name) return;
  clearTimeout(soon.get(name));
  versions.set(name, 0);
  store.remove(name).catch(() => {});
});

for (const form of /** @type {NodeListOf<HTMLFormElement>} */ (document.querySelectorAll("form[data-draft]"))) restore(form);
