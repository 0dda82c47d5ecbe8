// Parts of a session's page that are fetched when the reader asks for them: panels, folded calls, earlier parts.
import { fetchPart } from "./live.js";
import { button, element, readPart } from "./parts.js";

const page = document.getElementById("conversation");
const KEPT_BLOCKS = 80;
const WIDE = matchMedia("(min-width: 901px)");
let panel = page?.dataset.panel || "";

// --- panels ----------------------------------------------------------------------------------

document.addEventListener("click", (event) => {
  if (!(event.target instanceof Element) || !(event instanceof MouseEvent) || event.metaKey || event.ctrlKey || !page) return;
  const tab = /** @type {HTMLAnchorElement | null} */ (event.target.closest("a[data-tab]"));
  if (tab) {
    event.preventDefault();
    const name = tab.dataset.tab || "";
    // Beside a panel, the conversation is shown anyway.
    if (name !== "talk" || !WIDE.matches) open(name);
    history.replaceState(null, "", panel ? `?panel=${panel}` : location.pathname);
    // Reached by a key, it scrolls by keys.
    if (!event.detail) document.getElementById(name === "talk" ? "talk" : "panel-body")?.focus({ preventScroll: true });
  }
  const earlier = /** @type {HTMLElement | null} */ (event.target.closest("a[data-earlier]"));
  if (earlier) { event.preventDefault(); showEarlier(earlier); }
});

/** @param {string} name */
function open(name) {
  panel = name === "talk" ? "" : name;
  if (page && panel) page.dataset.panel = panel;
  else delete page?.dataset.panel;
  showPanel(panel || "changes");
}

/** @param {string} name */
function showPanel(name) {
  for (const each of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-panel-name]"))) {
    each.hidden = each.dataset.panelName !== name;
    const content = /** @type {HTMLElement | null} */ (each.querySelector("[data-part]"));
    if (!each.hidden && content) fetchPart(content);
  }
  markTabs();
}

/** The tab of the open panel is the marked one, also after the tabs were replaced. */
export function markTabs() {
  const shown = panel || (WIDE.matches ? "changes" : "talk");
  for (const tab of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("a[data-tab]"))) {
    if (tab.dataset.tab === shown) tab.setAttribute("aria-current", "true");
    else tab.removeAttribute("aria-current");
  }
}

/**
 * Show the panels of the session's next turn. Changes on which the reader writes a comment stay until they leave them.
 * @param {string} order
 */
export function movePanels(order) {
  for (const each of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-panel-name] > [data-part]"))) {
    each.parentElement?.querySelector(".onward")?.remove();
    const onward = button("Show the new turn's changes", () => movePanel(each, order));
    if (each.querySelector(".new-comment")) each.before(element("p", { className: "onward pad small muted" }, "These are the changes of the turn before. ", onward));
    else movePanel(each, order);
  }
}

/** @param {HTMLElement} content @param {string} order */
function movePanel(content, order) {
  content.parentElement?.querySelector(".onward")?.remove();
  for (const name of ["part", "live"]) content.dataset[name] = content.dataset[name]?.replace(/[0-9a-f]{12}/, order);
  if (!content.parentElement?.hidden) fetchPart(content);
}

if (page && (panel || WIDE.matches)) showPanel(panel || "changes");
else markTabs();

// --- folded calls ------------------------------------------------------------------------------

document.addEventListener("toggle", (event) => {
  if (event.target instanceof HTMLDetailsElement) load(event.target);
}, true);

/** Load what is open and was made again. @param {HTMLElement} within */
function loadOpen(within) {
  for (const each of /** @type {NodeListOf<HTMLDetailsElement>} */ (within.querySelectorAll("details[open][data-calls]"))) load(each);
}

/** @param {HTMLDetailsElement} fold */
async function load(fold) {
  const into = /** @type {HTMLElement | null} */ (fold.querySelector("[data-into]"));
  const address = fold.dataset.calls;
  if (!fold.open || !into || !address || into.dataset.loaded === address) return;
  into.dataset.loaded = address;
  const { last } = into.dataset;
  const fresh = /** @type {HTMLElement | null | undefined} */ ((await readPart(last ? `${address}&known=${last}` : address))?.querySelector("[data-into]"));
  if (!fresh) return void delete into.dataset.loaded;
  into.dataset.keep = "";
  if (last) await merge(into, fresh);
  else into.replaceChildren(...fresh.childNodes);
  into.dataset.last = fresh.dataset.last;
}

/** @param {HTMLElement | null} old @param {HTMLElement | null} fresh */
export async function morph(old, fresh) {
  if (old && fresh) await htmx.swap({ target: old, text: fresh.outerHTML, swap: "outerMorph", sourceElement: old });
}

/**
 * Bring children up to date by their ids; returns how many are new. Where only some were sent (data-partial), the others
 * stay, except those that are gone. @param {HTMLElement} old @param {HTMLElement} fresh @returns {Promise<number>}
 */
export async function merge(old, fresh) {
  const added = [];
  for (const each of /** @type {HTMLElement[]} */ ([...fresh.children])) {
    const known = /** @type {HTMLElement | undefined} */ ([...old.children].find((child) => child.id === each.id));
    if ("gone" in each.dataset) known?.remove();
    else if (!known) added.push(each);
    else if ("partial" in each.dataset) { await merge(known, each); known.dataset.last = each.dataset.last; }
    else await morph(known, each);
  }
  old.append(...added);
  loadOpen(old);
  return added.length;
}

// --- earlier parts -----------------------------------------------------------------------------

/** @param {HTMLElement} link */
async function showEarlier(link) {
  if (link.ariaBusy) return;
  link.ariaBusy = "true";
  const fresh = await readPart(link.dataset.earlier || "");
  link.ariaBusy = null;
  const talk = document.getElementById("talk");
  const blocks = document.getElementById("blocks");
  // The beginning that this link led to may have been dropped meanwhile.
  if (!fresh || !talk || !blocks || !link.isConnected) return;
  const fromEnd = talk.scrollHeight - talk.scrollTop;
  blocks.prepend(...(fresh.getElementById("blocks")?.childNodes ?? []));
  document.getElementById("earlier")?.replaceWith(/** @type {HTMLElement} */ (fresh.getElementById("earlier")));
  talk.scrollTop = talk.scrollHeight - fromEnd;
}

/** Drop the beginning of a conversation that grew for long; it comes back by "Show earlier". */
export function trimBlocks() {
  const blocks = /** @type {HTMLElement[]} */ ([...(document.getElementById("blocks")?.children ?? [])]);
  let cut = blocks.length - KEPT_BLOCKS;
  if (!page || cut <= KEPT_BLOCKS / 2) return;
  // A call is not separated from what was recorded before its result, which may still come.
  while (blocks.slice(0, cut).some((each) => each.dataset.order === blocks[cut].dataset.order && lastOf(each) > Number(blocks[cut].dataset.first))) cut -= 1;
  if (!cut) return;
  const { order, first } = blocks[cut].dataset;
  for (const old of blocks.slice(0, cut)) old.remove();
  const link = element("a", { className: "button", href: `?before=${order}.${first}`, textContent: "Show earlier" });
  link.dataset.earlier = `/orders/${page.dataset.order}/earlier?before=${order}.${first}`;
  document.getElementById("earlier")?.replaceChildren(link);
}

/** The last step of a block, infinite where later steps can change it. @param {HTMLElement} block */
function lastOf({ dataset }) {
  const isOpen = dataset.order === page?.dataset.order && Number(dataset.first) > Number(page?.dataset.resume);
  return isOpen ? Infinity : Number(dataset.last);
}
