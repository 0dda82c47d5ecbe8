"""Lists of orders and the thread of a task as users see them."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from control_plane.declarations import agents, orders, organizations, tasks
from control_plane.declarations.agents import AgentRequest
from control_plane.declarations.task_documents import CommentRequest, TaskRequest
from tests.browser.conftest import Person
from tests.support import wait_until
from tests.support.fleet import Api

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


def test_more_orders_are_appended_and_stay_while_new_ones_come(person: Person, work: Api) -> None:
    for number in range(55):
        work.submit(f"Order {number}")
    page = person.open("/orders")
    expect(page.locator("#orders [data-row]")).to_have_count(50)
    page.get_by_label("Select Order 54").check()
    page.get_by_role("link", name="Load more").click()
    page.get_by_role("link", name="Order 0", exact=True).wait_for()
    work.submit("A new one")
    page.get_by_role("link", name="A new one").wait_for()
    expect(page.locator("#orders [data-row]")).to_have_count(56)
    expect(page.get_by_label("Select Order 54")).to_be_checked()


def test_in_the_thread_of_a_task_names_are_completed_and_drafts_stay(person: Person, work: Api) -> None:
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
