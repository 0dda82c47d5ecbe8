// Text in flight: what the model writes before the step with it is stored. Each piece says after which step it comes; a
// later step takes its place. Nothing here builds markup.
const MOST = 20000;
const OUTPUT_LINES = 20;
const page = document.getElementById("conversation");
const flight = document.getElementById("flight");
/** @type {{after: number, kind: string, text: string}[]} */
let pieces = [];
/** @type {{after: number, count: number, whole: boolean}} what came of the message that is being written */
let message = { after: -1, count: 0, whole: true };

// As shared/visible_text.py: nothing in it may hide, reorder or overwrite what is beside it.
const HIDDEN = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;
const mark = (/** @type {string} */ character) => {
  const code = /** @type {number} */ (character.codePointAt(0));
  return code < 0x20 ? String.fromCodePoint(0x2400 + code) : `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
};
const visible = (/** @type {string} */ text) => text.replaceAll("\r\n", "\n").replace(HIDDEN, mark);
const withoutCodes = (/** @type {string} */ text) => text.replace(/\x1b\[[0-?]*[ -/]*[@-~]/g, "").replace(/\r+\n?/g, "\n");

document.addEventListener("live:delta", (event) => {
  const { topic, after, kind, text, offset } = /** @type {CustomEvent} */ (event).detail;
  if (topic !== `order:${page?.dataset.order}` || after < Number(page?.dataset.last)) return;
  if (after !== message.after) message = { after, count: 0, whole: true };
  if (typeof offset === "number") {
    // A piece is missing, or the page was opened in the middle: the step will show all of it.
    message.whole &&= offset === message.count;
    message.count += [...text].length;
    if (!message.whole) return;
  }
  pieces.push({ after, kind, text });
  show();
});

/** Steps up to this one are on the page. @param {number} last @param {boolean} ended */
export function dropText(last, ended) {
  pieces = ended ? [] : pieces.filter((piece) => piece.after >= last);
  show();
}

function show() {
  if (!flight) return;
  const talk = document.getElementById("talk");
  const atEnd = talk && talk.scrollHeight - talk.scrollTop - talk.clientHeight < 80;
  for (const place of /** @type {NodeListOf<HTMLElement>} */ (flight.querySelectorAll("[data-kind]"))) {
    const text = pieces.filter((piece) => piece.kind === place.dataset.kind).map((piece) => piece.text).join("").slice(-MOST);
    place.textContent = place.dataset.kind === "output" ? visible(withoutCodes(text).split("\n").slice(-OUTPUT_LINES).join("\n")) : visible(text);
  }
  flight.hidden = ![...flight.querySelectorAll("[data-kind]")].some((place) => place.textContent);
  if (atEnd && talk) talk.scrollTop = talk.scrollHeight;
}
