"""Notifications in a real Chromium: subscribing, the service worker, and that a page is in front."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser

from control_plane.attention.presence import is_present
from control_plane.operations.attention import choices
from tests.browser.conftest import Person
from tests.support import wait_until
from tests.support.attention import COMMAND, Notifying

pytestmark = [pytest.mark.browser, pytest.mark.long]
SUBSCRIBE = """
Notification.requestPermission = async () => "granted";
PushManager.prototype.subscribe = async (options) => {
  window.subscribedWith = [...new Uint8Array(options.applicationServerKey)];
  return {toJSON: () => (%s)};
};
"""
NOTIFICATIONS = """async () => {
  const made = await navigator.serviceWorker.getRegistration("/static/js/");
  return (await made.getNotifications()).map((each) => [each.title, each.body, each.data.url]);
}"""


CLICK = """async (url) => {
  const did = new Promise((resolve) => {
    self.clients.openWindow = async (page) => resolve(["opened", page]);
    WindowClient.prototype.focus = async function () { resolve(["focused", this.url]); };
  });
  await self.registration.showNotification("shown", { data: { url }, tag: "clicked" });
  const [notification] = await self.registration.getNotifications({ tag: "clicked" });
  self.dispatchEvent(new NotificationEvent("notificationclick", { notification }));
  return did;
}"""
"""Without a user's own click, a browser opens and focuses nothing: what the worker asks for is recorded."""


def clicked(person: Person, url: str) -> list[str]:
    """What the service worker does when a notification of this address is clicked."""
    [worker] = person.context.service_workers
    did: list[str] = worker.evaluate(CLICK, url)
    return did


WAITING = """async () => {
  const made = await navigator.serviceWorker.getRegistration("/static/js/");
  return (await made.getNotifications()).map((each) => each.data.waits).sort();
}"""


@pytest.fixture
def ada(chromium: Browser, notifying: Notifying) -> Iterator[Person]:
    """The user `ada`, logged in with a token of hers."""
    notifying.user(email=False)
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    visitor = Person(notifying.api, context)
    page = visitor.open("/login")
    page.get_by_label("API token").fill(notifying.token("ada"))
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(f"{notifying.api.url}/")
    yield visitor
    context.close()
    assert visitor.errors == []


def test_a_browser_is_added_and_removed_and_its_service_worker_shows_a_message(
    notifying: Notifying, ada: Person
) -> None:
    """Chromium cannot reach its vendor's push service here: it is given the subscription of a stand-in.

    Messages reach the service worker through the browser's own debugging interface instead.
    """
    caller, browser = notifying.caller("ada"), notifying.push.subscribe()
    request = browser.request
    keys = {"p256dh": request["p256dh"], "auth": request["auth"]}
    ada.context.grant_permissions(["notifications"])
    ada.page.add_init_script(SUBSCRIBE % json.dumps({"endpoint": request["endpoint"], "keys": keys}))
    page = ada.open("/settings/attention")
    worker: list[dict[str, Any]] = []
    debugger = ada.context.new_cdp_session(page)
    debugger.on("ServiceWorker.workerRegistrationUpdated", lambda event: worker.extend(event["registrations"]))
    debugger.send("ServiceWorker.enable")
    manifest = debugger.send("Page.getAppManifest")
    assert (manifest["errors"], json.loads(manifest["data"])["display"]) == ([], "standalone")
    page.get_by_label("Name of this browser").fill("my laptop")
    page.get_by_role("button", name="Notify in this browser").click()
    ada.sees("my laptop")
    [shown] = choices.show(notifying.core, caller).browsers
    assert (shown.name, len(page.evaluate("window.subscribedWith"))) == ("my laptop", 65)

    wait_until(lambda: page.evaluate("1") and worker)
    told = {"id": "b1", "title": "Approval needed: <b>x</b>", "body": COMMAND, "url": "/orders"}

    def delivered() -> list[list[str]]:
        # Repeated, as a push service does: the same message replaces the notification that it showed.
        sent = {"origin": notifying.api.url, "registrationId": worker[-1]["registrationId"], "data": json.dumps(told)}
        debugger.send("ServiceWorker.deliverPushMessage", sent)
        found: list[list[str]] = page.evaluate(NOTIFICATIONS)
        return found

    assert wait_until(delivered, every=0.5) == [[told["title"], COMMAND, "/orders"]]
    assert clicked(ada, "/orders") == ["opened", f"{notifying.api.url}/orders"]
    ada.open("/orders?status=queued")
    assert clicked(ada, "/orders") == ["focused", f"{notifying.api.url}/orders?status=queued"]
    # What no longer waits is closed by the next page that knows it; what only reports stays.
    told |= {"id": "b2", "waits": True}
    wait_until(lambda: delivered() and page.evaluate(WAITING) == [False, True], every=0.5)
    page = ada.open("/settings/attention")
    wait_until(lambda: page.evaluate(WAITING) == [False])
    page.get_by_role("button", name="Remove").click()
    ada.sees("No browser shows notifications.")
    assert choices.show(notifying.core, caller).browsers == []


def test_a_page_says_that_it_is_in_front_and_that_it_is_left(notifying: Notifying, ada: Person) -> None:
    caller = notifying.caller("ada")
    ada.page.bring_to_front()
    wait_until(lambda: is_present(notifying.core, caller.organization_id, str(caller.user_id)))
    ada.page.evaluate("Document.prototype.hasFocus = () => false; dispatchEvent(new Event('blur'))")

    def left() -> bool:
        notifying.clock.sleep(1)
        return not is_present(notifying.core, caller.organization_id, str(caller.user_id))

    wait_until(left)
