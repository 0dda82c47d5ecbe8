"""The inbox over HTTP, and the notes that are proposed there."""

from __future__ import annotations

from datetime import timedelta

import pytest

from control_plane.declarations import memory
from shared.events import RememberStep
from tests.support.fleet import Api
from tests.support.waiting import COMMAND, Waiting, everything_waits

HTML = {"Accept": "text/html"}


@pytest.fixture
def waiting(api: Api) -> Waiting:
    return everything_waits(api)


def test_the_whole_command_is_shown_with_what_can_be_done(api: Api, waiting: Waiting) -> None:
    with api.browser() as browser:
        page = browser.get("/", headers=HTML).text
    assert COMMAND.replace("&", "&amp;") in page
    assert "<title>(4) Inbox" in page
    for action in ("approve", "deny", "answer_order", "resume", "comment_task"):
        assert f'action="/actions/{action}"' in page


def test_what_ended_since_the_last_visit_is_listed_and_a_short_absence_is_none(api: Api, waiting: Waiting) -> None:
    now = int(api.core.clock.now().timestamp())
    day = int(timedelta(days=1).total_seconds())
    cookies = {"day away": f"0.{now - day}", "just here": f"{now + 60}.{now}", "nonsense": "x.y", "long": "9" * 80}
    with api.browser() as browser:
        pages = {}
        for name, cookie in cookies.items():
            browser.cookies.set("fleet-visit", cookie)
            pages[name] = browser.get("/", headers=HTML).text
            browser.cookies.delete("fleet-visit")
    listed = {name: page.count("/orders/" + waiting.checks.order_id + '" data-title') for name, page in pages.items()}
    assert ("While you were away" in pages["day away"], listed["day away"]) == (True, 2)
    assert listed["just here"] == 1
    assert "Recently finished" in pages["nonsense"]
    assert "Recently finished" in pages["long"]


HTML = {"Accept": "text/html"}
SAME_SITE = {"Sec-Fetch-Site": "same-origin"}


def proposed(api: Api) -> str:
    """The id of a note that an agent proposed."""
    api.add_work()
    run = api.add_drone("mila").take(api.submit("Mend it"))
    run.step(RememberStep(text="Use <b>make</b>", why="It is slow otherwise"))
    return str(api.client.call(memory.LIST)[0]["id"])


def test_a_proposal_is_kept_in_the_inbox_and_then_stands_with_its_project(api: Api) -> None:
    note = proposed(api)
    with api.browser() as browser:
        before = browser.get("/", headers=HTML).text
        answer = browser.post("/actions/accept_memory", data={"note_id": note}, headers=SAME_SITE)
        after, page = browser.get("/", headers=HTML).text, browser.get("/projects", headers=HTML).text
    assert ("Use &lt;b&gt;make&lt;/b&gt;" in before, "It is slow otherwise" in before) == (True, True)
    assert (answer.is_success or answer.is_redirect, note in after) == (True, False)
    assert (f'id="note-{note}"' in page, "1 kept" in page, "<b>make" in page) == (True, True, False)
