// The page of a session: later parts of the conversation appear, and the reader's place is kept.
import { follow, gone, isGone } from "./live.js";
import { getPart, parsed } from "./parts.js";
import { dropText } from "./session-flight.js";
import { markTabs, merge, morph, movePanels, trimBlocks } from "./session-parts.js";
import "./session-log.js";

const AGAIN_MS = 2000;
/** After a step, what is around the conversation (figures, to-do list, changed files) may be as old as this. */
const AROUND_MS = 1000;
const NEAR_END = 80;
const page = /** @type {HTMLElement} */ (document.getElementById("conversation"));
const talk = document.getElementById("talk");
const jump = document.getElementById("jump");
const form = /** @type {HTMLFormElement | null} */ (document.getElementById("composer"));
let busy = false;
/** What to ask for next. @type {"" | "steps" | "all"} */
let due = "";
let around = 0;
let unseen = 0;

const atEnd = () => !talk || talk.scrollHeight - talk.scrollTop - talk.clientHeight < NEAR_END;
const toEnd = () => { if (talk) talk.scrollTop = talk.scrollHeight; };

document.addEventListener("live:changed", (event) => {
  const { topic, steps } = /** @type {CustomEvent} */ (event).detail;
  if ([`order:${page?.dataset.order}`, `session:${page?.dataset.session}`].includes(topic)) takeNews(steps ? "steps" : "all");
});
talk?.addEventListener("scroll", () => { if (atEnd()) showUnseen(0); }, { passive: true });
jump?.addEventListener("click", () => { toEnd(); showUnseen(0); });

/** @param {number} count */
function showUnseen(count) {
  unseen = count;
  if (!jump) return;
  jump.hidden = !count;
  jump.textContent = `${count} new ↓`;
}

// One request at a time: what changes meanwhile is in the next answer. A step is shown at once, and what is around it soon.
async function takeNews(wanted = /** @type {"steps" | "all"} */ ("all")) {
  if (due !== "all") due = wanted;
  if (busy || !document.getElementById("now")) return page?.dataset.order ? undefined : reload();
  busy = true;
  try {
    while (due) {
      const steps = due === "steps";
      due = "";
      await (steps ? laterSteps() : news(false));
    }
  } catch {
    setTimeout(takeNews, AGAIN_MS);
  } finally {
    busy = false;
  }
}

/** A session without turns has its first one, or was removed. */
async function reload() {
  const answer = await getPart(location.href).catch(() => null);
  if (answer && isGone(answer)) return gone(answer);
  if (answer?.ok) location.reload();
  else setTimeout(takeNews, AGAIN_MS);
}

/** Only the blocks: that is all that the page shows at once of a step. */
async function laterSteps() {
  around ||= setTimeout(takeNews, AROUND_MS);
  await put(`later?resume=${page.dataset.resume}&last=${page.dataset.last}`, Number(page.dataset.resume));
}

/** All that changed. @param {boolean} whole the turn is new to the page */
async function news(whole) {
  clearTimeout(around);
  around = 0;
  const resume = whole ? 0 : Number(page.dataset.resume);
  const about = await put(`news?session=${page.dataset.session}&resume=${resume}&around=${page.dataset.around ?? ""}&${whole ? "whole=true" : `last=${page.dataset.last}`}`, resume);
  if (!about) return;
  Object.assign(page.dataset, { around: about.around, ended: about.ended });
  settle();
  // Where the session continues, the page follows it: also from an earlier turn, once the reader has switched to it.
  if (!about.next) page.dataset.follow = "";
  if (about.next && about.ended === "yes" && "follow" in page.dataset) await advance(about.next);
}

/** Show an answer, and return what its first element says. @param {string} address of the order @param {number} resume */
async function put(address, resume) {
  const answer = await getPart(`/orders/${page.dataset.order}/${address}`);
  if (isGone(answer)) return void gone(answer);
  if (!answer.ok) throw new Error(String(answer.status));
  const fresh = parsed(await answer.text());
  const about = /** @type {HTMLElement} */ (fresh.getElementById("news")).dataset;
  if (about.resumed) return void location.reload();
  const stay = !atEnd();
  for (const each of [...fresh.body.children]) if (!["news", "blocks"].includes(each.id)) await morph(document.getElementById(each.id), /** @type {HTMLElement} */ (each));
  const added = await putBlocks(/** @type {HTMLElement} */ (fresh.getElementById("blocks")), resume);
  dropText(Number(about.last), about.ended === "yes");
  Object.assign(page.dataset, { resume: about.resume, last: about.last });
  if (stay) showUnseen(unseen + added);
  else { trimBlocks(); toEnd(); }
  if (about.more) due = due || "steps";
  return about;
}

/** The session has continued with another turn. @param {string} order */
async function advance(order) {
  movePanels(order);
  page.dataset.order = order;
  follow(`order:${order}`);
  if (location.pathname.startsWith("/orders/")) history.replaceState(null, "", `/orders/${order}${location.search}`);
  await news(true);
}

/** @param {HTMLElement} fresh @param {number} resume */
async function putBlocks(fresh, resume) {
  const blocks = /** @type {HTMLElement} */ (document.getElementById("blocks"));
  const kept = new Set([...fresh.children].map((each) => each.id));
  for (const old of /** @type {HTMLElement[]} */ ([...blocks.children])) {
    const later = old.dataset.order === page.dataset.order && Number(old.dataset.first) > resume;
    if (later && !kept.has(old.id)) old.remove();
  }
  return merge(blocks, fresh);
}

/** What follows from the parts: the title of the tab, the marked tab, what the composer does. */
function settle() {
  const inbox = document.getElementById("side")?.dataset.inbox;
  const title = document.getElementById("head")?.dataset.title || "";
  document.title = Number(inbox) ? `(${inbox}) ${title}` : title;
  markTabs();
  const acts = document.getElementById("acts");
  const box = /** @type {HTMLTextAreaElement | null} */ (document.getElementById("message"));
  if (!form || !acts || !box) return;
  form.action = acts.dataset.action || "";
  box.name = acts.dataset.field || "";
  box.placeholder = acts.dataset.hint || "";
}

if (page && !location.hash && page.dataset.ended === "no") toEnd();
