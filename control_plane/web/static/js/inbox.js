// Rows that are handled in place: a comment opens with the focus in it, and a handled row fades.
document.addEventListener("toggle", (event) => {
  const details = /** @type {HTMLDetailsElement} */ (event.target);
  if (details.matches("details[data-focus]") && details.open) /** @type {HTMLElement | null} */ (details.querySelector(":is(textarea, input:not([type=hidden])):enabled"))?.focus();
}, true);

document.addEventListener("form:done", (event) => {
  const row = /** @type {HTMLElement} */ (event.target).closest("[data-row]");
  if (!row) return;
  // The list is fetched again at once; what fades is a picture of the row.
  const box = row.getBoundingClientRect();
  const picture = /** @type {HTMLElement} */ (row.cloneNode(true));
  for (const each of [picture, ...picture.querySelectorAll("[id]")]) each.removeAttribute("id");
  picture.removeAttribute("data-row");
  for (const each of picture.querySelectorAll("[data-hotkey]")) each.removeAttribute("data-hotkey");
  picture.inert = true;
  picture.classList.add("fading");
  Object.assign(picture.style, { insetBlockStart: `${box.top + scrollY}px`, insetInlineStart: `${box.left}px`, inlineSize: `${box.width}px` });
  document.body.append(picture);
  setTimeout(() => picture.remove(), 400);
  const next = /** @type {HTMLElement | null | undefined} */ ((row.nextElementSibling ?? row.previousElementSibling)?.querySelector("a, button"));
  next?.focus();
});
