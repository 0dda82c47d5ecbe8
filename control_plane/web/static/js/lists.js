// Lists: filters that send themselves, further rows, and the selection of rows.
import { fetchPart, follow } from "./live.js";

const bar = /** @type {HTMLFormElement | null} */ (document.querySelector("form[data-selection]"));

document.addEventListener("change", (event) => {
  const field = /** @type {HTMLInputElement | HTMLSelectElement} */ (event.target);
  if (field.matches(".pick")) return showSelection();
  if (field instanceof HTMLInputElement && field.matches("[data-pick-all]")) return check(picks(), field.checked);
  // What lies in the menu is sent together, by its button.
  if (field.form?.matches("[data-sends-itself]") && !field.closest("details")) field.form.requestSubmit();
});

document.addEventListener("click", (event) => {
  const link = /** @type {Element} */ (event.target).closest("a[data-more]");
  const list = link instanceof HTMLAnchorElement && document.getElementById(link.dataset.more || "");
  if (!list || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  // The list stays this long when its topic changes.
  list.dataset.part = link.href;
  fetchPart(list).then(() => follow(list.dataset.live || ""));
});

// An address without empty terms.
document.addEventListener("formdata", (event) => {
  const form = /** @type {HTMLFormElement} */ (event.target);
  if (!form.matches("[data-sends-itself]")) return;
  for (const [name, value] of [...event.formData]) if (value === "") event.formData.delete(name);
});

/** @returns {HTMLInputElement[]} */
const picks = () => [...document.querySelectorAll("input.pick")].map((each) => /** @type {HTMLInputElement} */ (each));

/** @param {HTMLInputElement[]} chosen @param {boolean} checked */
function check(chosen, checked) {
  for (const each of chosen) each.checked = checked;
  showSelection();
}

/** Where a range begins: the row that was picked last. @type {HTMLInputElement | null} */
let from = null;
document.addEventListener("click", (event) => {
  const pick = event.target;
  if (!(pick instanceof HTMLInputElement) || !pick.matches(".pick")) return;
  const all = picks();
  const [first, last] = [all.indexOf(/** @type {HTMLInputElement} */ (from)), all.indexOf(pick)].sort((one, two) => one - two);
  if (event.shiftKey && first >= 0) check(all.slice(first, last + 1), pick.checked);
  from = pick;
});

function showSelection() {
  if (!bar) return;
  const chosen = picks().filter((each) => each.checked);
  const all = /** @type {HTMLInputElement | null} */ (document.querySelector("[data-pick-all]"));
  if (all) { all.checked = chosen.length > 0 && chosen.length === picks().length; all.indeterminate = chosen.length > 0 && !all.checked; }
  bar.hidden = !chosen.length;
  const told = bar.querySelector("[data-selected]");
  if (told) told.textContent = `${chosen.length} selected`;
  // A link, because a form that posts would put what it sends into the address.
  const compare = /** @type {HTMLAnchorElement | null} */ (bar.querySelector("[data-compare]"));
  if (!compare) return;
  compare.hidden = chosen.length < 2;
  compare.href = `${compare.dataset.compare}?${new URLSearchParams(chosen.map((each) => [each.name, each.value]))}`;
}

const clear = () => check(picks(), false);

bar?.querySelector("[data-select-none]")?.addEventListener("click", clear);
bar?.addEventListener("form:done", clear);
document.addEventListener("htmx:after:swap", showSelection);

showSelection();
