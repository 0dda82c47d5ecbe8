"""Tasks over HTTP: the same codes as everywhere, and following one through a restart of the server."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from control_plane.cli.task_follow import follow_task
from control_plane.client.fleet import FleetClient
from control_plane.declarations import agents, organizations, projects, tasks
from control_plane.declarations.agents import AgentRequest
from control_plane.declarations.projects import ProjectRequest
from control_plane.declarations.task_documents import AssignRequest, CommentRequest, TaskFilter, TaskRequest
from shared.states import TaskStatus
from tests.support import wait_until
from tests.support.fleet import Api

Doc = dict[str, Any]


@pytest.fixture
def paused(api: Api) -> Api:
    """With agents and a project, and nothing begins."""
    api.add_work()
    api.client.call(agents.ADD, AgentRequest(name="lead", instructions="You lead."))
    api.client.call(agents.ADD, AgentRequest(name="backend", instructions="You work.", boss="lead"))
    api.client.call(organizations.PAUSE, name="default")
    return api


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
    ("/tasks", {"title": "a\x00b"}, 422, "E-TEXT"),
    ("/tasks", {"title": "x" * 501}, 413, "E-TOO-LONG"),
    ("/tasks", {"title": "it", "description": "x" * 100_001}, 413, "E-TASK-TEXT"),
    ("/tasks", {"title": "it", "assignee": "nobody"}, 404, "E-AGENT-404"),
    ("/tasks", {"title": "it", "project": "nope"}, 404, "E-PROJECT-404"),
    ("/tasks/TASK/comments", {"text": "x" * 1_000_000}, 413, "E-TASK-TEXT"),
    ("/tasks/TASK/comments", {"text": "@nobody"}, 404, "E-TASK-TAG"),
    ("/tasks/TASK/comments", {}, 422, "E-REQUEST"),
    ("/tasks/TASK/preempt", None, 409, "E-TASK-STATE"),
    ("/tasks/DEFA-9999/comments", {"text": "Hello."}, 404, "E-TASK-404"),
]


def test_wrong_use_of_tasks_has_the_status_and_the_code_of_its_kind(paused: Api) -> None:
    """S-121."""
    task = paused.client.call(tasks.ADD, TaskRequest(title="Mend it"))
    with paused.http() as http:
        answers = [http.post(f"/api/v1{each[0].replace('TASK', task['id'])}", json=each[1]) for each in WRONG]

    assert [(each.status_code, each.json()["code"]) for each in answers] == [each[2:] for each in WRONG]
    assert max(len(each.content) for each in answers) < 3000
    assert [each["id"] for each in paused.client.call(tasks.LIST)] == [task["id"]]
    after = paused.client.show_task(task["id"])
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

    assert [each.status_code for each in (no_project, no_agent, for_me, which)] == [412, 412, 201, 412]
    assert "fleet project add" in no_project.json()["next"]
    assert "fleet agent add" in no_agent.json()["next"]
    assert "--project" in which.json()["next"]
    assert for_me.json()["id"] == "DEFA-0001"


def test_lists_are_filtered_and_limited_newest_first(paused: Api) -> None:
    """S-025."""
    client = paused.client
    mine = client.call(tasks.ADD, TaskRequest(title="Mine", assignee="user"))["id"]
    leads = [client.call(tasks.ADD, TaskRequest(title=f"Lead {number}"))["id"] for number in range(3)]
    client.call(tasks.DONE, task_id=mine)

    assert [each["id"] for each in client.call(tasks.LIST)] == [*reversed(leads), mine]
    assert [each["id"] for each in client.call(tasks.LIST, TaskFilter(assignee="lead", limit=2))] == leads[:0:-1]
    assert [
        each["id"]
        for each in client.call(tasks.LIST, TaskFilter(status=TaskStatus.DONE, assignee="user", project="demo"))
    ] == [mine]
    with paused.http() as http:
        assert http.get("/api/v1/tasks?limit=0").status_code == 422
        assert http.get("/api/v1/tasks?status=dreaming").status_code == 422


def test_status_counts_what_there_is(paused: Api) -> None:
    """S-122."""
    paused.add_drone()
    paused.client.call(tasks.ADD, TaskRequest(title="Mend it"))
    paused.submit()

    status = paused.client.call(organizations.STATUS)

    assert (status["organization"], status["paused"], status["server"]) == ("default", True, paused.core.settings.url)
    assert status["drones"] == {"online": 1}
    assert status["orders"]["assigned"] == 1
    assert status["tasks"] == {"open": 1, "in_progress": 0, "failed": 0, "done": 0, "canceled": 0}
    assert (status["active_runs"], status["max_concurrency"]) == (0, 1)
    assert (status["totals"]["runs"], status["totals"]["cost_usd"]) == (0, 0.0)


# --- following -----------------------------------------------------------------------------------------


def test_a_task_is_followed_through_a_restart_of_the_server(paused: Api, capfd: pytest.CaptureFixture[str]) -> None:
    task_id = paused.client.call(tasks.ADD, TaskRequest(title="Mend it"))["id"]
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


def test_following_what_has_ended_tells_all_of_it_and_how_it_ended(
    paused: Api, capfd: pytest.CaptureFixture[str]
) -> None:
    for act, code in ((tasks.DONE, 0), (tasks.CANCEL, 1)):
        task_id = paused.client.call(tasks.ADD, TaskRequest(title="Mend it", assignee="user"))["id"]
        paused.client.call(tasks.COMMENT, CommentRequest(text="Only this."), task_id=task_id)
        paused.client.call(act, task_id=task_id)
        assert follow_task(paused.client, task_id, as_json=False) == code
        told = capfd.readouterr().out
        assert ("Only this." in told, f"● {act.name.removesuffix('_task')}" in told) == (True, True)


def test_what_was_told_of_a_thread_is_not_sent_again(paused: Api, capfd: pytest.CaptureFixture[str]) -> None:
    task_id = paused.client.call(tasks.ADD, TaskRequest(title="Mend it", assignee="user"))["id"]
    paused.client.call(tasks.COMMENT, CommentRequest(text="One."), task_id=task_id)
    moment = paused.client.call(tasks.COMMENT, CommentRequest(text="Two."), task_id=task_id)["at"]
    later = [entry["comment"]["text"] for entry in paused.client.show_task(task_id, since=moment)["timeline"]]
    assert later == ["Two."]

    asked: list[str | None] = []

    class Asking(FleetClient):
        def show_task(self, task_id: str, since: str | None = None) -> Doc:
            asked.append(since)
            return {**super().show_task(task_id, since), "status": "open" if since is None else "done", "assignee": "x"}

    with Asking(paused.url, paused.token) as client:
        assert follow_task(client, task_id, as_json=True) == 0
    assert [since is None for since in asked] == [True, False]
