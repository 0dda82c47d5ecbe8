// The palette (Ctrl K): every link and button of the page that says what it does, then what a search on the server finds.
const dialog = /** @type {HTMLDialogElement | null} */ (document.getElementById("palette"));
const input = dialog?.querySelector("input");
const list = dialog?.querySelector("[role=listbox]");
/** @type {{label: string, run: () => void}[]} */
let found = [];
let at = 0;
let asked = 0;

document.addEventListener("click", (event) => {
  if (event.target instanceof Element && event.target.closest("[data-palette]")) open();
});

function open() {
  if (!dialog || !input) return;
  input.value = "";
  search();
  dialog.showModal();
}

function local() {
  const things = /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("nav.side a[href], [data-command], main a[data-title]"));
  return [...things].map((each) => ({ label: each.dataset.command || each.dataset.title || each.querySelector("span")?.textContent || "", run: () => each.click() }));
}

async function search() {
  if (!input) return;
  const text = input.value.trim().toLowerCase();
  const mine = ++asked;
  found = local().filter(({ label }) => label.toLowerCase().includes(text));
  show();
  if (text.length < 2) return;
  const answer = await fetch(`/search?text=${encodeURIComponent(text)}`, { headers: { Accept: "application/json" } }).catch(() => null);
  if (!answer?.ok || mine !== asked) return;
  const more = /** @type {{label: string, href: string}[]} */ (await answer.json());
  found.push(...more.map(({ label, href }) => ({ label, run: () => location.assign(href) })));
  show();
}

function show() {
  at = Math.max(0, Math.min(at, found.length - 1));
  list?.replaceChildren(...found.slice(0, 12).map(({ label }, index) => {
    const option = document.createElement("div");
    option.setAttribute("role", "option");
    option.id = `palette-${index}`;
    option.setAttribute("aria-selected", String(index === at));
    option.textContent = label;
    option.addEventListener("click", () => choose(index));
    return option;
  }));
  input?.setAttribute("aria-activedescendant", found.length ? `palette-${at}` : "");
}

/** @param {number} index */
function choose(index) {
  dialog?.close();
  found[index]?.run();
}

input?.addEventListener("input", () => { at = 0; search(); });
input?.addEventListener("keydown", (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step) { event.preventDefault(); at += step; show(); }
  if (event.key === "Enter") { event.preventDefault(); choose(at); }
});
