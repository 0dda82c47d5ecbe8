"""The plan of an agent as users see it: edited, ticked and decided, with and without scripts, also on a phone."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page

from control_plane.db.drones import InboxMessage
from control_plane.declarations import plans
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


def decisions(run: PlayedRun) -> list[Decide]:
    with run.drone.core.database.read() as db:
        rows = db.query(InboxMessage).filter(InboxMessage.run_id == run.id)
        return [Decide.model_validate(row.body) for row in rows if row.body["kind"] == "decide"]


def text_of(api: Api, run: PlayedRun) -> str:
    return str(api.client.call(plans.SHOW, order_id=run.order_id)["text"])


def edit(page: Page) -> None:
    """Change the first point, untick the second, move the third to the front, and add a fourth."""
    texts = page.get_by_label("What to do")
    texts.nth(0).fill("Write first.txt\nwith a heading")
    page.get_by_label("Approve", exact=True).nth(1).uncheck()
    page.get_by_label("Place").nth(2).fill("1")
    page.get_by_label("Place").nth(0).fill("2")
    page.get_by_label("Place").nth(1).fill("3")
    texts.nth(3).fill("Write a changelog")


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
    edit(page)
    planned.says("A later message.")
    person.sees("A later message.")
    page.get_by_role("button", name="Send back").click()
    page.get_by_role("alert").filter(has_text="the text is empty").wait_for()
    assert decisions(planned) == []
    page.get_by_role("button", name="Approve ticked points").click()
    wait_until(lambda: len(decisions(planned)) == 1)
    assert text_of(person.api, planned) == EDITED
    (sent,) = decisions(planned)
    assert sent.plan is not None
    assert list(sent.plan.approved) == [1, 2, 4]

    planned.decides_plan(sent.plan, who="kim")
    page = person.open(f"/orders/{planned.order_id}")
    person.sees("Not reported")


def test_in_the_inbox_a_plan_is_sent_back_with_a_comment(person: Person, planned: PlayedRun) -> None:
    page = person.open("/")
    row = page.locator("[data-row]", has_text="Approve the plan?")
    row.get_by_text("Edit, approve or send back").click()
    row.get_by_label("Comment").fill("Keep it shorter")
    row.get_by_role("button", name="Send back").click()
    row.wait_for(state="detached")
    (sent,) = decisions(planned)
    assert (sent.approved, sent.comment, sent.plan) == (False, "Keep it shorter", None)


def test_without_scripts_the_plan_is_read(chromium: Browser, person: Person, planned: PlayedRun) -> None:
    plain = chromium.new_context(java_script_enabled=False)
    plain.add_cookies(person.context.cookies())  # type: ignore[arg-type]
    page = plain.new_page()
    page.goto(f"{person.api.url}/orders/{planned.order_id}")
    points = [each.input_value() for each in page.get_by_label("What to do").all()]
    assert points[:3] == ["Write one.txt", "Write two.txt", "Write three.txt"]
    plain.close()


def test_the_whole_form_is_used_with_the_keyboard_alone(person: Person, planned: PlayedRun) -> None:
    page = person.open(f"/orders/{planned.order_id}/plan")
    page.get_by_label("Title").focus()
    for _ in range(2):
        page.keyboard.press("Tab")
    page.keyboard.press("Space")
    while page.evaluate("document.activeElement.textContent") != "Approve ticked points":
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    wait_until(lambda: len(decisions(planned)) == 1)
    (sent,) = decisions(planned)
    assert sent.plan is not None
    assert list(sent.plan.approved) == [2, 3]
