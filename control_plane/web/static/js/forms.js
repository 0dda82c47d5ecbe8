// Forms that leave the reader where they are: <form data-stay>. Without scripts, the page is loaded again. A form of an
// operation (data-form) comes back from the server as it was sent, with what is wrong beside each field.
import { browserKey } from "./browser-key.js";
import { showDialog } from "./dialogs.js";
import { stored, textsIn } from "./drafts.js";
import { notice, reasonOf } from "./notices.js";
import { refresh } from "./live.js";
import { button, parsed } from "./parts.js";

const LOGGED_OUT = "You are logged out. Log in again in another tab, then repeat this; the text stays here.";

document.addEventListener("submit", async (event) => {
  const form = /** @type {HTMLFormElement} */ (event.target);
  if (!form.matches("form[data-stay]")) return;
  event.preventDefault();
  if (tooSoon.has(form)) return;
  const submitter = /** @type {HTMLButtonElement | null} */ (event.submitter);
  if (submitter?.dataset.confirm && !confirm(submitter.dataset.confirm)) return;
  const body = new URLSearchParams(/** @type {any} */ (new FormData(form, submitter)));
  const buttons = [...form.querySelectorAll("button")];
  const sent = textsIn(form).map((field) => /** @type {const} */ ([field, field.name === submitter?.dataset.unsent ? "" : field.value]));
  // A form on a page of its own leads to the page of what was changed.
  const leads = "form" in form.dataset && !form.closest("dialog");
  // What vanishes with its form cannot be continued meanwhile.
  const vanishes = form.matches("[data-decides], [data-fades], dialog *");
  for (const button of buttons) button.disabled = true;
  for (const [field] of sent) field.readOnly ||= vanishes;
  try {
    await stored(form);
    const action = submitter?.getAttribute("formaction") || form.getAttribute("action") || "";
    const takesParts = "form" in form.dataset;
    const accept = takesParts ? "text/x-part" : "application/json";
    // What was done leads to a page, which is not loaded: what changed is fetched.
    const answer = await fetch(action, { method: "POST", body, redirect: leads ? "follow" : "manual", headers: { Accept: accept } });
    const target = answer.redirected ? answer.url : answer.headers.get("Location");
    if (answer.type === "opaqueredirect" || target) done(form, submitter, sent);
    if (target) location.assign(target);
    else if (answer.type === "opaqueredirect") return;
    else if (answer.status === 401) say(form, LOGGED_OUT);
    else if ((answer.headers.get("content-type") || "").startsWith("text/html")) {
      const html = await answer.text();
      const fresh = /** @type {HTMLFormElement | null} */ (parsed(html).querySelector(`form[action="${form.getAttribute("action")}"]`));
      if (fresh) sentBack(form, fresh);
      // An error without this form is the page of a proxy that found no server.
      else if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
      else { showDialog(html); refreshAll(); }
    } else await refused(form, answer);
  } catch (error) {
    say(form, `Not sent: ${error instanceof Error ? error.message : error}. The text stays here.`, () => form.requestSubmit(submitter));
  } finally {
    for (const [field] of sent) field.readOnly &&= !vanishes;
    for (const button of buttons) button.disabled = false;
  }
});

// A question that appears under the cursor, in the place of another one, is read before it is answered.
const READ_FIRST_MS = 1000;
const DECIDES = "form[data-decides]";
/** @type {WeakSet<Element>} */
const tooSoon = new WeakSet();
new MutationObserver((changes) => {
  for (const { target, addedNodes } of changes) {
    // What brings the page up to date takes away what the server did not send.
    if (target instanceof HTMLButtonElement && !target.disabled && target.form && tooSoon.has(target.form)) target.disabled = true;
    for (const node of addedNodes) {
      if (node instanceof Element) for (const form of node.matches(DECIDES) ? [node] : node.querySelectorAll(DECIDES)) hold(form);
    }
  }
}).observe(document.body, { childList: true, subtree: true, attributeFilter: ["disabled"] });

/** @param {Element} form */
function hold(form) {
  const buttons = form.querySelectorAll("button");
  tooSoon.add(form);
  for (const button of buttons) button.disabled = true;
  setTimeout(() => {
    tooSoon.delete(form);
    for (const button of buttons) button.disabled = false;
  }, READ_FIRST_MS);
}

/** What was sent is cleared; what was typed meanwhile stays. @param {HTMLFormElement} form @param {HTMLElement | null} submitter @param {(readonly [import("./drafts.js").Field, string])[]} sent */
function done(form, submitter, sent) {
  const told = submitter?.dataset.said || form.dataset.done;
  say(form, "");
  const later = sent.filter(([field, text]) => field.value !== text);
  const rest = later.map(([field, text]) => field.value.startsWith(text) ? field.value.slice(text.length).trimStart() : field.value);
  form.reset();
  later.forEach(([field], each) => { field.value = rest[each]; });
  form.dispatchEvent(new CustomEvent("form:done", { bubbles: true, detail: later.map(([field]) => field) }));
  form.closest("dialog")?.close();
  if (told) notice(told, undoOf(form));
  refreshAll();
}

/** What takes it back: another operation on the same thing. @param {HTMLFormElement} form */
function undoOf(form) {
  const { undo } = form.dataset;
  const body = new URLSearchParams(/** @type {any} */ (new FormData(form)));
  return undo ? () => takeBack(undo, body) : null;
}

/** @param {string} operation @param {URLSearchParams} body */
async function takeBack(operation, body) {
  const answer = await fetch(`/actions/${operation}`, { method: "POST", body, redirect: "manual", headers: { Accept: "application/json" } }).catch(() => null);
  if (answer?.type !== "opaqueredirect") notice(`Not undone: ${await reasonOf(answer)}`);
  refreshAll();
}

function refreshAll() {
  for (const topic of Object.keys(JSON.parse(document.body.dataset.topics || "{}"))) refresh(topic);
}

/** The form as it was sent takes its place. @param {HTMLFormElement} form @param {HTMLFormElement} fresh */
function sentBack(form, fresh) {
  // The server sends no secret back, and does not know what was open.
  for (const typed of /** @type {NodeListOf<HTMLInputElement>} */ (form.querySelectorAll("input[type=password]"))) {
    const field = fresh.elements.namedItem(typed.name);
    if (field instanceof HTMLInputElement) field.value = typed.value;
  }
  for (const field of textsIn(form)) if (field.dataset.draft) textsIn(fresh).find((each) => each.name === field.name)?.setAttribute("data-draft", field.dataset.draft);
  const wasOpen = form.querySelector("details[open] .field") !== null;
  for (const each of fresh.querySelectorAll("details")) if (wasOpen && each.querySelector(".field")) each.open = true;
  form.replaceWith(fresh);
  const first = /** @type {HTMLElement | null} */ (fresh.querySelector("[aria-invalid]") || fresh.querySelector(".problem, details[open] summary"));
  first?.focus();
}

/** @param {HTMLFormElement} form @param {Response} answer */
async function refused(form, answer) {
  const problem = await answer.json().catch(() => ({ detail: `The server answered ${answer.status}.` }));
  const fields = /** @type {{field: string, what: string}[]} */ (problem.fields || []);
  for (const marked of form.querySelectorAll("[aria-invalid]")) marked.removeAttribute("aria-invalid");
  for (const each of fields) {
    const element = form.elements.namedItem(each.field.split(".")[0]);
    if (element instanceof HTMLElement) element.setAttribute("aria-invalid", "true");
  }
  say(form, [problem.detail, problem.why, problem.next?.includes("--") ? "" : problem.next].filter(Boolean).join(" · "));
}

/** @param {HTMLFormElement} form @param {string} text @param {(() => void)} [again] */
function say(form, text, again) {
  const line = form.querySelector(".form-note");
  outlive.disconnect();
  if (line) line.textContent = text;
  else if (text) notice(text);
  if (line && again) return line.append(" ", button("Try again", again));
  if (!line || !text) return;
  said = { line, text, until: Date.now() + READ_MS };
  outlive.observe(document.body, { childList: true, subtree: true });
}

const READ_MS = 6000;
/** What a form said last. @type {{line: Element, text: string, until: number}} */
let said;
// News may take the form away, as where another user has decided: what it said must still be read.
const outlive = new MutationObserver(() => {
  if (said.line.isConnected && said.line.textContent === said.text && Date.now() < said.until) return;
  outlive.disconnect();
  if (Date.now() < said.until) notice(said.text);
});

// Requests of htmx need the key, too.
document.addEventListener("htmx:config:request", (event) => {
  const { ctx } = /** @type {CustomEvent} */ (event).detail;
  if (ctx.request.method !== "GET") ctx.request.headers["X-Fleet-Browser-Key"] = browserKey();
});
