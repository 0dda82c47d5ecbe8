"""Tasks, agents and sessions as pages, over HTTP."""

from __future__ import annotations

import pytest

from control_plane.declarations import agents, organizations, sessions, tasks
from control_plane.declarations.agents import AgentRequest
from control_plane.declarations.task_documents import AssignRequest, CommentRequest, TaskRequest
from tests.support.fleet import Api

HTML = {"Accept": "text/html"}


@pytest.fixture
def team(api: Api) -> Api:
    """Two agents and a task that is with the user; nothing begins."""
    api.add_work()
    api.client.call(agents.ADD, AgentRequest(name="lead", instructions="You **lead**."))
    api.client.call(agents.ADD, AgentRequest(name="backend", instructions="You work.", boss="lead"))
    api.client.call(organizations.PAUSE, name="default")
    api.client.call(tasks.ADD, TaskRequest(title="Round refunds", description="As *banks* do", assignee="user"))
    return api


def test_the_board_puts_what_is_with_the_user_first_and_a_view_or_a_status_makes_it_a_list(team: Api) -> None:
    team.client.call(tasks.ADD, TaskRequest(title="Write the guide", assignee="lead"))
    with team.browser() as browser:
        page = browser.get("/tasks", headers=HTML).text
        listed = browser.get("/tasks?view=list&assignee=user", headers=HTML).text
        done = browser.get("/tasks?status=done", headers=HTML).text
        wrong = browser.get("/tasks?assignee=nobody", headers=HTML)
    mine, others = page.index('aria-label="With you"'), page.index('aria-label="Open"')
    assert mine < page.index("Round refunds") < others < page.index("Write the guide")
    assert ("Round refunds" in listed, 'id="task-list"' in listed, "Round refunds" in done) == (True, True, False)
    assert (wrong.status_code, "nobody" in wrong.text, 'role="alert"' in wrong.text) == (200, True, True)


def test_a_thread_shows_markdown_hand_offs_and_only_the_actions_that_the_state_allows(team: Api) -> None:
    with team.browser() as browser:
        before = browser.get("/tasks/DEFA-0001", headers=HTML).text
        team.client.call(tasks.COMMENT, CommentRequest(text="Please **check**, @backend"), task_id="DEFA-0001")
        after = browser.get("/tasks/DEFA-0001", headers=HTML).text
        team.client.call(tasks.ASSIGN, AssignRequest(assignee="user"), task_id="DEFA-0001")
        team.client.call(tasks.DONE, task_id="DEFA-0001")
        done = browser.get("/tasks/DEFA-0001", headers=HTML).text
    assert "As <em>banks</em> do" in before
    assert "Please <strong>check</strong>, @backend" in after
    assert [name for name in ACTIONS if f"/actions/{name}" in before] == ["done_task", "assign_task", "cancel_task"]
    assert [name for name in ACTIONS if f"/actions/{name}" in after] == ["assign_task", "cancel_task"]
    assert [name for name in ACTIONS if f"/actions/{name}" in done] == ["retry_task", "reopen_task"]


ACTIONS = ("done_task", "retry_task", "reopen_task", "preempt_task", "assign_task", "cancel_task")


def test_agents_are_a_tree_and_one_shows_its_instructions_and_tasks(team: Api) -> None:
    with team.browser() as browser:
        tree = browser.get("/agents", headers=HTML).text
        lead = browser.get("/agents/lead", headers=HTML).text
    assert tree.index("@lead") < tree.index('depth-1" id="agent-backend"')
    assert "You <strong>lead</strong>." in lead
    assert 'href="/agents/backend"' in lead
    assert "/actions/edit_agent?name=lead" in lead


def test_names_are_completed_after_an_at(team: Api) -> None:
    with team.browser() as browser:
        found, every = (browser.get(path).json() for path in ("/mentions?text=b", "/mentions"))
    assert [each["name"] for each in found] == ["backend"]
    assert {each["name"] for each in every} == {"lead", "backend", "user"}


def test_sessions_are_listed_with_the_state_of_their_last_turn(team: Api) -> None:
    order = team.submit("Fix the parser")
    with team.browser() as browser:
        page = browser.get("/sessions", headers=HTML).text
        none = browser.get("/sessions?project=unknown", headers=HTML)
    assert ("Fix the parser" in page, "1 turn<" in page) == (True, True)
    assert f'href="/sessions/{order["session"]}"' in page
    assert (none.status_code, 'role="alert"' in none.text) == (200, True)
    assert [each["last_turn"] for each in team.client.call(sessions.LIST)] == ["processing"]
