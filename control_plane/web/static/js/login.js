// A log-in by a one-use address. Programs that preview links run no scripts, so only a person's browser gets here.
import "./browser-key.js";

const once = /** @type {HTMLFormElement | null} */ (document.querySelector("form[data-send-at-once]"));
if (once) {
  history.replaceState(null, "", "/login"); // the token leaves the address
  once.submit();
}
