// Keeps a page up to date. <body data-topics='{"orders": "3f…"}'> names what it shows, with the versions it was rendered
// from. An element with data-live="orders" and data-part="ADDRESS" is fetched again and morphed when its topic changes.
import { browserKey } from "./browser-key.js";
import { leaderTab } from "./leader-tab.js";
import { getPart } from "./parts.js";
import { setServerNow } from "./times.js";

const SOON_MS = 10;
const DEAD_MS = 30000;
const body = document.body;
/** @type {Record<string, string>} */
const shown = JSON.parse(body.dataset.topics || "{}");
/** Topics to fetch, each with whether only steps came. @type {Map<string, boolean>} */
const waiting = new Map();
let soon = 0;

/** @type {ReturnType<typeof connect> | null} */
let port = null;
if (Object.keys(shown).length) {
  port = connect();
  port.postMessage({ topics: shown });
  addEventListener("pagehide", () => port?.postMessage({ leave: true }));
  addEventListener("pageshow", (event) => { if (event.persisted) port?.postMessage({ topics: shown }); });
}

/** Follow one more topic, for something that appeared on the page. @param {string} topic */
export function follow(topic) {
  shown[topic] ??= "";
  port?.postMessage({ topics: shown });
}

function connect() {
  try {
    const worker = new SharedWorker(body.dataset.worker || "", { type: "module", name: "fleet-live" });
    worker.port.onmessage = ({ data }) => hear(data);
    return worker.port;
  } catch {
    return leaderTab(hear);
  }
}

let heardAt = Date.now();

/** @param {import("./connection.js").News} news */
function hear(news) {
  heardAt = Date.now();
  if (news.type === "status") showStatus(news);
  else if (news.type === "delta") document.dispatchEvent(new CustomEvent("live:delta", { detail: news }));
  else if (news.topic in shown && shown[news.topic] !== news.version) {
    const before = shown[news.topic];
    shown[news.topic] = news.version;
    refresh(news.topic, onlySteps(before, news.version));
  }
}

/** The version of an order is `REST.STEP`. @param {string} before @param {string} now */
const onlySteps = (before, now) => now.includes(".") && before.split(".")[0] === now.split(".")[0];

/** Fetch again what shows this topic. @param {string} topic @param {boolean} [steps] of an order came steps alone */
export function refresh(topic, steps = false) {
  waiting.set(topic, steps && (waiting.get(topic) ?? true));
  // Not later with each further change: a topic that changes all the time would never be fetched.
  soon ||= setTimeout(fetchParts, SOON_MS);
}

async function fetchParts() {
  clearTimeout(soon);
  soon = 0;
  const changed = [...waiting];
  const topics = changed.map(([topic]) => topic);
  waiting.clear();
  for (const [topic, steps] of changed) document.dispatchEvent(new CustomEvent("live:changed", { detail: { topic, steps } }));
  const stale = /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-live][data-part]"));
  // A hidden panel is fetched when it is opened.
  const due = [...stale].filter((part) => !part.closest("[hidden]") && topics.some((topic) => (part.dataset.live || "").split(" ").includes(topic)));
  await Promise.all(due.map(fetchPart));
}

/** The elements that are being fetched, and whether they must be fetched once more. @type {Map<HTMLElement, boolean>} */
const fetching = new Map();

/** Bring one element up to date; an answer never replaces a later one. @param {HTMLElement} part */
export async function fetchPart(part) {
  for (const topic of (part.dataset.live || "").split(" ")) if (port && !(topic in shown)) follow(topic);
  if (fetching.has(part)) return void fetching.set(part, true);
  do {
    fetching.set(part, false);
    await fetchOnce(part);
  } while (fetching.get(part));
  fetching.delete(part);
}

/** @param {HTMLElement} part */
async function fetchOnce(part) {
  const address = part.dataset.part || "";
  try {
    const answer = await getPart(address);
    if (answer.status === 401) return showStatus({ type: "status", state: "out", at: Date.now(), now: null });
    if (isGone(answer)) return gone(answer, part);
    const text = await answer.text();
    if (answer.ok && part.dataset.part === address) await htmx.swap({ target: part, text, swap: "outerMorph", sourceElement: part });
    if (!answer.ok) later(part);
  } catch {
    later(part);
  }
}

/**
 * Neither the server nor a proxy before it gave the part: it is fetched again with the next sign of life, because no
 * change may come any more. @param {HTMLElement} part
 */
function later(part) {
  for (const topic of (part.dataset.live || "").split(" ")) waiting.set(topic, false);
}

/** Whether the server says so: a proxy that finds no server may answer 404 with a page of its own. @param {Response} answer */
export const isGone = (answer) => answer.status === 404 && !!answer.headers.get("content-type")?.startsWith("application/problem+json");

/**
 * What the page shows was removed: says so once, with where to go. What was typed stays, and nothing can be sent any more.
 * @param {Response} answer @param {HTMLElement | null} [part] @returns {Promise<void>}
 */
export async function gone(answer, part) {
  const { detail = "This is gone" } = await answer.json().catch(() => ({}));
  if (part && !part.closest("main")) return void (part.textContent = detail);
  const note = /** @type {HTMLElement} */ (document.getElementById("gone"));
  const [said, link] = [note.querySelector("span"), note.querySelector("a")];
  const list = /** @type {HTMLAnchorElement | null} */ (document.querySelector("#side a[aria-current]"));
  if (said) said.textContent = `${detail[0].toUpperCase()}${detail.slice(1)}.`;
  if (link && list && note.hidden) { link.href = list.href; link.append(list.querySelector("span")?.textContent || "the list"); }
  note.hidden = false;
  for (const button of /** @type {NodeListOf<HTMLButtonElement>} */ (document.querySelectorAll("main form button"))) button.disabled = true;
}

/** @type {Record<string, string>} */
const WORDS = { live: "Live", polling: "Live, every 3 s", reconnecting: "Reconnecting", stale: "The database does not answer", out: "Logged out" };
/** @type {import("./connection.js").Status | null} */
let status = null;

/** @param {import("./connection.js").Status} news */
function showStatus(news) {
  if (news.now) setServerNow(news.now);
  if (["live", "polling"].includes(news.state) && waiting.size && !soon) fetchParts();
  status = news;
  tick();
}

/** A connection says something every few seconds: a worker that does not has ended, or this machine was asleep. */
function revive() {
  heardAt = Date.now();
  if (status) status.state = "reconnecting";
  if (!(port instanceof MessagePort)) return;
  port.postMessage({ leave: true });
  port = connect();
  port.postMessage({ topics: shown });
}

function tick() {
  if (port && Date.now() - heardAt > DEAD_MS) revive();
  if (!status) return;
  const age = Math.round((Date.now() - status.at) / 1000);
  const text = WORDS[status.state] + (status.state === "reconnecting" ? ` (last event ${age} s ago)` : "");
  for (const mark of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".live-mark"))) {
    mark.dataset.state = status.state;
    if (mark.textContent !== text) mark.textContent = text;
  }
  const out = document.getElementById("logged-out");
  if (out) out.hidden = status.state !== "out";
}
setInterval(tick, 1000);

// Tells the server while this page is in front, so that its user is not notified by other ways.
const PRESENCE_MS = 12000;
const me = Math.random().toString(36).slice(2);
let inView = false;

function tellPresence() {
  const before = inView;
  inView = document.visibilityState === "visible" && document.hasFocus();
  if (!inView && !before) return;
  const headers = { "X-Fleet-Browser-Key": browserKey() };
  fetch(`/presence/${me}`, { method: "POST", headers, body: new URLSearchParams({ here: inView ? "1" : "" }), keepalive: true }).catch(() => null);
}
if (Object.keys(shown).length) {
  tellPresence();
  setInterval(tellPresence, PRESENCE_MS);
  for (const name of ["focus", "blur"]) addEventListener(name, tellPresence);
  document.addEventListener("visibilitychange", tellPresence);
}
