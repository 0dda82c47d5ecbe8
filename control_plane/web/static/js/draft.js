// One text that is written and not sent yet, as the server has it and as this window has it. No window replaces what
// another one wrote: both texts are kept until the user chooses.
import { browserKey } from "./browser-key.js";
import { inOrganization } from "./parts.js";

const SOON_MS = 400;
const AGAIN_MS = 3000;
const MOST_ON_LEAVING = 20000; // characters; browsers send 64 kB from a page that is being closed
const NOTHING = { status: 0, document: /** @type {any} */ ({}) };

/** The drafts of this user: all without their texts, or one. @param {string} path @param {RequestInit} [more] */
export async function call(path, more) {
  const headers = { Accept: "application/json", "Content-Type": "application/json", "X-Fleet-Browser-Key": browserKey() };
  try {
    const answer = await fetch(inOrganization(`/api/v1/drafts${path}`), { headers, cache: "no-store", ...more });
    return { status: answer.status, document: await answer.json() };
  } catch {
    return NOTHING;
  }
}

export class Draft {
  text = ""; // on the server, as far as this window knows
  version = 0;
  /** @type {string | null} */
  typed = null; // here, and not on the server yet
  /** @type {string | null} */
  other = null; // of another window, or of an earlier visit; the user chooses
  problem = "";
  timer = 0;
  saving = Promise.resolve();

  /** @param {string} subject @param {(draft: Draft) => void} tell when something of it has changed */
  constructor(subject, tell) {
    this.path = `/${encodeURIComponent(subject)}`;
    this.place = `fleet-draft ${document.body.dataset.user} ${subject}`;
    this.tell = tell;
  }

  /** @param {string} text @param {number} [wait] */
  type(text, wait = SOON_MS) {
    this.typed = text;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.save(), wait);
  }

  /** One request after the other. A text is in this browser before it is on its way. */
  save(leaving = false) {
    clearTimeout(this.timer);
    this.keep();
    return this.next(() => this.put(leaving));
  }

  /** @param {() => unknown} work */
  next(work) {
    this.saving = this.saving.then(work).then(() => this.tell(this));
    return this.saving;
  }

  /** @param {boolean} leaving @returns {Promise<void>} */
  async put(leaving) {
    const { typed, version } = this;
    if (typed === null || this.other !== null) return;
    if (typed === this.text) return this.saved(typed, version);
    const put = { method: "PUT", body: JSON.stringify({ text: typed, version }), keepalive: leaving && typed.length < MOST_ON_LEAVING };
    const { status, document } = await (typed ? call(this.path, put) : this.remove());
    if (document.stored) {
      const { text } = document.stored;
      this.version = document.stored.version;
      if (!["", typed, this.text].includes(text)) return void (this.other = text);
      this.text = text;
      return this.put(leaving);
    }
    if (status === 200) return this.saved(typed, typed ? document.version : 0);
    this.problem = status === 401 ? "you are logged out" : document.detail ?? "the server does not answer";
    // A text that is refused, as one that is too long, is refused again.
    if (!status || status === 401 || status >= 500) this.timer = setTimeout(() => this.save(), AGAIN_MS);
  }

  remove() {
    return call(`${this.path}?version=${this.version}`, { method: "DELETE" });
  }

  /** @param {string} text @param {number} version */
  saved(text, version) {
    Object.assign(this, { text, version, problem: "" });
    if (this.typed === text) this.forget();
  }

  forget() {
    clearTimeout(this.timer);
    this.typed = null;
    this.problem = "";
    this.keep();
  }

  /** What was typed here was sent, or is not wanted any more. What another window wrote is what is left. */
  end() {
    this.forget();
    return this.next(async () => {
      if (this.other === null && this.version) await this.remove();
      Object.assign(this, this.other === null ? { text: "", version: 0 } : { text: this.other, other: null });
    });
  }

  /** Keep in this browser what the server does not have yet. Where storage is blocked, it is on the page alone. */
  keep() {
    try {
      if (this.typed === null) localStorage.removeItem(this.place);
      else localStorage.setItem(this.place, JSON.stringify({ text: this.typed, version: this.version }));
    } catch {}
  }

  /** @returns {{text: string, version: number} | null} */
  kept() {
    try {
      return JSON.parse(localStorage.getItem(this.place) || "null");
    } catch {
      return null;
    }
  }
}
