// Lists: filters that send themselves, further rows, and the selection of rows.
import { fetchPart } from "./live.js";

const bar = /** @type {HTMLFormElement | null} */ (document.querySelector("form[data-selection]"));

document.addEventListener("change", (event) => {
  const field = /** @type {HTMLInputElement | HTMLSelectElement} */ (event.target);
  if (field.matches(".pick")) return showSelection();
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
  fetchPart(list);
});

// An address without empty terms.
document.addEventListener("formdata", (event) => {
  const form = /** @type {HTMLFormElement} */ (event.target);
  if (!form.matches("[data-sends-itself]")) return;
  for (const [name, value] of [...event.formData]) if (value === "") event.formData.delete(name);
});

/** @returns {HTMLInputElement[]} */
const picks = () => [...document.querySelectorAll("input.pick")].map((each) => /** @type {HTMLInputElement} */ (each));

function showSelection() {
  if (!bar) return;
  const chosen = picks().filter((each) => each.checked);
  bar.hidden = !chosen.length;
  const told = bar.querySelector("[data-selected]");
  if (told) told.textContent = `${chosen.length} selected`;
  // A link, because a form that posts would put what it sends into the address.
  const compare = /** @type {HTMLAnchorElement | null} */ (bar.querySelector("[data-compare]"));
  if (!compare) return;
  compare.hidden = chosen.length < 2;
  compare.href = `${compare.dataset.compare}?${new URLSearchParams(chosen.map((each) => [each.name, each.value]))}`;
}

function clear() {
  for (const each of picks()) each.checked = false;
  showSelection();
}

bar?.querySelector("[data-select-none]")?.addEventListener("click", clear);
bar?.addEventListener("form:done", clear);
document.addEventListener("htmx:after:swap", showSelection);

showSelection();
