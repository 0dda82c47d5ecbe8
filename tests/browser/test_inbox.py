"""The inbox as users see it: everything is handled in place, by mouse or keyboard."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect
from sqlalchemy import select

from control_plane.db.waits import Wait
from control_plane.declarations import orders, tasks
from tests.browser.conftest import Person, first_of
from tests.support import wait_until
from tests.support.fleet import Api
from tests.support.waiting import Waiting, everything_waits


@pytest.fixture
def waiting(api: Api) -> Waiting:
    found = everything_waits(api)
    api.wait_for_hub()
    return found


def test_what_waits_is_counted_in_the_title_and_on_the_icon(person: Person, waiting: Waiting) -> None:
    page = person.open("/")
    assert page.title().startswith("(4) Inbox")
    assert "icon-waiting" in str(page.locator("#favicon").get_attribute("href"))


def test_an_approval_is_given_by_keyboard_and_the_row_goes(person: Person, waiting: Waiting) -> None:
    page = person.open("/")
    row = page.locator("[data-row]", has_text="Approve this command?")
    row.get_by_role("link").focus()
    page.keyboard.press("a")
    row.wait_for(state="detached")
    wait_until(lambda: page.title().startswith("(3) Inbox"))
    person.sees("Approved.")
    assert answers(person.api, waiting.approval.order_id) == [("approve", "")]


def test_a_command_is_denied_with_a_comment_without_the_mouse(person: Person, waiting: Waiting) -> None:
    page = person.open("/")
    page.keyboard.press("j")
    while "Approve this command?" not in page.evaluate("document.activeElement.textContent"):
        page.keyboard.press("j")
    page.keyboard.press("c")
    write(page, "Use the package manager")
    page.keyboard.press("Tab")
    row = page.locator("[data-row]", has_text="Approve this command?")
    row.get_by_role("link").focus()
    page.keyboard.press("d")
    row.wait_for(state="detached")
    assert answers(person.api, waiting.approval.order_id) == [("deny", "Use the package manager")]


def test_a_question_is_answered_by_one_of_its_choices(person: Person, waiting: Waiting) -> None:
    page = person.open("/")
    page.get_by_role("button", name="Half to even").click()
    page.locator("[data-row]", has_text="Which rounding").wait_for(state="detached")
    assert answers(person.api, waiting.question.order_id) == [("Half to even", "")]


def test_a_question_is_answered_in_own_words_that_survive_news(person: Person, waiting: Waiting) -> None:
    page = person.open("/")
    row = page.locator("[data-row]", has_text="Which rounding")
    row.get_by_text("Write an answer").click()
    write(page, "Ask the accountants")
    waiting.approval.ends()
    page.locator("[data-row]", has_text="Approve this command?").wait_for(state="detached")
    expect(row.locator("textarea")).to_have_value("Ask the accountants")
    row.get_by_role("button", name="Answer", exact=True).click()
    row.wait_for(state="detached")
    assert answers(person.api, waiting.question.order_id) == [("Ask the accountants", "")]


def test_an_order_with_failed_checks_is_resumed_with_a_hint(person: Person, waiting: Waiting) -> None:
    page = person.open("/")
    row = page.locator("[data-row]", has_text="Checks failed")
    row.get_by_text("Add a hint").click()
    write(page, "Look at the paths")
    row.get_by_role("button", name="Resume").click()
    row.wait_for(state="detached")
    assert person.api.client.call(orders.SHOW, order_id=waiting.checks.order_id)["status"] in {"queued", "assigned"}


def test_a_task_is_handed_on_from_the_inbox(person: Person, waiting: Waiting) -> None:
    page = person.open("/")
    row = page.locator("[data-row]", has_text="Windows paths")
    row.get_by_text("Reply").click()
    write(page, "@tester fix them")
    row.get_by_role("button", name="Comment").click()
    row.wait_for(state="detached")
    assert person.api.client.call(tasks.SHOW, task_id=waiting.task)["assignee"] == "tester"


def test_what_was_done_by_a_slip_of_the_hand_is_undone(person: Person, waiting: Waiting) -> None:
    page = person.open("/")
    row = page.locator("[data-row]", has_text="Windows paths")
    row.get_by_role("button", name="Mark as done").click()
    row.wait_for(state="detached")
    page.get_by_role("button", name="Undo").click()
    row.wait_for()
    assert person.api.client.call(tasks.SHOW, task_id=waiting.task)["assignee"] == "user"


@pytest.mark.parametrize("width", first_of(320, 375, 1280))
def test_the_inbox_is_no_wider_than_its_window(person: Person, waiting: Waiting, width: int) -> None:
    person.page.set_viewport_size({"width": width, "height": 700})
    assert person.open("/").evaluate("document.documentElement.scrollWidth") == width


def write(page: Page, text: str) -> None:
    """Type into the box that has just opened."""
    page.locator("textarea:focus").wait_for()
    page.keyboard.type(text)


def answers(api: Api, order_id: str) -> list[tuple[str, str]]:
    """What was answered to the waits of an order, with the comments."""
    with api.core.database.read() as db:
        waits = db.scalars(select(Wait).where(Wait.order_id == order_id, Wait.answered_at.is_not(None)))
        return [(str(wait.answer), wait.comment or "") for wait in waits]
