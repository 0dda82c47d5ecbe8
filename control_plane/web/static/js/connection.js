// The one connection of a browser: a stream of news, and polling where a stream does not arrive. It runs in the shared
// worker, or in one tab where there is none.

/**
 * @typedef {{type: "changed", topic: string, version: string}} Changed
 * @typedef {{type: "delta", topic: string, after: number, run: string, kind: string, text: string, offset: number | null}} Delta
 * @typedef {{type: "status", state: "live" | "polling" | "reconnecting" | "stale" | "out", at: number, now: number | null}} Status
 * @typedef {Changed | Delta | Status} News
 */

const SILENCE_MS = 13000;
const FIRST_MS = 5000;
const POLL_MS = 3000;
const STREAM_AGAIN_MS = 60000;
const LONGEST_WAIT_MS = 8000;
const MOST_ASKED = 100; // topics in one address: proxies take 8 kB

export class Connection {
  /** @param {(news: News) => void} tell */
  constructor(tell) {
    this.tell = tell;
    /** @type {Map<string, string>} the version of each topic as last heard; empty: never */
    this.versions = new Map();
    /** @type {EventSource | null} */
    this.source = null;
    this.stream = "";
    this.asked = ""; // what the stream was opened with
    this.failures = 0;
    this.silences = 0;
    this.heardAt = Date.now();
    this.timer = 0;
    this.sending = 0;
    /** @type {Status} */
    this.status = { type: "status", state: "reconnecting", at: this.heardAt, now: null };
  }

  /** Follow exactly these topics from now on. @param {Map<string, string>} wanted the versions that the pages have */
  follow(wanted) {
    for (const topic of [...this.versions.keys()]) if (!wanted.has(topic)) this.versions.delete(topic);
    for (const [topic, version] of wanted) if (!this.versions.has(topic)) this.versions.set(topic, version);
    if (!this.source && !this.timer) return this.open();
    clearTimeout(this.sending);
    this.sending = setTimeout(() => this.send(), 20);
  }

  async send() {
    const { stream } = this;
    if (!stream) return; // it is told once it has said its name
    const body = JSON.stringify(Object.fromEntries(this.versions));
    const headers = { "Content-Type": "application/json" };
    const answer = await fetch(`/live/${stream}/topics`, { method: "POST", body, headers }).catch(() => null);
    if (stream !== this.stream || answer?.ok) return;
    if (answer?.status === 404) this.open(); // another process answered, or the stream has just ended
    else this.lost(); // it does not know what the pages show; the next one begins with that
  }

  query(from = 0, to = Infinity) {
    return [...this.versions].slice(from, to).map(([topic, version]) => `topic=${encodeURIComponent(`${topic}=${version}`)}`).join("&");
  }

  open() {
    this.close();
    this.asked = this.query(0, MOST_ASKED); // it is told of more once it has said its name
    const source = new EventSource(`/live?${this.asked}`);
    this.source = source;
    this.expect(FIRST_MS);
    /** @param {string} name @param {(data: any) => void} take */
    const on = (name, take) => source.addEventListener(name, (event) => {
      if (source !== this.source) return;
      this.expect(SILENCE_MS);
      take(JSON.parse(/** @type {MessageEvent} */ (event).data));
    });
    on("hello", (data) => { this.stream = data.stream; this.failures = this.silences = 0; this.heard("live", data.now); if (this.query() !== this.asked) this.send(); });
    on("beat", (data) => this.heard(data.reads ? "live" : "stale", data.now));
    on("changed", (data) => this.changed(data.topic, data.version));
    on("delta", (data) => this.tell({ ...data, type: "delta" }));
    source.addEventListener("error", () => { if (source === this.source) this.lost(); });
  }

  /** @param {number} within ms until silence counts as a lost connection */
  expect(within) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => { this.silences += 1; this.lost(); }, within);
  }

  close() {
    clearTimeout(this.timer);
    this.timer = 0;
    this.source?.close();
    this.source = null;
    this.stream = "";
  }

  // A stream that opens and says nothing goes through something that holds it back: after the second such, we poll.
  lost() {
    this.close();
    this.failures += 1;
    if (this.silences >= 2) return void this.poll(Date.now() + STREAM_AGAIN_MS);
    const wait = Math.min(250 * 2 ** this.failures, LONGEST_WAIT_MS) * (0.75 + Math.random() / 2);
    if (this.status.state !== "out") this.say("reconnecting", null);
    if (this.failures > 1) this.ask(); // an EventSource does not tell why it failed
    this.timer = setTimeout(() => this.open(), wait);
  }

  /** @param {number} until when a stream is tried again */
  async poll(until) {
    if (await this.ask()) this.heard("polling", this.status.now);
    else this.say(this.status.state === "out" ? "out" : "reconnecting", null);
    this.timer = setTimeout(() => (Date.now() > until ? this.open() : this.poll(until)), POLL_MS);
  }

  /** Ask for the present versions; whether there was an answer. */
  async ask() {
    try {
      for (let from = 0; from === 0 || from < this.versions.size; from += MOST_ASKED) {
        const signal = AbortSignal.timeout(SILENCE_MS); // else a proxy that holds it back would stop the polling
        const query = this.query(from, from + MOST_ASKED);
        const answer = await fetch(`/live/now?${query}`, { headers: { Accept: "application/json" }, cache: "no-store", signal });
        if (answer.status === 401) this.say("out", null);
        if (!answer.ok) return false;
        const { now, versions } = await answer.json();
        this.status.now = Date.parse(now);
        for (const [topic, version] of Object.entries(versions)) this.changed(topic, version);
      }
      return true;
    } catch {
      return false;
    }
  }

  /** @param {string} topic @param {string} version */
  changed(topic, version) {
    if (this.versions.get(topic) === version || !this.versions.has(topic)) return;
    this.versions.set(topic, version);
    this.tell({ type: "changed", topic, version });
  }

  /** What a tab that has these versions did not hear. @param {Map<string, string>} has @returns {News[]} */
  missed(has) {
    /** @type {News[]} */
    const news = [this.status];
    for (const [topic, version] of has) {
      const known = this.versions.get(topic);
      if (known && known !== version) news.push({ type: "changed", topic, version: known });
    }
    return news;
  }

  /** @param {Status["state"]} state @param {string | number | null} now the server's clock */
  heard(state, now) {
    this.heardAt = Date.now();
    this.say(state, now);
  }

  /** @param {Status["state"]} state @param {string | number | null} now */
  say(state, now) {
    const server = typeof now === "string" ? Date.parse(now) : now;
    this.status = { type: "status", state, at: this.heardAt, now: server };
    this.tell(this.status);
  }
}
