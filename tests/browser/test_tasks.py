"""Tasks as users see them: the thread, and the completion of names."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from control_plane.declarations import agents, organizations, tasks
from control_plane.declarations.agents import AgentRequest
from control_plane.declarations.task_documents import CommentRequest, TaskRequest
from tests.browser.conftest import Person, first_of
from tests.support.fleet import Api

TASK = "DEFA-0001"


@pytest.fixture
def team(api: Api) -> Api:
    api.add_work()
    api.client.call(agents.ADD, AgentRequest(name="backend", instructions="You work."))
    api.client.call(organizations.PAUSE, name="default")
    api.client.call(tasks.ADD, TaskRequest(title="Round refunds " + "x" * 300, assignee="user"))
    api.wait_for_hub()
    return api


def test_a_name_is_completed_and_the_comment_hands_the_task_over(person: Person, team: Api) -> None:
    page = person.open(f"/tasks/{TASK}")
    page.get_by_label("Comment", exact=True).click()
    page.keyboard.type("Please look, @ba")
    page.get_by_role("option", name="@backend", selected=True).wait_for()
    page.keyboard.press("Enter")
    assert page.get_by_label("Comment", exact=True).input_value().rstrip() == "Please look, @backend"
    page.keyboard.press("Control+Enter")
    page.locator(".remark", has_text="Please look, @backend").wait_for()
    assert team.client.call(tasks.SHOW, task_id=TASK)["assignee"] == "backend"


def test_a_comment_of_someone_else_appears_and_a_draft_stays(person: Person, team: Api) -> None:
    page = person.open(f"/tasks/{TASK}")
    page.get_by_label("Comment", exact=True).fill("my draft")
    team.client.call(tasks.COMMENT, CommentRequest(text="from elsewhere"), task_id=TASK)
    page.locator(".remark", has_text="from elsewhere").wait_for()
    expect(page.get_by_label("Comment", exact=True)).to_have_value("my draft")


def test_a_task_is_marked_as_done_and_reopened_in_place(person: Person, team: Api) -> None:
    page = person.open(f"/tasks/{TASK}")
    page.get_by_role("button", name="Mark as done").click()
    page.get_by_role("button", name="Reopen").click()
    page.get_by_role("button", name="Mark as done").wait_for()
    assert team.client.call(tasks.SHOW, task_id=TASK)["status"] == "open"


@pytest.mark.parametrize("width", first_of(320, 375, 1280))
def test_no_page_of_the_team_is_wider_than_its_window(person: Person, team: Api, width: int) -> None:
    person.page.set_viewport_size({"width": width, "height": 700})
    widths = [
        person.open(path).evaluate("document.documentElement.scrollWidth")
        for path in ("/tasks", "/tasks?view=list", f"/tasks/{TASK}", "/agents", "/agents/backend", "/sessions")
    ]
    assert widths == [width] * 6
