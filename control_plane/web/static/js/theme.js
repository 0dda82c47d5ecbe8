// Light, dark, or as the system is: a choice of this browser.
const NAME = "fleet-theme";

/** @param {string | null} theme */
function apply(theme) {
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  for (const button of document.querySelectorAll("[data-theme-choice]")) {
    button.setAttribute("aria-pressed", String(button.getAttribute("data-theme-choice") === (theme || "system")));
  }
}

function stored() {
  try { return localStorage.getItem(NAME); } catch { return null; }
}

apply(stored());
document.addEventListener("click", (event) => {
  const button = event.target instanceof Element && event.target.closest("[data-theme-choice]");
  if (!button) return;
  const theme = button.getAttribute("data-theme-choice") || "system";
  try { localStorage.setItem(NAME, theme); } catch { /* storage is blocked: for this page only */ }
  apply(theme);
});
