"""The inbox over HTTP: who sees what, and who may act."""

from __future__ import annotations

from datetime import timedelta

import pytest

from control_plane.lookups.organizations import system_caller
from tests.support.fleet import Api
from tests.support.organizations import add_organization
from tests.support.waiting import COMMAND, Waiting, everything_waits

HTML = {"Accept": "text/html"}
PART = {"Accept": "text/x-part"}


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


def test_a_viewer_reads_what_waits_and_may_not_act(api: Api, waiting: Waiting) -> None:
    form = {"order_id": waiting.approval.order_id, "call": "c1"}
    with api.browser(token=api.token_for("viewer")) as viewer:
        page = viewer.get("/", headers=HTML).text
        refused = viewer.post("/actions/approve", data=form, headers={"Accept": "application/json"})
    assert "Approve this command?" in page
    assert "/actions/approve" not in page
    assert refused.status_code == 403


def test_another_organization_has_an_inbox_of_its_own(api: Api, waiting: Waiting) -> None:
    add_organization(api.core, system_caller(api.core), "payments")
    form = {"order_id": waiting.approval.order_id, "call": "c1"}
    with api.browser() as browser:
        browser.post("/organization", data={"organization": "payments"})
        page = browser.get("/", headers=HTML).text
        refused = browser.post("/actions/approve", data=form, headers={"Accept": "application/json"})
    assert "Nothing is waiting for you" in page
    assert "Release 2.4" not in page
    assert refused.status_code == 404


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


def test_a_decided_call_waits_no_longer_for_a_user(api: Api, waiting: Waiting) -> None:
    form = {"order_id": waiting.approval.order_id, "call": "c1", "comment": ""}
    with api.browser() as browser:
        assert browser.post("/actions/deny", data=form).status_code == 303
        assert "Approve this command?" not in browser.get("/", headers=PART).text


def test_an_empty_fleet_begins_with_the_four_steps_and_a_viewer_gets_no_buttons(api: Api) -> None:
    with api.browser() as browser, api.browser(token=api.token_for("viewer")) as viewer:
        admins, viewers = (each.get("/", headers=HTML).text for each in (browser, viewer))
    assert "0 of 4 steps done" in admins
    assert "/actions/add_provider" in admins
    assert "/actions/" not in viewers.partition("<main")[2]
