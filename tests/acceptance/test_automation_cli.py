"""Schedules, triggers and webhooks from the terminal, on a whole fleet."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from control_plane.declarations import organizations, projects, providers, schedules, tasks
from control_plane.declarations.organizations import OrganizationRequest
from control_plane.declarations.projects import ProjectRequest
from control_plane.declarations.providers import ProviderRequest
from tests.support import hooks, wait_until
from tests.support.repositories import calc_project
from tests.support.whole_fleet import WholeFleet

pytestmark = pytest.mark.timeout(240)
AUTOS = ("--org", "autos")
MINE = ("--assignee", "user")


@pytest.fixture(scope="module")
def fleet(shared_fleet: WholeFleet, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WholeFleet]:
    """The shared fleet with an organization `autos` and a project, but without agents."""
    remote = calc_project(tmp_path_factory.mktemp("autos") / "calc.git")
    with shared_fleet.client() as client:
        client.call(organizations.ADD, OrganizationRequest(name="autos"))
    with shared_fleet.client("autos") as client:
        client.call(projects.ADD, ProjectRequest(slug="calc", git_url=f"file://{remote}"))
        client.call(providers.ADD, ProviderRequest(name="none", model="openai/x", api_base="http://127.0.0.1:9/v1"))
    return shared_fleet


def test_a_schedule_is_added_shown_run_changed_and_removed(fleet: WholeFleet, tmp_path: Path) -> None:
    (tmp_path / "told.md").write_text("Update what is old.\n")
    times = ("--cron", "30 2 * * *", "--timezone", "Europe/Berlin")
    texts = ("--title", "Tidy {{date}}", "--description-file", str(tmp_path / "told.md"))
    added = fleet.fleet("schedule", "add", "nightly", *times, *texts, *MINE, *AUTOS).stdout
    task = fleet.json("schedule", "run", "nightly", *AUTOS)
    edited = fleet.json("schedule", "edit", "nightly", "--off", "--priority", "3", *AUTOS)
    listed = fleet.fleet("schedule", "ls", *AUTOS).stdout
    removed = fleet.json("schedule", "delete", "nightly", "--yes", *AUTOS)
    assert added.count(" UTC\n") == 5
    assert (task["title"][:7], task["description"]) == ("Tidy 20", "Update what is old.")
    assert (edited["enabled"], edited["task"]["priority"], edited["task"]["assignee"]) == (False, 3, "user")
    assert "off" in listed
    assert removed["last_task"] == task["id"]


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("schedule", "add", "x", "--cron", "0 0 30 2 *", "--title", "x"), 2, "E-SCHEDULE-CRON"),
        (("schedule", "add", "x"), 2, "cron: is required; task.title: is required"),
        (("schedule", "show", "nope"), 3, "E-SCHEDULE-404"),
        (("trigger", "add", "x", "--kind", "github", "--secret", "short"), 2, "E-TRIGGER-SECRET"),
        (("webhook", "add", "x", "--url", "http://127.0.0.1/"), 2, "E-WEBHOOK-INSIDE"),
    ],
)
def test_what_cannot_be_is_refused_with_its_exit_code(
    fleet: WholeFleet, arguments: tuple[str, ...], code: int, told: str
) -> None:
    done = fleet.fleet(*arguments, *AUTOS)
    assert done.returncode == code
    assert told in done.stderr


def test_a_trigger_makes_a_task_of_what_its_code_host_sends(fleet: WholeFleet) -> None:
    trigger = fleet.json("trigger", "create", "issues", "--kind", "github", *MINE, *AUTOS)
    request = hooks.github(trigger["secret"])
    answer = httpx.post(trigger["url"], content=request.body, headers=request.headers, trust_env=False).json()
    shown = fleet.fleet("trigger", "show", "issues", *AUTOS).stdout
    edited = fleet.json("trigger", "edit", "issues", "--event", "push", "--title", "{{ event }}", *AUTOS)
    fleet.fleet("trigger", "rm", "issues", "--yes", *AUTOS)
    assert answer["outcome"] == "task"
    assert answer["task"] in shown
    assert trigger["secret"] not in shown
    assert (edited["events"], edited["task"]) == (["push"], {"assignee": "user", "title": "{{ event }}"})


def test_a_webhook_is_added_tried_and_its_messages_listed(fleet: WholeFleet) -> None:
    added = fleet.fleet("webhook", "add", "chat", "--url", "https://receiver.invalid/x", "--event", "task.done", *AUTOS)
    tried = fleet.fleet("webhook", "test", "chat", *AUTOS)
    deliveries = fleet.json("webhook", "deliveries", "chat", *AUTOS)
    edited = fleet.json("webhook", "edit", "chat", "--off", "--every-event", *AUTOS)
    assert "whsec_" in added.stdout
    assert (tried.returncode, tried.stdout[:39]) == (1, "rejected: receiver.invalid could not be")
    assert [(each["event"], each["attempts"]) for each in deliveries] == [("fleet.test", 1)]
    assert (edited["enabled"], edited["events"], edited["secret"]) == (False, [], None)


@pytest.mark.long
def test_a_schedule_of_each_minute_makes_its_tasks_by_itself(fleet: WholeFleet) -> None:
    schedule = ("add", "minutely", "--cron", "* * * * *", "--title", "at {{time}}", *MINE)
    fleet.json("schedule", *schedule, *AUTOS)
    with fleet.client("autos") as client:
        titles = wait_until(
            lambda: (t := [each["title"] for each in client.call(tasks.LIST) if each["title"][:3] == "at "])[1:] and t,
            seconds=200,
            every=1.0,
        )
        client.call(schedules.REMOVE, name="minutely")
    assert len(set(titles)) == len(titles), json.dumps(titles)
