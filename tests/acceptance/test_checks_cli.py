"""What a person sees who adds a provider or a project: whether it works, and if not, why and what to do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from drone.model.scripted.server import ScriptedServer
from tests.support.checks import CALLS_PING
from tests.support.repositories import calc_project
from tests.support.whole_fleet import WholeFleet

pytestmark = pytest.mark.timeout(200)


@pytest.fixture(scope="module")
def fleet(shared_fleet: WholeFleet) -> WholeFleet:
    """The shared fleet, with its drone online."""
    shared_fleet.online("local-1")
    return shared_fleet


@pytest.fixture
def scripted() -> Iterator[ScriptedServer]:
    """A scripted model that calls the tool of a check, and requires a key."""
    with ScriptedServer([{**CALLS_PING, "repeat": True}], api_key="sk-right") as server:
        yield server


def test_a_wrong_key_is_named_and_its_correction_is_checked(fleet: WholeFleet, scripted: ScriptedServer) -> None:
    before = fleet.json("orders")
    where = ("--model", "openai/scripted", "--api-base", scripted.url, "--api-key-stdin")
    added = fleet.fleet("provider", "add", "locked", *where, text="sk-wrong")
    refused = fleet.fleet("provider", "test", "locked")
    edited = fleet.fleet("provider", "edit", "locked", "--api-key-stdin", text="sk-right")
    done = fleet.fleet("provider", "test", "locked")

    assert (added.returncode, "rejected the API key (401)." in added.stdout) == (1, True)
    assert (refused.returncode, refused.stdout[:2]) == (1, "✗ ")
    assert "next   fleet provider edit locked --api-key-stdin" in refused.stdout
    assert "sk-wrong" not in "".join(each for done in (added, refused) for each in (done.stdout, done.stderr))
    assert "check           ok: It answered in " in edited.stdout
    verdict, *table = done.stdout.splitlines()
    assert (done.returncode, verdict[:33]) == (0, "✓ provider locked works: It answe")
    assert [line.split("  ")[1] for line in table] == [
        *("drone", "first token", "in all", "price", "tool calls", "streaming", "window")
    ]
    assert "checking on local-1" in done.stderr
    assert fleet.json("orders") == before, "checks are no orders of people"


def test_a_project_is_checked_with_its_commands_and_shows_what_the_failed_one_printed(
    fleet: WholeFleet, tmp_path: Path
) -> None:
    remote = f"file://{calc_project(tmp_path / 'calc.git')}"
    options = ("--setup", "touch made", "--verify", "test -f made")
    added = fleet.fleet("project", "add", "good", "--git-url", remote, *options)
    good = fleet.fleet("project", "test", "good")
    fleet.json("project", "add", "broken", "--no-check", "--git-url", remote, "--verify", "echo it is broken; exit 7")
    broken = fleet.fleet("project", "test", "broken")

    assert "check          ok: The repository can be fetched, and its 2 commands passed." in added.stdout
    assert (good.returncode, good.stdout[:21]) == (0, "✓ project good works:")
    assert [
        each for each in ("push        allowed", "touch made: passed", "made: passed") if each not in good.stdout
    ] == []
    assert broken.returncode == 1
    assert "`echo it is broken; exit 7` failed with exit code 7." in broken.stdout
    assert "it is broken\n" in broken.stdout
    assert "fleet help E-CHECK-VERIFY" in broken.stdout


def test_an_unreachable_repository_is_named_before_an_order_fails_and_then_fails_it_once(fleet: WholeFleet) -> None:
    added = fleet.fleet("project", "add", "away", "--git-url", "https://nohost.invalid/x.git")
    tested = fleet.fleet("project", "test", "away", "--json")
    fleet.json("provider", "add", "unused", "--model", "openai/scripted", "--no-key", "--no-check")
    done = fleet.fleet("submit", "Do it", "--project", "away", "--provider", "unused", "--follow")

    assert (added.returncode, "failed: The host of https://nohost.invalid/x.git is unknown" in added.stdout) == (
        1,
        True,
    )
    assert (tested.returncode, json.loads(tested.stdout)["check"]["code"]) == (1, "E-GIT-HOST")
    assert done.returncode == 1
    assert done.stdout.count("is unknown on the drone's machine") == 1
    assert "(next: correct the URL: fleet project edit away --git-url URL" in done.stdout
    assert len(fleet.json("show", "@last")["runs"]) == 1
