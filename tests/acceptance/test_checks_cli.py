"""What a person sees who adds a provider or a project: whether it works, and if not, why and what to do."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from drone.model.scripted.server import ScriptedServer
from tests.support import HeldPort, wait_until
from tests.support.checks import CALLS_PING, hello
from tests.support.endpoints import Endpoint, Said, call, call_answer, refused
from tests.support.repositories import calc_project
from tests.support.whole_fleet import WholeFleet

pytestmark = pytest.mark.timeout(200)
Doc = dict[str, Any]
UNKNOWN_MODEL = {"error": {"message": "The model `scripted` does not exist", "type": "invalid_request_error"}}
NO_TOOLS = {"error": {"message": "scripted does not support tools", "type": "api_error"}}
PING = call("ping", {"text": "ok"})


@pytest.fixture(scope="module")
def fleet(shared_fleet: WholeFleet) -> WholeFleet:
    """The shared fleet, with its drone online."""
    shared_fleet.online("local-1")
    return shared_fleet


@pytest.fixture
def endpoint() -> Iterator[Callable[..., str]]:
    """A function that starts an endpoint with these answers; returns its address."""
    with ExitStack() as stack:

        def start(*said: Said) -> str:
            return stack.enter_context(Endpoint(*said)).url

        yield start


@pytest.fixture
def scripted() -> Iterator[ScriptedServer]:
    """A scripted model that calls the tool of a check, and requires a key."""
    with ScriptedServer([{**CALLS_PING, "repeat": True}], api_key="sk-right") as server:
        yield server


def add(fleet: WholeFleet, name: str, url: str, *options: str, text: str | None = None) -> CompletedProcess[str]:
    """Add a provider; text is its key."""
    key = ("--api-key-stdin",) if text else ("--no-key",)
    where = ("--model", "openai/scripted", "--api-base", url)
    return fleet.fleet("provider", "add", name, *where, *key, *options, text=text)


def result_of(fleet: WholeFleet, what: str, name: str) -> tuple[int, Doc]:
    """Exit code and check of `fleet provider|project test NAME --json`."""
    done = fleet.fleet(what, "test", name, "--json")
    return done.returncode, dict(json.loads(done.stdout)["check"])


def test_a_good_provider_is_checked_when_it_is_added_and_by_hand(fleet: WholeFleet, scripted: ScriptedServer) -> None:
    added = add(fleet, "good", scripted.url, text="sk-right")
    assert added.returncode == 0
    assert "check           ok: It answered in " in added.stdout

    done = fleet.fleet("provider", "test", "good")
    assert done.returncode == 0
    verdict, *table = done.stdout.splitlines()
    assert verdict.startswith("✓ provider good works: It answered in ")
    assert [line.split("  ")[1] for line in table] == [
        *("drone", "first token", "in all", "price", "tool calls", "streaming", "window")
    ]
    assert "work" in table[4]
    assert "reports usage" in table[5]
    assert "checking on local-1" in done.stderr
    assert [request["max_tokens"] for request in scripted.requests] == [1, 256, 1, 256]


def test_checks_are_no_orders_of_people_and_show_their_state_in_the_lists(
    fleet: WholeFleet, scripted: ScriptedServer
) -> None:
    before = fleet.json("orders")
    add(fleet, "listed", scripted.url, text="sk-right")
    add(fleet, "unlisted", scripted.url, "--no-check", text="sk-right")

    assert fleet.json("orders") == before
    states = {each["name"]: each["check"]["state"] for each in fleet.json("provider", "ls")}
    assert (states["listed"], states["unlisted"]) == ("ok", "skipped")
    assert fleet.json("orders", "--all")[0]["purpose"] == "check_provider"


def test_a_wrong_key_is_named_and_its_correction_is_checked(fleet: WholeFleet, scripted: ScriptedServer) -> None:
    added = add(fleet, "locked", scripted.url, text="sk-wrong")
    assert added.returncode == 0
    assert "failed: The endpoint 127.0.0.1:" in added.stdout
    assert "rejected the API key (401)." in added.stdout

    done = fleet.fleet("provider", "test", "locked")
    assert (done.returncode, done.stdout.splitlines()[0][:2]) == (1, "✗ ")
    assert "next   fleet provider edit locked --api-key-stdin" in done.stdout
    assert "sk-wrong" not in done.stdout + done.stderr

    edited = fleet.fleet("provider", "edit", "locked", "--api-key-stdin", text="sk-right")
    assert "check           ok: " in edited.stdout


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port at which nothing listens."""
    with HeldPort() as held:
        yield held


def test_each_provider_that_does_not_work_is_told_apart(
    fleet: WholeFleet, endpoint: Callable[..., str], scripted: ScriptedServer, closed_port: int
) -> None:
    urls = {
        "dead": (f"http://127.0.0.1:{closed_port}/v1", "E-CHECK-PORT", f"Nothing listens at 127.0.0.1:{closed_port}"),
        "nohost": ("http://nohost.invalid/v1", "E-CHECK-HOST", "knows no host nohost.invalid"),
        "nomodel": (endpoint(refused(404, UNKNOWN_MODEL)), "E-CHECK-MODEL", "has no model scripted"),
        "notls": (scripted.url.replace("http", "https"), "E-CHECK-TLS", "does not speak TLS"),
    }
    for name, (url, code, said) in urls.items():
        add(fleet, name, url, "--no-check")
        exit_code, check = result_of(fleet, "provider", name)

        assert (exit_code, check["state"], check["code"]) == (1, "failed", code), check
        assert said in check["summary"]
        assert check["next"].startswith(f"fleet provider edit {name} ")
        assert check["code"] in fleet.fleet("help", check["code"]).stdout


def test_a_provider_without_usage_and_one_without_tools_work_and_say_so(
    fleet: WholeFleet, endpoint: Callable[..., str]
) -> None:
    add(fleet, "silent", endpoint(hello(usage=False), call_answer(PING)), "--no-check")
    silent = fleet.fleet("provider", "test", "silent")
    assert silent.returncode == 0
    assert "works, but reports no usage" in silent.stdout

    add(fleet, "plain", endpoint(hello(), refused(400, NO_TOOLS)), "--no-check")
    plain = fleet.fleet("provider", "test", "plain")
    assert plain.returncode == 0
    assert "tool calls   are made in text" in plain.stdout


@pytest.fixture
def remote(tmp_path: Path) -> str:
    return f"file://{calc_project(tmp_path / 'calc.git')}"


def test_a_good_project_is_checked_with_its_commands(fleet: WholeFleet, remote: str) -> None:
    options = ("--setup", "touch made", "--verify", "test -f made")
    added = fleet.fleet("project", "add", "good", "--git-url", remote, *options)
    assert "check          ok: The repository can be fetched, and its 2 commands passed." in added.stdout

    done = fleet.fleet("project", "test", "good")
    assert done.returncode == 0
    assert done.stdout.startswith("✓ project good works: ")
    assert "branch main (the default)" in done.stdout
    assert "push        allowed" in done.stdout
    assert "setup       touch made: passed" in done.stdout
    assert "verify      test -f made: passed" in done.stdout


@pytest.mark.parametrize(
    ("option", "code", "word"), [("--setup", "E-CHECK-SETUP", "set-up"), ("--verify", "E-CHECK-VERIFY", "verification")]
)
def test_a_command_that_fails_is_shown_with_its_output(
    fleet: WholeFleet, remote: str, option: str, code: str, word: str
) -> None:
    slug = word.replace("-", "")
    fleet.json("project", "add", slug, "--no-check", "--git-url", remote, option, "echo it is broken; exit 7")
    done = fleet.fleet("project", "test", slug)

    assert done.returncode == 1
    assert f"but the {word} command `echo it is broken; exit 7` failed with exit code 7." in done.stdout
    assert "it is broken\n" in done.stdout
    assert f"fleet help {code}" in done.stdout


def test_an_unreachable_repository_is_named_before_an_order_fails_and_then_fails_it_once(fleet: WholeFleet) -> None:
    url = "https://nohost.invalid/x.git"
    added = fleet.fleet("project", "add", "away", "--git-url", url)
    assert (added.returncode, "failed: The host of https://nohost.invalid/x.git is unknown" in added.stdout) == (
        0,
        True,
    )
    exit_code, check = result_of(fleet, "project", "away")
    assert (exit_code, check["code"]) == (1, "E-GIT-HOST")

    provider = ("--model", "openai/scripted", "--no-key", "--no-check")
    fleet.json("provider", "add", "unused", *provider)
    done = fleet.fleet("submit", "Do it", "--project", "away", "--provider", "unused", "--follow")
    assert done.returncode == 1
    assert done.stdout.count("is unknown on the drone's machine") == 1
    assert "(next: correct the URL: fleet project edit away --git-url URL" in done.stdout
    assert len(fleet.json("show", "@last")["runs"]) == 1


def test_what_was_added_before_any_drone_is_checked_once_one_appears(
    start_fleet: Callable[..., WholeFleet], scripted: ScriptedServer, remote: str
) -> None:
    fleet = start_fleet(drones=0)
    added = add(fleet, "main", scripted.url, text="sk-right")
    assert added.returncode == 0
    assert "check           unchecked: no drone is registered yet" in added.stdout
    assert fleet.fleet("project", "add", "calc", "--git-url", remote).returncode == 0

    tried = fleet.fleet("provider", "test", "main", "--timeout", "1")
    assert (tried.returncode, tried.stdout) == (1, "")
    assert "✗ provider main is not checked yet: no drone is registered yet" in tried.stderr
    tried = fleet.fleet("provider", "test", "main", "--timeout", "0", "--json")
    assert (tried.returncode, json.loads(tried.stdout)["check"]["state"]) == (1, "unchecked")
    assert fleet.json("orders") == []

    drone = fleet.workstation("oka")
    drone.start()
    wait_until(lambda: states(fleet) == ("ok", "ok"), seconds=60, every=0.5)
    assert fleet.json("provider", "show", "main")["check"]["drone"] == "oka"
    assert scripted.requests[0]["max_tokens"] == 1


def states(fleet: WholeFleet) -> tuple[str, str]:
    """The states of the checks of `main` and `calc`."""
    provider, project = fleet.json("provider", "show", "main"), fleet.json("project", "show", "calc")
    return provider["check"]["state"], project["check"]["state"]


def test_a_key_on_the_drone_is_used_only_where_the_owner_allows_it(
    start_fleet: Callable[..., WholeFleet], scripted: ScriptedServer
) -> None:
    fleet = start_fleet(drones=0)
    fleet.workstation("without").start()
    fleet.online("without")
    where = ("--model", "openai/scripted", "--api-base", scripted.url, "--key-on-drone", "MODEL_KEY")
    fleet.json("provider", "add", "main", *where)
    check = wait_until(lambda: refusal(fleet), every=0.5)
    assert check["state"] == "unchecked"
    assert "does not allow sending MODEL_KEY" in check["summary"]
    assert scripted.requests == []

    allowed = fleet.workstation("with")
    allowed.environment["MODEL_KEY"] = "sk-right"
    allowed.environment["XDG_CONFIG_HOME"] = str(fleet.root / "config with")
    policy = fleet.root / "config with" / "dronefleet" / "policy.toml"
    policy.parent.mkdir(parents=True)
    policy.write_text(f'[keys]\nMODEL_KEY = ["{scripted.url.removesuffix("/v1")}"]\n')
    allowed.start()
    check = wait_until(lambda: ended(fleet), seconds=60, every=0.5)
    assert (check["state"], check["drone"]) == ("ok", "with")


def refusal(fleet: WholeFleet) -> Doc | None:
    """The check, once a drone has refused it."""
    check: Doc = fleet.json("provider", "show", "main")["check"]
    return check if "refused" in check["summary"] else None


def ended(fleet: WholeFleet) -> Doc | None:
    """The check, once it has ended."""
    check: Doc = fleet.json("provider", "show", "main")["check"]
    return check if check["state"] in {"ok", "failed"} else None
