// The tab says how much waits: `(3) Inbox`, and the icon has a mark. The sidebar, which is live, knows the figure.
const icon = /** @type {HTMLLinkElement | null} */ (document.getElementById("favicon"));

function show() {
  const side = document.getElementById("side");
  if (!side) return;
  const count = Number(side.dataset.inbox);
  const title = document.title.replace(/^\(\d+\) /, "");
  document.title = count ? `(${count}) ${title}` : title;
  if (icon) icon.setAttribute("href", (count ? icon.dataset.waiting : icon.dataset.idle) || "");
}

document.addEventListener("htmx:after:swap", show);
