"""Tasks and agents over HTTP: the codes of what is refused, their pages, and following a task through a restart."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from control_plane.cli.task_follow import follow_task
from control_plane.contract.client.fleet import FleetClient
from control_plane.contract.declarations import agents, organizations, projects, tasks
from control_plane.contract.declarations.agents import AgentRequest
from control_plane.contract.declarations.organizations import OrganizationEdit
from control_plane.contract.declarations.projects import ProjectRequest
from control_plane.contract.declarations.task_documents import AssignRequest, CommentRequest, TaskFilter, TaskRequest
from control_plane.db.orders import Order
from control_plane.web.task_board import BOARD
from shared.states import TaskStatus
from tests.support import wait_until
from tests.support.fleet import Api

Doc = dict[str, Any]
HTML = {"Accept": "text/html"}


@pytest.fixture
def paused(api: Api) -> Api:
    """With agents and a project, and nothing begins."""
    api.add_work()
    api.client.call(agents.ADD, AgentRequest(name="lead", instructions="You **lead**."))
    api.client.call(agents.ADD, AgentRequest(name="backend", instructions="You work.", boss="lead"))
    api.client.call(organizations.PAUSE, name="default")
    return api


def added(api: Api, **request: Any) -> str:
    """The id of a new task."""
    return str(api.client.call(tasks.ADD, TaskRequest(**{"title": "Mend it", **request}))["id"])


@pytest.fixture
def browser(paused: Api) -> Iterator[httpx.Client]:
    with paused.browser(HTML) as client:
        yield client


def test_a_task_is_created_for_the_first_agent_without_a_boss(paused: Api) -> None:
    """S-020, S-021, S-022."""
    with paused.http() as http:
        answer = http.post("/api/v1/tasks", json={"title": "Mend it"})

    task = answer.json()
    assert answer.status_code == 201
    assert (task["id"], task["status"], task["assignee"]) == ("DEFA-0001", "open", "lead")
    assert (task["description"], task["project"]) == ("Mend it", "demo")
    assert "fleet organization resume default" in task["reason"]
    assert task["note"].startswith("lead is next on DEFA-0001")


WRONG: list[tuple[str, Doc | None, int, str]] = [
    ("/tasks", {"title": ""}, 422, "E-EMPTY"),
    ("/tasks", {"title": "a\nb"}, 422, "E-TASK-TITLE"),
    ("/tasks", {"title": "a\u2028b"}, 422, "E-TASK-TITLE"),
    ("/tasks", {"title": "x" * 501}, 413, "E-TOO-LONG"),
    ("/tasks", {"title": "it", "description": "x" * 100_001}, 413, "E-TASK-TEXT"),
    ("/tasks", {"title": "it", "assignee": "nobody"}, 404, "E-AGENT-404"),
    ("/tasks/TASK/comments", {"text": "x" * 1_000_000}, 413, "E-TASK-TEXT"),
    ("/tasks/TASK/comments", {"text": "@nobody"}, 404, "E-TASK-TAG"),
    ("/tasks/TASK/preempt", None, 409, "E-TASK-STATE"),
    ("/tasks/DEFA-9999/comments", {"text": "Hello."}, 404, "E-TASK-404"),
]


def test_wrong_use_of_tasks_has_the_status_and_the_code_of_its_kind(paused: Api) -> None:
    """S-121."""
    task = added(paused)
    with paused.http() as http:
        answers = [http.post(f"/api/v1{each[0].replace('TASK', task)}", json=each[1]) for each in WRONG]
    assert [(each.status_code, each.json()["code"]) for each in answers] == [each[2:] for each in WRONG]
    assert max(len(each.content) for each in answers) < 3000
    assert [each["id"] for each in paused.client.call(tasks.LIST)] == [task]
    after = paused.client.show_task(task)
    assert (after["timeline"], after["status"], after["assignee"]) == ([], "open", "lead")


def test_without_an_agent_or_a_project_a_task_is_412_and_says_what_to_do(api: Api) -> None:
    """S-022."""
    with api.http() as http:
        no_project = http.post("/api/v1/tasks", json={"title": "Mend it"})
        api.add_work()
        no_agent = http.post("/api/v1/tasks", json={"title": "Mend it"})
        for_me = http.post("/api/v1/tasks", json={"title": "Mend it", "assignee": "user"})
        api.client.call(projects.ADD, ProjectRequest(slug="other", git_url="https://git.example/other.git"))
        which = http.post("/api/v1/tasks", json={"title": "Mend it", "assignee": "user"})
        api.client.call(organizations.EDIT, OrganizationEdit(project="other"), name="default")
        default = http.post("/api/v1/tasks", json={"title": "Mend it", "assignee": "user"})

    assert [each.status_code for each in (no_project, no_agent, for_me, which, default)] == [412, 412, 201, 412, 201]
    assert default.json()["project"] == "other"
    assert "fleet project add" in no_project.json()["next"]
    assert "fleet agent add" in no_agent.json()["next"]
    assert "--project" in which.json()["next"]
    assert for_me.json()["id"] == "DEFA-0001"


def test_lists_are_filtered_and_limited_newest_first(paused: Api) -> None:
    """S-025."""
    client, mine = paused.client, added(paused, assignee="user")
    leads = [added(paused) for _ in range(3)]
    client.call(tasks.DONE, task_id=mine)
    lists = [
        (TaskFilter(), [*reversed(leads), mine]),
        (TaskFilter(assignee="lead", limit=2), leads[:0:-1]),
        (TaskFilter(status=TaskStatus.DONE, assignee="user", project="demo"), [mine]),
    ]
    for wanted, expected in lists:
        assert [each["id"] for each in client.call(tasks.LIST, wanted)] == expected
    with paused.http() as http:
        assert [http.get(f"/api/v1/tasks?{each}").status_code for each in ("limit=0", "status=x")] == [422, 422]


def test_status_counts_what_there_is(paused: Api) -> None:
    """S-122."""
    paused.add_drone()
    added(paused)
    paused.submit()
    status = paused.client.call(organizations.STATUS)
    assert (status["organization"], status["paused"], status["server"]) == ("default", True, paused.core.settings.url)
    assert (status["drones"], status["orders"]["assigned"]) == ({"online": 1}, 1)
    assert status["tasks"] == {"open": 1, "in_progress": 0, "failed": 0, "done": 0, "canceled": 0}
    assert (status["active_runs"], status["max_concurrency"]) == (0, 1)
    assert (status["totals"]["runs"], status["totals"]["cost_usd"]) == (0, 0.0)


def test_a_task_is_followed_through_a_restart_of_the_server(paused: Api, capfd: pytest.CaptureFixture[str]) -> None:
    task_id = added(paused)
    told, ended = list[str](), list[int]()

    def follow() -> None:
        with FleetClient(paused.url, paused.token) as client:
            ended.append(follow_task(client, task_id, as_json=True))

    def heard(word: str) -> bool:
        told.append("".join(capfd.readouterr()))
        return word in "".join(told)

    watcher = threading.Thread(target=follow, daemon=True)
    watcher.start()
    wait_until(lambda: heard('"event": "task"'))
    paused.stop()
    wait_until(lambda: heard("connection lost"))
    paused.start()
    wait_until(lambda: heard("reconnected"))
    paused.client.call(tasks.COMMENT, CommentRequest(text="First this, @lead."), task_id=task_id)
    wait_until(lambda: heard("First this"))
    paused.client.call(tasks.ASSIGN, AssignRequest(assignee="user"), task_id=task_id)
    watcher.join(60)

    assert ended == [0]
    told.append("".join(capfd.readouterr()))
    lines = [json.loads(line) for line in "".join(told).splitlines() if line.startswith("{")]
    assert [line["event"] for line in lines[:-1]] == ["task", "comment", "comment", "task"]
    assert (lines[-1]["id"], lines[-1]["status"], lines[-1]["assignee"]) == (task_id, "open", "user")


def test_what_was_told_of_a_thread_is_not_sent_again(paused: Api, capfd: pytest.CaptureFixture[str]) -> None:
    task_id = added(paused, assignee="user")
    paused.client.call(tasks.COMMENT, CommentRequest(text="One."), task_id=task_id)
    moment = paused.client.call(tasks.COMMENT, CommentRequest(text="Two."), task_id=task_id)["at"]
    later = [entry["comment"]["text"] for entry in paused.client.show_task(task_id, since=moment)["timeline"]]
    asked: list[str | None] = []

    class Asking(FleetClient):
        def show_task(self, task_id: str, since: str | None = None) -> Doc:
            asked.append(since)
            status = "open" if since is None else "canceled"
            return {**super().show_task(task_id, since), "status": status, "assignee": "x"}

    with Asking(paused.url, paused.token) as client:
        # What was canceled ends it with 1.
        assert follow_task(client, task_id, as_json=False) == 1
    assert (later, [since is None for since in asked]) == (["Two."], [True, False])
    assert capfd.readouterr().out.count("One.") == 1


def test_the_board_puts_what_is_with_the_user_first_and_a_view_or_a_status_makes_it_a_list(
    paused: Api, browser: httpx.Client
) -> None:
    added(paused, title="Round refunds", assignee="user")
    added(paused, title="Write the guide")
    addresses = "/tasks", "/tasks?view=list&assignee=user", "/tasks?status=done", "/tasks?assignee=nobody"
    board, listed, done, wrong = (browser.get(each).text for each in addresses)
    mine, others = board.index('aria-label="With you"'), board.index('aria-label="Open"')
    assert mine < board.index("Round refunds") < others < board.index("Write the guide")
    assert ("Round refunds" in listed, 'id="task-list"' in listed, "Round refunds" in done) == (True, True, False)
    assert ("nobody" in wrong, 'role="alert"' in wrong) == (True, True)


def test_what_is_with_the_user_stays_on_the_board_behind_any_number_that_wait_for_agents(
    paused: Api, browser: httpx.Client
) -> None:
    mine = added(paused, assignee="user")
    for _ in range(BOARD[TaskStatus.OPEN]):
        added(paused)
    board, other = browser.get("/tasks").text, browser.get("/tasks?project=demo&text=absent").text
    assert board.index('aria-label="With you"') < board.index(f'id="task-{mine}"') < board.index('aria-label="Open"')
    linked = [address in board for address in ("/tasks?status=open", "/tasks?status=open&amp;assignee=user")]
    assert (linked, "?status=" in other) == ([True, False], False)


ACTIONS = ("done_task", "retry_task", "reopen_task", "preempt_task", "assign_task", "cancel_task")


def test_a_thread_shows_markdown_hand_offs_and_only_the_actions_that_the_state_allows(
    paused: Api, browser: httpx.Client
) -> None:
    task = added(paused, description="As *banks* do", assignee="user")
    before = browser.get(f"/tasks/{task}").text
    paused.client.call(tasks.COMMENT, CommentRequest(text="Please **check**, @backend"), task_id=task)
    after = browser.get(f"/tasks/{task}").text
    paused.client.call(tasks.ASSIGN, AssignRequest(assignee="user"), task_id=task)
    paused.client.call(tasks.DONE, task_id=task)
    done = browser.get(f"/tasks/{task}").text
    assert "As <em>banks</em> do" in before
    assert "Please <strong>check</strong>, @backend" in after
    assert [[name for name in ACTIONS if f"/actions/{name}" in each] for each in (before, after, done)] == [
        ["done_task", "assign_task", "cancel_task"],
        ["assign_task", "cancel_task"],
        ["retry_task", "reopen_task"],
    ]


PULL = "https://git.example/pulls/1"
OFFERED: list[tuple[Doc | None, bool, bool]] = [
    (None, True, True),
    (None, False, False),
    ({"state": "asked", "head": "fleet/2", "url": None}, True, False),
    ({"state": "failed", "head": "fleet/2", "url": None}, True, True),
    ({"state": "opened", "head": "fleet/2", "url": PULL}, True, False),
    ({"state": "opened", "head": "fleet/1", "url": PULL}, True, True),
]


def test_a_pull_request_is_offered_until_there_is_one_of_the_newest_pushed_branch(
    paused: Api, browser: httpx.Client
) -> None:
    task, order_id = added(paused, assignee="user"), paused.submit()["id"]
    offered = []
    for pull_request, pushed, _ in OFFERED:
        with paused.core.database.write() as db:
            order = db.get_one(Order, order_id)
            order.task_id, order.branch, order.head_commit = task, "fleet/2", "a" * 40
            order.pushed, order.pull_request = pushed, pull_request
        shown = browser.get(f"/tasks/{task}").raise_for_status().text
        offered.append("/actions/open_task_pull_request" in shown)
    assert offered == [each[2] for each in OFFERED]


def test_agents_are_a_tree_and_one_shows_its_instructions_and_tasks(browser: httpx.Client) -> None:
    tree, lead = browser.get("/agents").text, browser.get("/agents/lead").text
    assert tree.index("@lead") < tree.index('depth-1" id="agent-backend"')
    for words in ("You <strong>lead</strong>.", 'href="/agents/backend"', "/actions/edit_agent?name=lead"):
        assert words in lead
    # Names are completed after an @.
    found, every = (browser.get(path).json() for path in ("/mentions?text=b", "/mentions"))
    assert [each["name"] for each in found] == ["backend"]
    assert {each["name"] for each in every} == {"lead", "backend", "user"}
