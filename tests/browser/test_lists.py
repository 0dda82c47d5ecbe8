"""The inbox, lists of orders and the thread of a task as users see them."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect
from sqlalchemy import select

from control_plane.contract.declarations import agents, drones, orders, organizations, tasks
from control_plane.contract.declarations.agents import AgentRequest
from control_plane.contract.declarations.orders import ResumeRequest
from control_plane.contract.declarations.task_documents import CommentRequest, TaskRequest
from control_plane.db.waits import Wait
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


def test_what_is_typed_survives_news_and_an_answer_counts(person: Person, waiting: Waiting) -> None:
    page = person.open("/")
    assert page.title().startswith("(16) Inbox")
    assert "icon-waiting" in str(page.locator("#favicon").get_attribute("href"))
    question = row(page, "question")
    question.get_by_text("Write an answer").click()
    write(page, "Ask the accountants")
    waiting.approval.ends()
    row(page, "approval").wait_for(state="detached")
    expect(question.locator("textarea")).to_have_value("Ask the accountants")
    question.get_by_role("button", name="Answer", exact=True).click()
    question.wait_for(state="detached")
    assert answers(person.api, waiting.question.order_id) == [("Ask the accountants", "")]


def row(page: Page, kind: str) -> Locator:
    """The row of the item of this kind."""
    return page.locator(f"[id^=ask-{kind}-]")


def write(page: Page, text: str) -> None:
    """Type into the box that has just opened."""
    page.locator("textarea:focus").wait_for()
    page.keyboard.type(text)


def answers(api: Api, order_id: str) -> list[tuple[str, str]]:
    """What was answered to the waits of an order, with the comments."""
    with api.core.database.read() as db:
        waits = db.scalars(select(Wait).where(Wait.order_id == order_id, Wait.answered_at.is_not(None)))
        return [(str(wait.answer), wait.comment or "") for wait in waits]


BY_MOUSE = (
    ("approval", "Comment", "Use the package manager", "Deny"),
    ("question", "", "", "Half up"),
    ("plan", "Edit, approve", "", "Approve ticked points"),
    ("limit", "", "", "Raise and continue"),
    ("budget", "", "", "Continue"),
    ("secret", "", "", "Approve"),
    ("branch", "", "", "Deny"),
    ("reply", "Reply", "Both of them", "Send"),
    ("checks", "Add a hint", "Look at the paths", "Resume"),
    ("task", "Reply", "@tester fix them", "Comment"),
    ("race", "", "", "Take B"),
    ("memory", "", "", "Refuse"),
    ("provider", "", "", "Test"),
    ("project", "", "", "Test"),
    ("spent", "", "", "Done"),
)
"""Kind, what is opened first, what is typed there, and the button."""
UNDONE = frozenset({"spent", "memory"})
BY_KEYS = {
    "approval": ("Shift+A",),
    "question": ("1",),
    "plan": ("e", "Escape a"),
    "limit": ("s",),
    "budget": ("a",),
    "secret": ("d",),
    "branch": ("a",),
    "reply": ("c", "Both of them", "Control+Enter"),
    "checks": ("m",),
    "spent": ("a", "3", "Enter"),
    "task": ("m",),
    "race": ("2",),
    "memory": ("d",),
    "provider": ("t",),
    "project": ("t",),
}
"""Kind, the key in its row, what is typed into the field that has the focus then, and the keys that send it."""


def test_each_kind_is_handled_in_place_by_mouse(person: Person, waiting: Waiting) -> None:
    page = person.open("/")
    for kind, opened, text, button in BY_MOUSE:
        item = row(page, kind)
        if opened:
            item.locator("summary", has_text=opened).click()
        if text:
            write(page, text)
        item.get_by_role("button", name=button).click()
        item.wait_for(state="detached")
        if kind in UNDONE:
            page.get_by_role("button", name="Undo").last.click()
            item.wait_for()
            item.get_by_role("button", name=button).click()
            item.wait_for(state="detached")
    person.api.client.call(orders.RESUME, ResumeRequest(cost_limit=3), order_id=waiting.runs["spent"].order_id)
    page.get_by_role("button", name="Undo").last.click()
    person.sees("Not undone: ")
    row(page, "drone").get_by_role("link", name="Remove…").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    person.sees("Nothing is waiting for you.")
    wait_until(lambda: page.title().startswith("Inbox"))
    assert answers(person.api, waiting.approval.order_id) == [("deny", "Use the package manager")]


def test_each_kind_is_handled_in_place_by_keys(person: Person, waiting: Waiting) -> None:
    page = person.open("/")
    for item in page.locator("#waiting [data-row]").all():
        page.keyboard.press("j")
        expect(item.get_by_role("link").first).to_be_focused()
    for kind, (key, *typed) in BY_KEYS.items():
        item = row(page, kind)
        item.get_by_role("link").first.focus()
        # A form that has just appeared is read first.
        expect(item.locator("form button").first).to_be_enabled()
        page.keyboard.press(key)
        if typed:
            page.locator(":is(textarea, input):focus").wait_for()
            page.keyboard.type("".join(typed[:-1]))
            person.press(typed[-1])
        item.wait_for(state="detached")
    row(page, "drone").get_by_role("link").first.focus()
    page.keyboard.press("d")
    row(page, "drone").get_by_role("button", name="Resume").wait_for()
    assert person.api.client.call(drones.SHOW, name=waiting.drone)["draining"]
    row(page, "drone").get_by_role("link").first.focus()
    page.keyboard.press("r")
    page.get_by_role("dialog").get_by_role("button", name="Remove").press("Enter")
    person.sees("Nothing is waiting for you.")


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


def test_all_rows_or_a_range_of_them_are_selected(person: Person, work: Api) -> None:
    for number in range(5):
        work.submit(f"Order {number}")
    page = person.open("/orders?text=order")
    page.get_by_label("Select Order 1").check()
    page.get_by_label("Select Order 3").click(modifiers=["Shift"])
    person.sees("3 selected")
    picked = [page.get_by_label(f"Select Order {number}").is_checked() for number in range(5)]
    assert picked == [False, True, True, True, False]
    page.get_by_label("Select Order 2").click(modifiers=["Shift"])
    person.sees("1 selected")
    every = page.get_by_label("Select all shown")
    page.locator("main").focus()
    page.keyboard.press("a")
    person.sees("5 selected")
    assert every.is_checked()
    work.submit("Order 5")
    page.get_by_label("Select Order 5").wait_for()
    every.check()
    person.sees("6 selected")
    every.uncheck()
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
