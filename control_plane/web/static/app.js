// Makes the pages live. They read well without it: every step, state and figure is rendered by the server, so nothing
// here builds markup; text in flight goes in as textContent.
"use strict";

const REFRESH_MS = 3000;
const PARTS_MS = 120;
const IN_FLIGHT_CHARS = 20000;

const KEY = "fleet-browser-key";

const byId = (id) => document.getElementById(id);

// As shared/visible_text.py, for text in flight: nothing in it may hide, reorder or overwrite what is beside it.
const HIDDEN = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;
const mark = (character) => {
  const code = character.codePointAt(0);
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
};
const visible = (text) => text.replaceAll("\r\n", "\n").replace(HIDDEN, mark);
const withoutCodes = (output) => output.replace(/\x1b\[[0-?]*[ -/]*[@-~]/g, "").replace(/\r+\n?/g, "\n");

function note(text) {
  const line = byId("live-note");
  if (line && line.textContent !== text) line.textContent = text;
}

// Fetch a part of a page as a document, or null when it cannot be had now.
async function fetchPart(address) {
  const response = await fetch(address, { headers: { Accept: "text/x-part" }, cache: "no-store" });
  if (response.status === 401) {
    location.reload(); // the session ended: the server leads to the log-in page and back here
    return null;
  }
  if (!response.ok) throw new Error(`the server answered ${response.status}`);
  return new DOMParser().parseFromString(await response.text(), "text/html");
}

// The browser's own secret. Cookies go to every port of a host, and so to other servers there; storage belongs to one
// origin. The server takes changes only from the browser that logged in with this key, and never sends it back.
function browserKey() {
  try {
    if (!localStorage.getItem(KEY)) {
      const bytes = [...crypto.getRandomValues(new Uint8Array(32))];
      localStorage.setItem(KEY, bytes.map((byte) => byte.toString(16).padStart(2, "0")).join(""));
    }
    return localStorage.getItem(KEY);
  } catch {
    return ""; // storage is blocked here: this browser can only read
  }
}

// Fired for every form, however it is sent; never added to an address.
document.addEventListener("formdata", (event) => {
  if (event.target.method === "post") event.formData.set("browser_key", browserKey());
});

// Turn `old` into `fresh` and touch only what differs: focus, selection and scrolling stay where they were.
function morph(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  if (old.nodeName !== fresh.nodeName) return void old.replaceWith(fresh);
  if (old.nodeType === Node.TEXT_NODE) return void (old.data = fresh.data);
  // Whether something is folded is the reader's choice.
  for (const { name } of [...old.attributes]) if (name !== "open" && !fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (name !== "open") old.setAttribute(name, value);
  const before = [...old.childNodes];
  const after = [...fresh.childNodes];
  after.forEach((child, index) => (before[index] ? morph(before[index], child) : old.append(child)));
  before.slice(after.length).forEach((child) => child.remove());
}

// --- log-in by a one-use address ----------------------------------------------------------------

const once = document.querySelector("form[data-send-at-once]");
if (once) {
  // Programs that preview links run no scripts, so only a person's browser gets here. The token leaves the address.
  history.replaceState(null, "", "/login");
  once.submit();
}

// --- the board --------------------------------------------------------------------------------------

const board = document.querySelector("[data-refresh]");
if (board) {
  let timer = 0;
  const refresh = async () => {
    clearTimeout(timer);
    if (document.hidden) return; // a hidden tab asks for nothing; it catches up when it is looked at
    try {
      const part = await fetchPart(board.dataset.refresh);
      if (part) morph(board, part.getElementById("live"));
      note("");
    } catch (error) {
      note(`No connection (${error.message}); what you see is from before. Trying again.`);
    }
    timer = setTimeout(refresh, REFRESH_MS);
  };
  document.addEventListener("visibilitychange", refresh);
  timer = setTimeout(refresh, REFRESH_MS);
}

// --- forms that leave the reader where they are --------------------------------------------------------

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!form.matches("form[data-stay]")) return; // such a form also works without scripts: the page is loaded anew
  event.preventDefault();
  const body = new URLSearchParams(new FormData(form, event.submitter));
  const say = (text) => { const line = form.querySelector(".form-note"); if (line) line.textContent = text; };
  const buttons = form.querySelectorAll("button");
  buttons.forEach((button) => { button.disabled = true; });
  try {
    // What was done leads back to the page, which is not loaded for that: what changed is fetched.
    const action = event.submitter?.getAttribute("formaction") || form.getAttribute("action");
    const options = { method: "POST", body, redirect: "manual", headers: { Accept: "application/json" } };
    const response = await fetch(action, options);
    if (response.type === "opaqueredirect") {
      form.reset();
      document.dispatchEvent(new Event("sent"));
    }
    say(response.type === "opaqueredirect" ? "" : (await response.json()).detail);
  } catch (error) {
    say(`It was not sent (${error.message}); try again.`);
  } finally {
    buttons.forEach((button) => { button.disabled = false; });
  }
});

// --- an order -----------------------------------------------------------------------------------------

const order = document.querySelector("[data-order]");
if (order && order.dataset.ended === "no") followOrder(order);

function followOrder(article) {
  const id = article.dataset.order;
  let last = Number(article.dataset.last);
  let unseen = 0;
  let failures = 0;
  let ended = false;
  let stream = null;
  let fetching = null;
  let again = false;

  const inFlight = byId("in-flight");
  const jump = byId("jump");
  const atBottom = () => innerHeight + scrollY >= document.documentElement.scrollHeight - 80;
  const toBottom = () => scrollTo({ top: document.documentElement.scrollHeight });

  // Whoever scrolled up reads: the page stays where it is and says how much came since.
  const keepingPlace = (change, added) => {
    const follow = atBottom();
    change();
    if (follow) toBottom();
    else if (added) unseen += added;
    jump.hidden = follow || unseen === 0;
    jump.textContent = `Paused – ${unseen} new step${unseen === 1 ? "" : "s"} ↓`;
  };
  const caughtUp = () => { unseen = 0; jump.hidden = true; };
  jump.addEventListener("click", () => { toBottom(); caughtUp(); });
  addEventListener("scroll", () => { if (atBottom()) caughtUp(); }, { passive: true });

  // Text in flight by kind. It travels faster than steps do, so what follows a step may be here before the step is:
  // a step takes away only its own text.
  const pieces = Object.fromEntries([...inFlight.querySelectorAll("pre")].map((each) => [each.dataset.kind, each]));
  const texts = Object.fromEntries(Object.keys(pieces).map((kind) => [kind, ""]));
  const put = (kind, text) => {
    texts[kind] = text.slice(-IN_FLIGHT_CHARS);
    pieces[kind].textContent = kind === "output" ? visible(withoutCodes(texts[kind])) : visible(texts[kind]);
    inFlight.hidden = Object.values(texts).every((each) => each === "");
  };
  const takeAway = (kind, whole) => {
    const text = texts[kind];
    put(kind, whole && text.startsWith(whole) ? text.slice(whole.length) : "");
  };
  const landed = {
    reasoning: (step) => takeAway("thinking", step.text),
    assistant: (step) => { takeAway("thinking"); takeAway("text", step.text); },
    tool_result: () => takeAway("output"),
    run_ended: () => clearInFlight(),
  };
  const clearInFlight = () => Object.keys(pieces).forEach((kind) => takeAway(kind));

  // The server renders: events only say that there is something, and how far.
  const takeParts = async () => {
    if (fetching) { again = true; return fetching; }
    fetching = (async () => {
      do {
        again = false;
        const part = await fetchPart(`/orders/${id}/parts?after=${last}`);
        if (!part) return;
        const steps = [...part.querySelectorAll("#steps > li")].filter((step) => Number(step.dataset.seq) > last);
        keepingPlace(() => show(part, steps), steps.length);
        again = again || steps.length >= 200;
      } while (again);
    })();
    try { await fetching; } finally { fetching = null; }
  };

  const show = (part, steps) => {
    const head = byId("head");
    morph(head, part.getElementById("head"));
    morph(byId("talk"), part.getElementById("talk"));
    if (steps.length) {
      byId("steps").append(...steps);
      steps.filter((step) => step.dataset.from).forEach(markUndone);
      byId("no-steps")?.remove();
      last = Number(steps.at(-1).dataset.seq);
    }
    const result = part.getElementById("result");
    if (result) byId("result").replaceChildren(...result.childNodes);
    const word = head.querySelector(".state")?.textContent;
    if (word) document.title = `${word} · ${id} – Dronefleet`;
  };

  // A run goes on from a step: whatever other runs did after it is undone, as the server says from now on too.
  const markUndone = (resumed) => {
    const after = Number(resumed.dataset.from);
    for (const step of byId("steps").children) {
      const undone = Number(step.dataset.seq) > after && step.dataset.run !== resumed.dataset.run;
      if (undone) step.classList.add("undone");
    }
  };

  let soon = 0;
  const takePartsSoon = () => {
    clearTimeout(soon);
    soon = setTimeout(() => takeParts().catch((error) => note(`Not up to date: ${error.message}`)), PARTS_MS);
  };

  const onDelta = (event) => {
    const delta = JSON.parse(event.data);
    if (pieces[delta.kind]) keepingPlace(() => put(delta.kind, texts[delta.kind] + delta.text), 0);
  };

  const onStep = (event) => {
    const step = JSON.parse(event.data);
    landed[step.kind]?.(step);
    takePartsSoon();
  };

  const onEnd = async () => {
    ended = true;
    stream.close();
    clearInFlight();
    clearTimeout(soon);
    // The result is on the page when this returns; without a connection the last thing tried is to say so.
    try { await takeParts(); note(""); } catch (error) { note(`The order ended; reload to see the result (${error.message}).`); }
  };

  document.addEventListener("sent", takePartsSoon);

  const connect = () => {
    if (ended || stream || document.hidden) return;
    stream = new EventSource(`/api/v1/orders/${id}/events?after=${last}`);
    // Whatever happened while nobody listened is not told again.
    stream.addEventListener("open", () => { failures = 0; note(""); takePartsSoon(); });
    stream.addEventListener("step", onStep);
    stream.addEventListener("order", takePartsSoon);
    stream.addEventListener("delta", onDelta);
    stream.addEventListener("end", onEnd);
    stream.addEventListener("error", () => {
      // The browser's own reconnecting gives up after an answer that is not 200; ours goes on, and knows the last step.
      stream.close();
      stream = null;
      failures += 1;
      const wait = Math.min(500 * 2 ** failures, 10000) * (0.75 + Math.random() / 2);
      note("Connection lost; what you see is from before. Connecting again.");
      setTimeout(connect, wait);
    });
  };

  // Browsers allow six connections to a host: a hidden tab gives its own back.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden && stream && !ended) { stream.close(); stream = null; } else connect();
  });
  if (atBottom()) toBottom();
  connect();
}
