// <text-expander keys="@"> completes the names of agents while a comment is written.
import { element } from "./parts.js";

document.addEventListener("text-expander-change", (event) => {
  const { key, text, provide } = /** @type {CustomEvent} */ (event).detail;
  if (key === "@") provide(suggestions(text));
}, true); // these events do not bubble

document.addEventListener("text-expander-value", (event) => {
  const { detail } = /** @type {CustomEvent} */ (event);
  if (detail.key === "@") detail.value = `@${detail.item.dataset.value}`;
}, true);

/** @param {string} text @returns {Promise<{matched: boolean, fragment?: HTMLElement}>} */
async function suggestions(text) {
  const answer = await fetch(`/mentions?text=${encodeURIComponent(text)}`, { headers: { Accept: "application/json" } }).catch(() => null);
  const found = /** @type {{name: string, about: string}[]} */ (answer?.ok ? await answer.json() : []);
  const options = found.map(({ name, about }) => {
    const texts = [element("span", { className: "strong" }, `@${name} `), element("span", { className: "muted small" }, about.slice(0, 80))];
    const option = element("li", { id: `mention-${name}`, role: "option" }, ...texts);
    option.dataset.value = name;
    return option;
  });
  return { matched: found.length > 0, fragment: element("ul", { className: "suggestions", role: "listbox" }, ...options) };
}
