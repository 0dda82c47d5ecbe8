"""The plan of an agent as users see it: edited, ticked and decided, also on a phone."""

from __future__ import annotations

import pytest

from control_plane.contract.declarations import plans
from control_plane.db.drones import InboxMessage
from shared.control import Decide
from shared.plans import AgentPlan, PlanPoint
from tests.browser.conftest import Person
from tests.support import wait_until
from tests.support.axe import need_axe, scrolls_sideways, violations
from tests.support.fleet import Api, PlayedRun

PLAN = AgentPlan(
    title="Add notes",
    summary="There are none yet.",
    points=(
        PlanPoint(text="Write one.txt", files=("one.txt",), verify="cat one.txt"),
        PlanPoint(text="Write two.txt"),
        PlanPoint(text="Write three.txt"),
    ),
)


@pytest.fixture
def planned(api: Api) -> PlayedRun:
    """A run whose plan waits."""
    api.add_work()
    drone = api.add_drone("mila")
    api.wait_for_hub()
    run = drone.take(api.submit("Add notes", plan_first=True))
    run.presents(PLAN)
    return run


def decided(run: PlayedRun) -> Decide:
    """The one decision that the drone is to be told."""

    def found() -> list[Decide]:
        with run.drone.core.database.read() as db:
            rows = db.query(InboxMessage).filter(InboxMessage.run_id == run.id)
            return [Decide.model_validate(row.body) for row in rows if row.body["kind"] == "decide"]

    [decision] = wait_until(found)
    return decision


pytestmark = [pytest.mark.browser, pytest.mark.long]
EDITED = """# Add notes

There are none yet.

1. [x] Write three.txt
2. [x] Write first.txt
   with a heading
   Files: one.txt
   Verify: cat one.txt
3. [ ] Write two.txt
4. [x] Write a changelog
"""


def test_a_plan_is_edited_while_news_come_a_point_unticked_and_the_rest_approved(
    person: Person, planned: PlayedRun
) -> None:
    need_axe()
    page = person.open(f"/orders/{planned.order_id}")
    page.emulate_media(reduced_motion="reduce")
    for width in (320, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        assert (violations(page), scrolls_sideways(page)) == ([], False)
    texts, places = page.get_by_label("What to do"), page.get_by_label("Place")
    texts.nth(0).fill("Write first.txt\nwith a heading")
    page.get_by_label("Approve", exact=True).nth(1).uncheck()
    for point, place in ((2, "1"), (0, "2"), (1, "3")):
        places.nth(point).fill(place)
    texts.nth(3).fill("Write a changelog")
    planned.says("A later message.")
    person.sees("A later message.")
    page.get_by_role("button", name="Send back").click()
    page.get_by_role("alert").filter(has_text="the text is empty").wait_for()
    page.get_by_role("button", name="Approve ticked points").click()
    sent = decided(planned)
    assert person.api.client.call(plans.SHOW, order_id=planned.order_id)["text"] == EDITED
    assert sent.plan is not None
    assert list(sent.plan.approved) == [1, 2, 4]
    planned.decides_plan(sent.plan, who="kim")
    person.open(f"/orders/{planned.order_id}")
    person.sees("Not reported")


def test_in_the_inbox_a_plan_is_sent_back_with_a_comment(person: Person, planned: PlayedRun) -> None:
    page = person.open("/")
    row = page.locator("[data-row]", has_text="Approve the plan?")
    row.get_by_text("Edit, approve or send back").click()
    row.get_by_label("Comment").fill("Keep it shorter")
    row.get_by_role("button", name="Send back").click()
    row.wait_for(state="detached")
    sent = decided(planned)
    assert (sent.approved, sent.comment, sent.plan) == (False, "Keep it shorter", None)
