"""The whole tree of `fleet` commands: help, wrong use, `--json`, and how quickly it answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from control_plane.cli.main import app
from drone.model.scripted.server import ScriptedServer
from shared.terminal.boundary import run
from tests.support.command_tree import Node, commands, imported_by, invoke, walk
from tests.support.whole_fleet import WholeFleet

ALL = walk(app)
TALKERS = {
    "up",
    "serve",
    "flower",
    "logs",
    "stop",
    "open",
    "patch",
    "completion",
    "help",
    "follow",
    "mcp",
    "export",
    "results",
}
"""Commands that run until stopped, or whose result is plain text; `follow --json` has its own test."""


@pytest.mark.parametrize("node", ALL, ids=lambda node: node.name)
def test_every_command_explains_itself(node: Node, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(app, [*node.words, "--help"])

    assert code == 0
    assert capsys.readouterr().out.startswith("Usage: fleet")
    assert node.command.help


@pytest.mark.parametrize("node", commands(app), ids=lambda node: node.name)
def test_every_command_says_json_where_it_has_something_to_say(node: Node) -> None:
    assert ("--json" in node.options) != (node.words[-1] in TALKERS - {"follow"})


@pytest.mark.parametrize("node", ALL, ids=lambda node: node.name)
def test_an_option_that_does_not_exist_is_wrong_use(node: Node, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(app, [*node.words, "--no-such-option"])

    printed = capsys.readouterr()
    assert (code, printed.out) == (2, "")
    assert printed.err.startswith("error: ")


def test_a_misspelt_command_is_answered_with_the_near_one() -> None:
    done = invoke("fleet", "sbmit")

    assert done.returncode == 2
    assert "did you mean submit" in done.stderr


@pytest.mark.parametrize(
    ("words", "same"), [(("token", "list"), ("token", "ls")), (("drone", "view"), ("drone", "show"))]
)
def test_the_usual_other_names_of_a_verb_work(words: tuple[str, ...], same: tuple[str, ...]) -> None:
    assert (
        invoke("fleet", *words, "--help").stdout.split("\n\n")[1:]
        == invoke("fleet", *same, "--help").stdout.split("\n\n")[1:]
    )


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_printed(shell: str) -> None:
    done = invoke("fleet", "completion", shell)

    assert done.returncode == 0
    assert "_FLEET_COMPLETE" in done.stdout


def test_the_shell_completes_commands() -> None:
    variables = {"_FLEET_COMPLETE": "complete_bash", "COMP_WORDS": "fleet sub", "COMP_CWORD": "1"}

    done = invoke("fleet", env=variables)

    assert done.stdout.split() == ["submit"]


def test_help_comes_without_heavy_imports() -> None:
    assert imported_by("fleet", "--help").isdisjoint(
        {"litellm", "celery", "sqlalchemy", "fastapi", "httpx", "rich.table"}
    )


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (("orders",), list),
        (("drones",), list),
        (("token", "ls"), list),
        (("api-token", "ls"), list),
        (("provider", "ls"), list),
        (("project", "ls"), list),
        (("token", "create"), dict),
        (("api-token", "create", "--role", "viewer"), dict),
        (("drone", "show", "local-1"), dict),
        (("doctor",), dict),
    ],
)
@pytest.mark.timeout(120)
def test_json_is_one_document_a_list_for_lists(shared_fleet: WholeFleet, words: tuple[str, ...], kind: type) -> None:
    done = shared_fleet.fleet(*words, "--json")

    document: Any = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert isinstance(document, kind)


@pytest.mark.timeout(120)
def test_a_viewer_may_look_and_not_touch(shared_fleet: WholeFleet, model: ScriptedServer) -> None:
    token = shared_fleet.json("api-token", "create", "--role", "viewer")["token"]
    environment = {"FLEET_URL": shared_fleet.url, "FLEET_API_TOKEN": token}

    looked = invoke("fleet", "orders", env=environment)
    touched = invoke(
        "fleet",
        "provider",
        "add",
        "mine",
        "--no-check",
        "--model",
        "openai/x",
        "--api-base",
        model.url,
        env=environment,
    )

    assert (looked.returncode, touched.returncode) == (0, 6)


@pytest.mark.timeout(120)
def test_a_revoked_token_is_useless_at_once(shared_fleet: WholeFleet) -> None:
    made = shared_fleet.json("api-token", "create", "--role", "operator", "--name", "brief")

    shared_fleet.json("api-token", "revoke", made["id"])

    done = invoke("fleet", "orders", env={"FLEET_URL": shared_fleet.url, "FLEET_API_TOKEN": made["token"]})
    assert done.returncode == 6


def test_colours_go_to_terminals_alone() -> None:
    assert "\x1b" not in invoke("fleet", "orders").stderr
    assert "\x1b" in invoke("fleet", "orders", env={"FORCE_COLOR": "1"}).stderr
    assert "\x1b" not in invoke("fleet", "orders", env={"FORCE_COLOR": "1", "NO_COLOR": "1"}).stderr
