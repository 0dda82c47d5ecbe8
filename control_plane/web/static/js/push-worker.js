// The service worker of notifications: shows what the server sends, and on a click the page of it: in the tab that has it
// open, else in a new one. It serves no requests.
// @ts-nocheck: the types of a service worker, which pages do not have

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("push", (event) => {
  let told = {};
  try { told = event.data.json(); } catch { /* a message without content still has to be shown */ }
  const options = { body: told.body || "", tag: told.id || "dronefleet", data: { url: told.url || "/", waits: told.waits === true }, icon: "/static/icon-192.png" };
  event.waitUntil(self.registration.showNotification(told.title || "Something waits for you", options));
});
self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  // Only pages of this server: the message was encrypted for this browser, but its address is still foreign text.
  const url = new URL(event.notification.data.url, self.location.origin);
  const page = url.origin === self.location.origin ? url.href : self.location.origin;
  const open = async () => {
    // Also the tabs that this worker does not serve, which are all.
    const tabs = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
    const there = tabs.find((tab) => tab.url.split(/[?#]/)[0] === page.split(/[?#]/)[0]);
    return there ? there.focus() : self.clients.openWindow(page);
  };
  event.waitUntil(open());
});
