"""Tasks from the command line against a running fleet: every subcommand, wrong use, and a task from end to end."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest

import control_plane.client.fleet
from control_plane.cli.main import app
from control_plane.client.fleet import FleetClient
from control_plane.declarations import agents, organizations, projects, providers, tasks
from control_plane.declarations.agents import AgentRequest
from control_plane.declarations.organizations import OrganizationRequest
from control_plane.declarations.projects import ProjectRequest
from control_plane.declarations.providers import ProviderRequest
from control_plane.declarations.task_documents import TaskFilter
from drone.model.scripted.server import ScriptedServer
from shared.states import TaskStatus
from shared.terminal.boundary import run
from tests.acceptance.scripts import calls, shell
from tests.support import wait_until
from tests.support.command_tree import invoke
from tests.support.repositories import calc_project
from tests.support.terminals import running
from tests.support.whole_fleet import WholeFleet

pytestmark = pytest.mark.timeout(300)

ORG = "task_crew"
SCRIPTS = {
    "default": [
        shell("echo one >> steps.txt; seq 1 500"),
        calls(("add_comment", {"message": "I counted to 500. Nothing is left to do, @user."})),
        {"text": "That was it."},
    ],
    "hold": [shell("echo begun; sleep 300"), {"text": "Never said."}],
}
Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def fleet(shared_fleet: WholeFleet, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WholeFleet]:
    """The shared fleet with a paused organization for this module, with the agents `lead` and `backend`."""
    remote = calc_project(tmp_path_factory.mktemp("task_crew") / "calc.git")
    with ScriptedServer(SCRIPTS) as model:
        with shared_fleet.client() as everywhere:
            everywhere.call(organizations.ADD, OrganizationRequest(name=ORG))
        client = shared_fleet.client(ORG)
        client.call(providers.ADD, ProviderRequest(name="scripted", model="openai/scripted", api_base=model.url))
        client.call(projects.ADD, ProjectRequest(slug="calc", git_url=f"file://{remote}", provider="scripted"))
        client.call(agents.ADD, AgentRequest(name="lead", instructions="You lead."))
        client.call(agents.ADD, AgentRequest(name="backend", instructions="You work.", boss="lead"))
        client.call(organizations.PAUSE, name=ORG)
        yield shared_fleet
        # Tasks that are still running would keep asking a model that is gone.
        for task in client.call(tasks.LIST, TaskFilter(status=TaskStatus.IN_PROGRESS)):
            client.call(tasks.CANCEL, task_id=task["id"])
        client.close()


class Closing(FleetClient):
    """A client that is kept in a list, so that a test can close it; a program leaves that to its exit."""

    opened: ClassVar[list[FleetClient]] = []

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.opened.append(self)


@pytest.fixture
def cli(fleet: WholeFleet, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """A function that runs `fleet` in this process and returns exit code, stdout and stderr."""
    monkeypatch.setenv("FLEET_URL", fleet.url)
    monkeypatch.setenv("FLEET_API_TOKEN", str(fleet.client()._token))
    monkeypatch.setenv("FLEET_ORG", ORG)
    monkeypatch.setattr(control_plane.client.fleet, "FleetClient", Closing)

    def typed(*words: str, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        code = run(app, list(words))
        while Closing.opened:
            Closing.opened.pop().close()
        said = capsys.readouterr()
        return code, said.out, said.err

    return typed


def new(cli: Cli, title: str = "Count to 500", *options: str) -> str:
    code, out, err = cli("task", "create", title, *options)
    assert code == 0, err
    return out.strip()


# --- every subcommand ------------------------------------------------------------------------------


def test_every_command_of_tasks_speaks_json(cli: Cli) -> None:
    """S-123: each subcommand once, with the document that it prints."""
    task = _document(cli("task", "create", "Mend it", "--assignee", "user", "--json"))
    task_id = task["id"]
    assert (task["status"], task["assignee"], task["description"]) == ("open", "user", "Mend it")
    for words, wanted in (
        (("task", "show", task_id), {"status": "open"}),
        (("comment", task_id, "Just a remark."), {"author": "user", "kind": "comment"}),
        (("task", "comment", task_id, "To @lead please."), {"text": "To @lead please."}),
        (("task", "assign", task_id, "user"), {"assignee": "user"}),
        (("task", "done", task_id), {"status": "done"}),
        (("task", "reopen", task_id), {"status": "open", "assignee": "user"}),
        (("task", "done", task_id), {"status": "done"}),
        (("task", "retry", task_id, "--assign", "backend"), {"status": "open", "assignee": "backend"}),
        (("task", "cancel", task_id, "--reason", "no need"), {"status": "canceled"}),
        (("status",), {"organization": ORG, "paused": True}),
    ):
        document = _document(cli(*words, "--json"))
        assert {name: document[name] for name in wanted} == wanted, words
    assert task_id in {each["id"] for each in json.loads(cli("task", "ls", "--json")[1])}
    assert json.loads(cli("run", "ls", "--task", task_id, "--json")[1]) == []
    code, out, _ = cli("task", "follow", task_id, "--json")
    assert (code, json.loads(out.splitlines()[-1])["id"]) == (1, task_id)


def test_every_command_of_tasks_speaks_to_people_and_says_what_happens_next(cli: Cli) -> None:
    task_id = new(cli, "Mend the door", "--assignee", "user")
    for words, said in (
        (("comment", task_id, "Just a remark."), "waiting for you"),
        (("task", "assign", task_id, "lead"), "lead is next"),
        (("task", "assign", task_id, "user"), "waiting for you"),
        (("task", "done", task_id), "reopen"),
        (("task", "reopen", task_id), "waiting for you"),
        (("task", "cancel", task_id), "canceled"),
    ):
        code, out, err = cli(*words)
        assert (code, out) == (0, ""), words
        assert said in err
    listed = cli("task", "ls", "--status", "canceled", "--assignee", "user", "--project", "calc", "--limit", "5")[1]
    assert "Mend the door" in listed
    assert "organization resume task_crew" in cli("status")[1]


def test_a_description_comes_from_an_option_a_file_or_a_pipe(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "what.md"
    file.write_text("# What\n\nAll of it, mit Umläuten.\n", encoding="utf-8")

    given = [
        new(cli, "One", "--description", "Plainly."),
        new(cli, "Two", "--description-file", str(file)),
        cli("task", "create", "Three", "--description-file", "-", stdin="From a pipe.\n")[1].strip(),
    ]

    shown = [_document(cli("task", "show", each, "--json"))["description"] for each in given]
    assert shown == ["Plainly.", "# What\n\nAll of it, mit Umläuten.", "From a pipe."]


@pytest.mark.parametrize(
    ("words", "code", "word"),
    [
        (("task", "create", ""), 2, "title"),
        (("task", "create", "two\nlines"), 2, "line"),
        (("task", "create", "x" * 10_000), 2, "500"),
        (("task", "create", "it", "--assignee", "nobody"), 3, "nobody"),
        (("task", "create", "it", "--project", "nope"), 3, "nope"),
        (("task", "create", "it", "--mode", "dream"), 3, "mode"),
        (("task", "create", "it", "--priority", "1000"), 2, "priority"),
        (("task", "create", "it", "--cost-limit", "-1"), 2, "cost_limit"),
        (("task", "create", "it", "--description", "a", "--description-file", "b"), 2, "--description and"),
        (("task", "create", "it", "--description-file", "/nowhere/at/all"), 3, "/nowhere/at/all"),
        (("task", "create", "it", "--description-file", "/bin/true"), 2, "UTF-8"),
        (("task", "show", "CREW-9999"), 3, "CREW-9999"),
        (("task", "show", "../orders"), 3, "orders"),
        (("task", "follow", "CREW-9999"), 3, "CREW-9999"),
        (("task", "ls", "--status", "dreaming"), 2, "in_progress"),
        (("task", "ls", "--assignee", "nobody"), 3, "nobody"),
        (("task", "ls", "--project", "nope"), 3, "nope"),
        (("task", "comment", "TASK", "@nobody please"), 3, "nobody"),
        (("task", "comment", "TASK", "  "), 2, "empty"),
        (("task", "assign", "TASK", "nobody"), 3, "nobody"),
        (("task", "preempt", "TASK"), 4, "in progress"),
        (("task", "done", "TASK"), 4, "assigned to you"),
        (("task", "reopen", "TASK"), 4, "open"),
        (("task", "retry", "TASK"), 4, "open"),
        (("task", "retry", "TASK", "--assign", "user"), 2, "reopen"),
        (("run", "ls"), 2, "--task"),
        (("run", "ls", "--task", "CREW-9999"), 3, "CREW-9999"),
        (("run", "show", "0123456789ab"), 3, "0123456789ab"),
        (("status", "--org", "nope"), 3, "nope"),
    ],
)
def test_wrong_use_of_tasks_is_one_clear_refusal(cli: Cli, words: tuple[str, ...], code: int, word: str) -> None:
    """S-121, by exit codes."""
    task_id = new(cli) if "TASK" in words else ""

    got, out, err = cli(*(task_id if each == "TASK" else each for each in words))

    assert (got, out) == (code, ""), err
    assert err.startswith("error: ")
    assert word.lower() in err.lower()
    assert len(err) < 2000


def test_a_megabyte_of_comment_is_refused_and_nothing_is_stored(cli: Cli) -> None:
    task_id = new(cli)

    code, _, err = cli("comment", task_id, "-", stdin="x" * 1_000_000)

    assert code == 2
    assert "100,000" in err
    assert len(err) < 1000
    assert _document(cli("task", "show", task_id, "--json"))["timeline"] == []


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("fleet task pre", {"preempt"}),
        ("fleet task re", {"reopen", "retry"}),
        ("fleet run s", {"show"}),
        ("fleet comm", {"comment"}),
        ("fleet stat", {"status"}),
        ("fleet task ls --ass", {"--assignee"}),
    ],
)
def test_the_shell_completes_what_teams_brought(typed: str, expected: set[str]) -> None:
    count = str(len(typed.split()) - 1)

    done = invoke("fleet", env={"_FLEET_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": count})

    assert set(done.stdout.split()) == expected


# --- with runs ---------------------------------------------------------------------------------------


@pytest.fixture
def going(fleet: WholeFleet) -> Iterator[None]:
    """Resume the organization for this test, so that its tasks start."""
    with fleet.client(ORG) as client:
        for task in client.call(tasks.LIST, TaskFilter(status=TaskStatus.OPEN)):
            client.call(tasks.CANCEL, task_id=task["id"])
        client.call(organizations.RESUME, name=ORG)
        yield
        client.call(organizations.PAUSE, name=ORG)


@pytest.mark.usefixtures("going")
def test_a_task_is_told_from_its_creation_to_its_return(cli: Cli, fleet: WholeFleet) -> None:
    """S-026, S-031, S-034: runs and comments, in order, and the cost."""
    task_id = new(cli, "Count to 500", "--assignee", "backend")

    followed = fleet.fleet("task", "follow", task_id, "--org", ORG)
    task = _document(cli("task", "show", task_id, "--json"))
    (entry,) = [each["run"] for each in task["timeline"] if each["run"]]
    text = cli("task", "show", task_id)[1]
    steps = cli("run", "show", entry["run_id"])[1]
    full = cli("run", "show", entry["run_id"], "--full")[1]

    assert followed.returncode == 0, followed.stderr
    assert "I counted to 500." in followed.stdout
    assert (task["status"], task["assignee"]) == ("open", "user")
    assert [each["kind"] for each in task["timeline"]] == ["run", "comment"]
    assert (entry["agent"], entry["status"], entry["task"]) == ("backend", "success", task_id)
    assert task["totals"]["runs"] == 1
    assert task["branch"] == entry["branch"]
    assert re.search(rf"(?m)^\d\d:\d\d  ✓ backend on local-1 · success · .* · {entry['branch']}", text)
    assert re.search(r"(?m)^\d\d:\d\d  backend\n       I counted to 500\. Nothing is left to do, @user\.", text)
    assert "\x1b" not in text
    assert "more characters; --full shows them" in steps
    assert "more characters" not in full
    assert "\n      " in full
    assert cli("run", "ls", "--task", task_id)[1].count("backend") == 1


@pytest.mark.usefixtures("going")
def test_a_task_is_followed_in_a_terminal_with_a_status_line_of_which_nothing_is_left(
    cli: Cli, fleet: WholeFleet
) -> None:
    task_id = new(cli, "Hold this, script:hold", "--assignee", "backend")
    words = (sys.executable, "-m", "control_plane.cli.main", "task", "follow", task_id, "--org", ORG)
    environ = {**fleet.environment, "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    with running([*words], environ, columns=120) as (screen, program):
        status = re.compile(r"in progress · 0:\d\d · backend on \S+ · [\d,]+ tokens · .* · .*echo begun")
        wait_until(lambda: status.search(screen.text) is not None, seconds=60)
        first = status.findall(screen.text)
        wait_until(lambda: status.findall(screen.text) not in ([], first))
        assert cli("task", "cancel", task_id)[0] == 0
        assert program.wait(timeout=60) == 1
        wait_until(lambda: f"fleet task show {task_id}" in screen.text)
    assert "● canceled" in screen.text
    assert "tokens ·" not in screen.text


@pytest.mark.usefixtures("going")
def test_preempt_on_the_command_line_names_the_run_that_it_stops(cli: Cli) -> None:
    """S-110."""
    task_id = new(cli, "Wait, script:hold", "--assignee", "backend")
    wait_until(lambda: _runs(cli, task_id) and "sleep" in _runs(cli, task_id)[0]["doing"], seconds=60)
    run_id = _runs(cli, task_id)[0]["run_id"]
    doing = _document(cli("task", "show", task_id, "--json"))

    code, _, err = cli("task", "preempt", task_id)
    wait_until(lambda: _runs(cli, task_id)[0]["ended_at"], seconds=60)

    assert "sleep" in doing["reason"]
    assert doing["current_run_elapsed_seconds"] is not None
    assert code == 0
    assert f"run {run_id} on local-1 is being stopped" in err
    assert _runs(cli, task_id)[0]["status"] == "preempted"
    assert _document(cli("task", "show", task_id, "--json"))["assignee"] == "user"


def _runs(cli: Cli, task_id: str) -> list[dict[str, Any]]:
    return cast("list[dict[str, Any]]", json.loads(cli("run", "ls", "--task", task_id, "--json")[1]))


def _document(done: tuple[int, str, str]) -> dict[str, Any]:
    code, out, err = done
    assert code == 0, err
    return dict(json.loads(out))
