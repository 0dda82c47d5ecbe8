// The tab says how much waits: `(3) Inbox`, and the icon has a mark. The sidebar, which is live, knows the figure.
const icon = /** @type {HTMLLinkElement | null} */ (document.getElementById("favicon"));

let waited = true;

function show() {
  const side = document.getElementById("side");
  if (!side) return;
  const count = Number(side.dataset.inbox);
  const title = document.title.replace(/^\(\d+\) /, "");
  document.title = count ? `(${count}) ${title}` : title;
  if (waited && !count) closeAnswered();
  waited = count > 0;
  if (icon) icon.setAttribute("href", (count ? icon.dataset.waiting : icon.dataset.idle) || "");
}

// What a notification asked was answered, here or elsewhere.
async function closeAnswered() {
  const made = await navigator.serviceWorker?.getRegistration("/static/js/");
  for (const each of (await made?.getNotifications()) ?? []) if (each.data?.waits) each.close();
}

show();
document.addEventListener("htmx:after:swap", show);
