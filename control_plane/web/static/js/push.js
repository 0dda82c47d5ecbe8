// "Notify in this browser": subscribes at the browser's push service, and says why where that is not possible.
import { browserKey } from "./browser-key.js";
import { refresh } from "./live.js";
import { reasonOf } from "./notices.js";
import { inOrganization } from "./parts.js";

const box = document.getElementById("push");
if (box) offer(box);

/** @param {HTMLElement} box */
function offer(box) {
  const [name, button, line] = /** @type {[HTMLInputElement, HTMLButtonElement, HTMLElement]} */ (
    ["input", "button", ".hint"].map((part) => box.querySelector(part)));
  const why = unavailable();
  line.textContent = why;
  if (why) return;
  name.disabled = button.disabled = false;
  name.value = `${/Firefox|Edg|Chrome|Safari/.exec(navigator.userAgent)?.[0] || "Browser"} on ${navigator.platform || "this device"}`;
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      line.textContent = await subscribe(box, name.value);
      refresh("attention");
    } catch (error) {
      line.textContent = `Not added: ${error instanceof Error ? error.message : error}`;
    }
    button.disabled = false;
  });
}

/** Why this browser cannot show notifications; empty if it can. */
function unavailable() {
  if (!window.isSecureContext) return "Unavailable: browsers allow notifications only over https, or on localhost.";
  if (!("serviceWorker" in navigator && "PushManager" in window && "Notification" in window)) return "Unavailable: this browser has no push notifications. On an iPhone, add this page to the home screen first.";
  if (Notification.permission === "denied") return "Unavailable: notifications are blocked for this address in the browser's settings.";
  return "";
}

/** @param {HTMLElement} box @param {string} name */
async function subscribe(box, name) {
  if ((await Notification.requestPermission()) !== "granted") throw new Error("the browser did not allow notifications");
  const registration = await navigator.serviceWorker.register(box.dataset.worker || "");
  await active(registration);
  const key = bytes(box.dataset.key || "");
  const subscription = await registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
  const { endpoint, keys } = subscription.toJSON();
  const headers = { "Content-Type": "application/json", "X-Fleet-Browser-Key": browserKey() };
  const body = JSON.stringify({ name, endpoint, p256dh: keys?.p256dh, auth: keys?.auth });
  const answer = await fetch(inOrganization("/api/v1/attention/browsers"), { method: "POST", headers, body });
  if (answer.ok) return "This browser shows notifications.";
  throw new Error(await reasonOf(answer));
}

/** Wait until the worker runs: only then can it subscribe. @param {ServiceWorkerRegistration} registration */
function active(registration) {
  const worker = registration.installing || registration.waiting;
  if (registration.active || !worker) return Promise.resolve();
  return new Promise((resolve) => worker.addEventListener("statechange", () => { if (worker.state === "activated") resolve(null); }));
}

/** @param {string} text URL-safe base64 */
function bytes(text) {
  const binary = atob(text.replace(/-/g, "+").replace(/_/g, "/"));
  return Uint8Array.from(binary, (letter) => letter.charCodeAt(0));
}
