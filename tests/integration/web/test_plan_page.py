"""The plan's page as plain HTTP: its form is sent like any form, and a refusal shows it again as it was sent."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from control_plane.db.drones import InboxMessage
from control_plane.declarations import plans
from shared.control import Decide
from shared.plans import AgentPlan, PlanPoint
from tests.support.fleet import Api, PlayedRun

PLAN = AgentPlan(title="Notes", points=(PlanPoint(text="One"), PlanPoint(text="Two", files=("b.py",), verify="ls")))


@pytest.fixture
def run(api: Api) -> PlayedRun:
    api.add_work()
    made = api.add_drone("mila").take(api.submit(plan_first=True))
    made.presents(PLAN)
    return made


def form(**changes: Any) -> dict[str, Any]:
    """The form as the page sends it, with the empty row for a new point."""
    return {
        "title": "Notes",
        "summary": "",
        "text": ["One", "Two", ""],
        "files": ["", "b.py", ""],
        "verify": ["", "ls", ""],
        "place": ["1", "2", "3"],
        "tick": ["1", "2", "3"],
        "revision": "0",
        "round": "1",
        "comment": "",
        **changes,
    }


def send(api: Api, run: PlayedRun, **changes: Any) -> httpx.Response:
    with api.http() as http:
        return http.post(f"/orders/{run.order_id}/plan", data=form(**changes), follow_redirects=False)


def shown(api: Api, run: PlayedRun) -> dict[str, Any]:
    return dict(api.client.call(plans.SHOW, order_id=run.order_id))


def told(api: Api, run: PlayedRun) -> list[Decide]:
    with api.core.database.read() as db:
        rows = db.query(InboxMessage).filter(InboxMessage.run_id == run.id)
        return [Decide.model_validate(row.body) for row in rows if row.body["kind"] == "decide"]


def test_an_unchanged_plan_is_approved_without_an_edit(api: Api, run: PlayedRun) -> None:
    answer = send(api, run, act="approve", comment="Fine.")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/orders/{run.order_id}")
    assert (shown(api, run)["revision"], [each.comment for each in told(api, run)]) == (0, ["Fine."])


def test_what_is_saved_waits_on(api: Api, run: PlayedRun) -> None:
    assert send(api, run, act="save", text=["", "Two\r\nlines", "New"], tick=["3"]).status_code == 303
    points = [(each["text"], each["approved"]) for each in shown(api, run)["points"]]
    assert (points, told(api, run)) == ([("Two\nlines", False), ("New", True)], [])
    # An outdated form overwrites nothing.
    assert send(api, run, act="approve").status_code == 409
    assert ([each["text"] for each in shown(api, run)["points"]][1:], told(api, run)) == (["New"], [])


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"act": "approve", "tick": []}, "no point of the plan is approved"),
    ({"act": "send-back"}, "the text is empty"),
    ({"act": "save", "text": ["", "", ""]}, "cannot be read as a plan"),
    ({"act": "save", "title": "Typed by me", "revision": "7"}, "was edited meanwhile"),
    ({"act": ""}, "choose approve, save or send back"),
]


def test_a_refused_form_is_shown_as_it_was_sent(api: Api, run: PlayedRun) -> None:
    for changes, says in REFUSED:
        answer = send(api, run, comment="", **changes)
        assert answer.status_code in {409, 422}, says
        assert (says in answer.text.lower(), changes.get("title", "Notes") in answer.text) == (True, True), says
    assert told(api, run) == []


def test_once_it_is_decided_the_page_has_no_form(api: Api, run: PlayedRun) -> None:
    send(api, run, act="approve", tick=["2"])
    run.decides_plan(PLAN.approving([2]), who="kim")
    with api.http() as http:
        page = http.get(f"/orders/{run.order_id}/plan").text
    assert "<textarea" not in page.partition("<main")[2].partition("Message the agent")[0]
    assert ("Approved by kim" in page, "Not reported" in page, "not approved" in page) == (True, True, True)
