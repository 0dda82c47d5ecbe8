"""The derived commands at a real server: what they send, what they print, and what the shell completes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

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
    assert (refused.returncode, "FLEET_API_TOKEN" in refused.stderr) == (6, True)

    file = tmp_path / "dronefleet" / "fleet.toml"
    file.parent.mkdir()
    file.write_text(f'url = "{api.url}"\ntoken = "fa_wrong"\n')
    file.chmod(0o600)
    refused = fleet(api, "project", "ls", FLEET_API_TOKEN="", FLEET_URL="", XDG_CONFIG_HOME=str(tmp_path))
    assert str(file) in refused.stderr


def test_only_what_is_named_changes(api: Api) -> None:
    api.add_work()
    before = api.client.call(projects.SHOW, slug="demo")
    assert json.loads(fleet(api, "project", "edit", "demo", "--json").stdout) == before
    after = json.loads(fleet(api, "project", "edit", "demo", "--branch", "next", "--json").stdout)
    assert after == {**before, "branch": "next"}
    lines = [line.split(maxsplit=1) for line in fleet(api, "project", "show", "demo").stdout.splitlines()]
    assert ["branch", "next"] in lines


def test_a_list_is_a_table_and_an_empty_one_a_sentence(api: Api) -> None:
    assert fleet(api, "project", "ls").stderr.startswith("no projects")
    api.add_work()
    head, row = fleet(api, "project", "ls").stdout.splitlines()
    assert (head.split()[0], row.split()[0]) == ("PROJECT", "demo")


def test_a_secret_is_read_and_never_shown(api: Api) -> None:
    sources = {"env": ("--api-key-env", "MY_KEY"), "stdin": ("--api-key-stdin",)}
    for name, source in sources.items():
        words = ("provider", "add", name, "--model", "openai/x", *source)
        added = fleet(api, *words, stdin="sk-very-secret\n", MY_KEY="sk-very-secret")
        assert "sk-very-secret" not in added.stdout + added.stderr
        assert api.client.call(providers.SHOW, name=name)["key"] == "sealed"


def test_what_is_removed_is_asked_for_first(api: Api) -> None:
    api.add_work()
    assert "--yes" in fleet(api, "project", "rm", "demo").stderr
    assert len(api.client.call(projects.LIST)) == 1
    assert fleet(api, "project", "rm", "demo", "--yes").returncode == 0
    assert api.client.call(projects.LIST) == []


def test_the_shell_is_offered_choices_and_names_that_the_server_has(api: Api) -> None:
    api.add_work()
    order = api.submit("Fix the test")["id"]
    assert completed(api, "fleet project edit demo --pull-requests ") == {"never", "ready", "open"}
    assert completed(api, "fleet project show ") == {"demo"}
    # Those of commands that are written by hand, too.
    assert completed(api, "fleet show ") == {order, "@last"}
    assert completed(api, f"fleet approve {order[:4]}") == {order}
    assert completed(api, "fleet submit 'Fix it' --mode ") == {"plan", "build", "test", "ship", "develop"}
    assert completed(api, "fleet orders --status aw") == {"awaiting_approval"}
    assert completed(api, "fleet task create 'Fix it' --assignee ") == {"user"}


def test_a_shell_without_a_server_is_offered_nothing_and_told_nothing(api: Api) -> None:
    variables = {"_FLEET_COMPLETE": "complete_bash", "COMP_WORDS": "fleet project show ", "COMP_CWORD": "3"}
    done = invoke("fleet", env={**variables, "FLEET_URL": "http://127.0.0.1:9"})
    assert (done.stdout.strip(), done.stderr) == ("", "")


def test_help_loads_the_declarations_of_a_group_only_when_it_is_asked_for() -> None:
    assert "control_plane.declarations.operation" not in imported_by("fleet", "--help")
    of_group = imported_by("fleet", "project", "add", "--help")
    assert "control_plane.declarations.operation" in of_group
    assert of_group.isdisjoint({"sqlalchemy", "celery", "fastapi", "litellm", "httpx"})
