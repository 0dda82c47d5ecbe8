// A log-in that began in this browser: the identity provider's answer needs no click.
import "./browser-key.js";

const once = /** @type {HTMLFormElement | null} */ (document.querySelector("form[data-send-at-once]"));
if (once) {
  history.replaceState(null, "", "/login"); // the code leaves the address
  once.submit();
}
