// The browser's own secret. Cookies go to every port of a host, and so to other servers there; storage belongs to one
// origin. The server takes changes only from the browser that logged in with this key, and never sends it back.
const NAME = "fleet-browser-key";

/** The key; empty where storage is blocked: such a browser can only read. */
export function browserKey() {
  try {
    const known = localStorage.getItem(NAME);
    if (known) return known;
    const bytes = [...crypto.getRandomValues(new Uint8Array(32))];
    const made = bytes.map((byte) => byte.toString(16).padStart(2, "0")).join("");
    localStorage.setItem(NAME, made);
    return made;
  } catch {
    return "";
  }
}

// Fired for every form, however it is sent; never added to an address.
document.addEventListener("formdata", (event) => {
  const form = /** @type {HTMLFormElement} */ (event.target);
  if (form.method !== "post") return;
  event.formData.set("browser_key", browserKey());
  // Also of a form that was fetched after another tab had chosen another organization.
  const { organization } = document.body.dataset;
  if (organization) event.formData.set("page_organization", organization);
});
