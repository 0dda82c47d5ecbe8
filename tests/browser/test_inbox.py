"""The inbox as users see it: everything is handled in place, by mouse or keyboard."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect
from sqlalchemy import select

from control_plane.db.waits import Wait
from control_plane.declarations import orders, tasks
from tests.browser.conftest import Person
from tests.support import wait_until
from tests.support.fleet import Api
from tests.support.waiting import Waiting, everything_waits

pytestmark = [pytest.mark.browser, pytest.mark.long]


@pytest.fixture
def waiting(api: Api) -> Waiting:
    found = everything_waits(api)
    api.wait_for_hub()
    return found


def test_everything_is_handled_by_mouse_and_what_is_typed_survives_news(person: Person, waiting: Waiting) -> None:
    page = person.open("/")
    assert page.title().startswith("(4) Inbox")
    assert "icon-waiting" in str(page.locator("#favicon").get_attribute("href"))

    question = page.locator("[data-row]", has_text="Which rounding")
    question.get_by_text("Write an answer").click()
    write(page, "Ask the accountants")
    waiting.approval.ends()
    page.locator("[data-row]", has_text="Approve this command?").wait_for(state="detached")
    expect(question.locator("textarea")).to_have_value("Ask the accountants")
    question.get_by_role("button", name="Answer", exact=True).click()
    question.wait_for(state="detached")
    assert answers(person.api, waiting.question.order_id) == [("Ask the accountants", "")]

    checks = page.locator("[data-row]", has_text="Checks failed")
    checks.get_by_text("Add a hint").click()
    write(page, "Look at the paths")
    checks.get_by_role("button", name="Resume").click()
    checks.wait_for(state="detached")
    assert person.api.client.call(orders.SHOW, order_id=waiting.checks.order_id)["status"] in {"queued", "assigned"}

    task = page.locator("[data-row]", has_text="Windows paths")
    task.get_by_role("button", name="Mark as done").click()
    task.wait_for(state="detached")
    page.get_by_role("button", name="Undo").click()
    task.wait_for()
    assert person.api.client.call(tasks.SHOW, task_id=waiting.task)["assignee"] == "user"
    task.get_by_text("Reply").click()
    write(page, "@tester fix them")
    task.get_by_role("button", name="Comment").click()
    task.wait_for(state="detached")
    assert person.api.client.call(tasks.SHOW, task_id=waiting.task)["assignee"] == "tester"


@pytest.mark.parametrize(("key", "comment"), [("a", ""), ("d", "Use the package manager")])
def test_a_command_is_decided_without_the_mouse(person: Person, waiting: Waiting, key: str, comment: str) -> None:
    page = person.open("/")
    row = page.locator("[data-row]", has_text="Approve this command?")
    page.keyboard.press("j")
    while "Approve this command?" not in page.evaluate("document.activeElement.textContent"):
        page.keyboard.press("j")
    if comment:
        page.keyboard.press("c")
        write(page, comment)
        page.keyboard.press("Tab")
        row.get_by_role("link").focus()
    page.keyboard.press(key)
    row.wait_for(state="detached")
    wait_until(lambda: page.title().startswith("(3) Inbox"))
    assert answers(person.api, waiting.approval.order_id) == [("deny" if comment else "approve", comment)]


def write(page: Page, text: str) -> None:
    """Type into the box that has just opened."""
    page.locator("textarea:focus").wait_for()
    page.keyboard.type(text)


def answers(api: Api, order_id: str) -> list[tuple[str, str]]:
    """What was answered to the waits of an order, with the comments."""
    with api.core.database.read() as db:
        waits = db.scalars(select(Wait).where(Wait.order_id == order_id, Wait.answered_at.is_not(None)))
        return [(str(wait.answer), wait.comment or "") for wait in waits]
