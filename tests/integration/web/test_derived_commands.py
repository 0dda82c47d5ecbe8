"""The derived commands at a real server: what they send, what they print, and what the shell completes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from control_plane.declarations import projects, providers
from tests.support.command_tree import imported_by, invoke
from tests.support.fleet import Api


def fleet(api: Api, *words: str, stdin: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    """`fleet` as an admin of this server."""
    environment = {"FLEET_URL": api.url, "FLEET_API_TOKEN": api.token, **variables}
    return invoke("fleet", *words, stdin=stdin, env=environment)


def completed(api: Api, line: str) -> set[str]:
    """What bash is offered at the end of a line."""
    variables = {"_FLEET_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    return set(fleet(api, **variables).stdout.split())


def test_every_field_that_is_typed_arrives(api: Api) -> None:
    api.add_work("other")
    words = ("--branch", "main", "--setup", "make", "--setup", "make deps", "--verify", "make test", "--name", "Shop")
    more = ("--provider", "scripted", "--budget", "$2.50/day", "--pull-requests", "ready", "--trailer", "Assisted-by")
    added = fleet(api, "project", "add", "shop", "--git-url", "https://git.example/s.git", *words, *more, "--json")

    document = json.loads(added.stdout)
    assert document == api.client.call(projects.SHOW, slug="shop")
    assert (document["branch"], document["setup"], document["budget_usd_day"]) == ("main", ["make", "make deps"], 2.5)
    assert (document["pull_requests"], document["trailers"]) == ("ready", ["Assisted-by"])


def test_a_wrong_token_is_refused_with_its_origin(api: Api, tmp_path: Path) -> None:
    refused = fleet(api, "project", "ls", FLEET_API_TOKEN="fa_wrong")
    assert refused.returncode == 6
    assert "\n  why   the token is from FLEET_API_TOKEN\n" in refused.stderr

    file = tmp_path / "dronefleet" / "fleet.toml"
    file.parent.mkdir()
    file.write_text(f'url = "{api.url}"\ntoken = "fa_wrong"\n')
    file.chmod(0o600)
    refused = fleet(api, "project", "ls", FLEET_API_TOKEN="", FLEET_URL="", XDG_CONFIG_HOME=str(tmp_path))
    assert f"the token is from {file}\n" in refused.stderr


def test_only_what_is_named_changes(api: Api) -> None:
    api.add_work()
    before = api.client.call(projects.SHOW, slug="demo")
    assert json.loads(fleet(api, "project", "edit", "demo", "--json").stdout) == before
    after = json.loads(fleet(api, "project", "edit", "demo", "--branch", "next", "--json").stdout)
    assert after == {**before, "branch": "next"}


def test_a_document_is_shown_by_its_labels_and_says_what_no_value_means(api: Api) -> None:
    api.add_work()
    fleet(api, "project", "edit", "demo", "--setup", "make", "--setup", "make deps", "--budget", "5/day")
    lines = [line.split(maxsplit=1) for line in fleet(api, "project", "show", "demo").stdout.splitlines()]
    assert ["project", "demo"] in lines
    assert ["branch", "the remote's default branch"] in lines
    assert [text for label, text in lines if label == "setup"] == ["make", "make deps"]
    assert ["budget", "5.0 USD/day"] in lines


def test_a_list_is_a_table_and_an_empty_one_a_sentence(api: Api) -> None:
    assert fleet(api, "project", "ls").stderr == "no projects; fleet project add creates one\n"
    api.add_work()
    head, row = fleet(api, "project", "ls").stdout.splitlines()
    assert head.split() == ["PROJECT", "CHECK", "GIT", "URL", "BRANCH", "PROVIDER"]
    assert row.split() == ["demo", "skipped", "https://git.example/demo.git", "-", "scripted"]


@pytest.mark.parametrize(
    ("source", "stdin"), [(("--api-key-env", "MY_KEY"), ""), (("--api-key-stdin",), "sk-very-secret\n")]
)
def test_a_secret_is_read_and_never_shown(api: Api, source: tuple[str, ...], stdin: str) -> None:
    words = ("provider", "add", "main", "--model", "openai/x", *source)
    added = fleet(api, *words, stdin=stdin, MY_KEY="sk-very-secret")
    assert "sk-very-secret" not in added.stdout + added.stderr
    assert api.client.call(providers.SHOW, name="main")["key"] == "sealed"


def test_what_is_removed_is_asked_for_first(api: Api) -> None:
    api.add_work()
    assert "--yes" in fleet(api, "project", "rm", "demo").stderr
    assert fleet(api, "project", "rm", "demo", "--yes").stderr == "project demo removed\n"
    assert api.client.call(projects.LIST) == []
    fleet(api, "organization", "add", "payments")
    assert "--yes" in fleet(api, "organization", "rm", "payments").stderr
    assert fleet(api, "organization", "rm", "payments", "--yes").returncode == 0


def test_the_shell_is_offered_choices_and_names_that_the_server_has(api: Api) -> None:
    api.add_work()
    assert completed(api, "fleet project edit demo --pull-requests ") == {"never", "ready", "open"}
    assert completed(api, "fleet project edit demo --provider s") == {"scripted"}
    assert completed(api, "fleet project show ") == {"demo"}


def test_commands_that_are_written_by_hand_complete_the_same_way(api: Api) -> None:
    api.add_work()
    order = api.submit("Fix the test")["id"]
    assert completed(api, "fleet show ") == {order, "@last"}
    assert completed(api, f"fleet approve {order[:4]}") == {order}
    assert completed(api, "fleet submit 'Fix it' --mode ") == {"plan", "build", "test", "ship", "develop"}
    assert completed(api, "fleet submit 'Fix it' --approve ") == {"yolo", "risky", "all"}
    assert completed(api, "fleet submit 'Fix it' --project ") == {"demo"}
    assert completed(api, "fleet orders --status aw") == {"awaiting_approval"}
    assert completed(api, "fleet orders --org d") == {"default"}
    assert completed(api, "fleet task create 'Fix it' --assignee ") == {"user"}
    assert completed(api, "fleet api-token create --role a") == {"admin"}


def test_zsh_shows_the_title_of_an_order_beside_its_id(api: Api) -> None:
    api.add_work()
    order = api.submit("Fix the test\nand more")["id"]
    variables = {"_FLEET_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": f"fleet show {order[:4]}"}
    assert f'"{order}":"Fix the test"' in fleet(api, **variables).stdout


def test_a_shell_without_a_server_is_offered_nothing_and_told_nothing(api: Api) -> None:
    variables = {"_FLEET_COMPLETE": "complete_bash", "COMP_WORDS": "fleet project show ", "COMP_CWORD": "3"}
    done = invoke("fleet", env={**variables, "FLEET_URL": "http://127.0.0.1:9"})
    assert (done.stdout.strip(), done.stderr) == ("", "")


def test_help_loads_the_declarations_of_a_group_only_when_it_is_asked_for() -> None:
    assert "control_plane.declarations.operation" not in imported_by("fleet", "--help")
    of_group = imported_by("fleet", "project", "add", "--help")
    assert "control_plane.declarations.operation" in of_group
    assert of_group.isdisjoint({"sqlalchemy", "celery", "fastapi", "litellm", "httpx"})
