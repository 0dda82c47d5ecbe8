"""The inbox, lists of orders and the thread of a task as users see them."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect
from sqlalchemy import select

from control_plane.db.waits import Wait
from control_plane.declarations import agents, orders, organizations, tasks
from control_plane.declarations.agents import AgentRequest
from control_plane.declarations.task_documents import CommentRequest, TaskRequest
from tests.browser.conftest import Person
from tests.browser.test_keys import reach
from tests.support import wait_until
from tests.support.fleet import Api
from tests.support.waiting import Waiting, everything_waits


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


def test_a_command_is_decided_without_the_mouse(person: Person, waiting: Waiting) -> None:
    page = person.open("/")
    row = page.locator("[data-row]", has_text="Approve this command?")
    reach(person, "Approve this command?")
    person.press("c")
    write(page, "Use the package manager")
    person.press("Escape d")
    row.wait_for(state="detached")
    wait_until(lambda: page.title().startswith("(3) Inbox"))
    assert answers(person.api, waiting.approval.order_id) == [("deny", "Use the package manager")]


def write(page: Page, text: str) -> None:
    """Type into the box that has just opened."""
    page.locator("textarea:focus").wait_for()
    page.keyboard.type(text)


def answers(api: Api, order_id: str) -> list[tuple[str, str]]:
    """What was answered to the waits of an order, with the comments."""
    with api.core.database.read() as db:
        waits = db.scalars(select(Wait).where(Wait.order_id == order_id, Wait.answered_at.is_not(None)))
        return [(str(wait.answer), wait.comment or "") for wait in waits]


pytestmark = [pytest.mark.browser, pytest.mark.long]


@pytest.fixture
def work(api: Api) -> Api:
    api.add_work()
    api.wait_for_hub()
    return api


def test_orders_are_filtered_selected_compared_and_canceled(person: Person, work: Api) -> None:
    first, second, _ = (work.submit(f"Order {number}")["id"] for number in range(3))
    page = person.open("/orders")
    page.get_by_label("Status").select_option("queued")
    page.wait_for_url("**/orders?status=queued")
    person.sees("Order 2")
    page.get_by_role("link", name="Status: queued").click()
    page.wait_for_url("**/orders")

    page.get_by_label("Select Order 0").check()
    assert page.get_by_role("link", name="Compare").count() == 0
    page.get_by_label("Select Order 1").check()
    page.get_by_role("link", name="Compare").click()
    page.wait_for_url(f"**/compare?order={second}&order={first}")

    page = person.open("/orders")
    page.keyboard.press("j")
    page.keyboard.press("x")
    page.get_by_label("Select Order 0").check()
    person.sees("2 selected")
    page.on("dialog", lambda dialog: dialog.accept())
    page.locator("#selected").get_by_role("button", name="Cancel").click()
    wait_until(lambda: [each["status"] for each in work.client.call(orders.LIST)] == ["canceled", "queued", "canceled"])
    page.locator("#selected").wait_for(state="hidden")


def test_in_the_thread_of_a_task_names_are_completed_and_news_leave_what_is_typed(person: Person, work: Api) -> None:
    work.client.call(agents.ADD, AgentRequest(name="backend", instructions="You work."))
    work.client.call(organizations.PAUSE, name="default")
    task = work.client.call(tasks.ADD, TaskRequest(title="Round refunds", assignee="user"))["id"]
    page = person.open(f"/tasks/{task}")
    page.get_by_role("button", name="Mark as done").click()
    page.get_by_role("button", name="Reopen").click()
    page.get_by_role("button", name="Mark as done").wait_for()
    comment = page.get_by_label("Comment", exact=True)
    comment.click()
    page.keyboard.type("Please look, @ba")
    page.get_by_role("option", name="@backend", selected=True).wait_for()
    page.keyboard.press("Enter")
    work.client.call(tasks.COMMENT, CommentRequest(text="from elsewhere"), task_id=task)
    page.locator(".remark", has_text="from elsewhere").wait_for()
    assert comment.input_value().rstrip() == "Please look, @backend"
    page.keyboard.press("Control+Enter")
    page.locator(".remark", has_text="Please look, @backend").wait_for()
    assert work.client.call(tasks.SHOW, task_id=task)["assignee"] == "backend"
