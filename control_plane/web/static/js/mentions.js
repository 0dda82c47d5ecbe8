// <text-expander keys="@"> completes the names of agents while a comment is written.
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
  const list = document.createElement("ul");
  list.setAttribute("role", "listbox");
  list.className = "suggestions";
  for (const { name, about } of found) {
    const option = document.createElement("li");
    option.setAttribute("role", "option");
    option.id = `mention-${name}`;
    option.dataset.value = name;
    const tag = document.createElement("span");
    tag.className = "strong";
    tag.textContent = `@${name} `;
    const more = document.createElement("span");
    more.className = "muted small";
    more.textContent = about.slice(0, 80);
    option.append(tag, more);
    list.append(option);
  }
  return { matched: found.length > 0, fragment: list };
}
