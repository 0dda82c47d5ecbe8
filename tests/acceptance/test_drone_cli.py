"""`drone` as processes, with a small server as the control plane; its commands: integration/cli/test_drone_commands."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from drone.installation.home import DroneHome
from tests.support.command_tree import BIN, clean_environment, imported_by, invoke
from tests.support.registrar import DRONE_ID, Registrar, registrar

Run = Callable[..., "subprocess.CompletedProcess[str]"]
FORGED = f"fj_{'0' * 64}_0123456789abcdef"


@pytest.fixture
def server() -> Iterator[Registrar]:
    with registrar() as running:
        yield running


@pytest.fixture
def drone(tmp_path: Path) -> Run:
    """Runs `drone WORDS…` with a separate drone home, configuration and HOME."""
    owner = {"HOME": tmp_path, "DRONE_HOME": tmp_path / "home", "XDG_CONFIG_HOME": tmp_path / "config"}
    environment = {name: str(path) for name, path in owner.items()}
    return lambda *words: invoke("drone", *words, env=environment)


def test_a_drone_registers_and_is_told_what_comes_next(drone: Run, server: Registrar) -> None:
    done = drone("register", "--url", server.url + "/", "--token", server.token, "--name", "oka", "--sandbox", "none")
    status = json.loads(drone("status", "--json").stdout)
    left, after = drone("unregister", "--yes"), drone("status")

    assert (done.returncode, done.stderr) == (0, "")
    assert f"registered as oka ({DRONE_ID}) with {server.url}\n" in done.stdout
    assert "drone start" in done.stdout
    assert (status["name"], status["running"], status["server_reachable"]) == ("oka", False, True)
    assert (left.returncode, after.returncode, "[E-NOT-REGISTERED]" in after.stderr) == (0, 2, True)


def test_a_second_start_in_one_home_is_refused(drone: Run, server: Registrar, tmp_path: Path) -> None:
    assert drone("register", "--url", server.url, "--token", server.token, "--sandbox", "none").returncode == 0
    with DroneHome(tmp_path / "home").lock():
        done = drone("start")

    assert done.returncode == 4
    assert f"process {os.getpid()} holds its lock" in done.stderr


def test_an_ephemeral_drone_that_cannot_join_is_refused_and_leaves_no_files(server: Registrar, tmp_path: Path) -> None:
    server.problem = 401, {"title": "no", "detail": "unknown token", "code": "E-JOIN", "why": "", "next": ""}
    joins = ("--ephemeral", "--url", server.url, "--token", FORGED)
    refused = {
        ("--ephemeral",): (2, "--url"),
        ("--ephemeral", "--url", server.url): (2, "DRONE_TOKEN"),
        joins: (6, "unknown token"),
        (*joins, "--idle", "0"): (2, "duration"),
        (*joins, "--orders", "0"): (2, "orders"),
        ("--ephemeral", "--url", "http://127.0.0.1:9", "--token", FORGED): (5, "127.0.0.1:9"),
        ("--idle", "5m"): (2, "--idle"),
    }
    place, used = tmp_path / "temporary", tmp_path / "used"
    place.mkdir()
    used.mkdir()
    (used / "key").write_text("of another drone")
    done = {
        words: invoke("drone", "start", *words, env={"HOME": str(place), "TMPDIR": str(place)}) for words in refused
    }
    in_use = invoke("drone", "start", *joins, env={"DRONE_HOME": str(used)})

    found = {words: (each.returncode, each.stdout, refused[words][1] in each.stderr) for words, each in done.items()}
    assert found == {words: (code, "", True) for words, (code, _) in refused.items()}
    assert (in_use.returncode, "E-HOME-IN-USE" in in_use.stderr) == (4, True)
    assert list(place.iterdir()) == []
    assert (used / "key").read_text() == "of another drone"


def test_a_reader_that_leaves_early_is_no_error() -> None:
    pipe = f'"{BIN / "drone"}" completion bash | true'

    done = subprocess.run(["bash", "-c", pipe], capture_output=True, text=True, env=clean_environment(), check=False)

    assert done.stderr == ""


def test_help_and_completion_of_both_programs_load_nothing_heavy() -> None:
    heavy = {"litellm", "celery", "sqlalchemy", "fastapi", "redis", "httpx", "pydantic", "rich.console", "rich.table"}
    found = {program: imported_by(program, "--help") for program in ("fleet", "drone")}
    asked = {"_DRONE_COMPLETE": "complete_fish", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    typed = {**asked, "_TYPER_COMPLETE_ARGS": "drone reg"}

    assert [name for name, modules in found.items() if "shared.terminal.command_line" not in modules] == []
    assert {name: modules & heavy for name, modules in found.items()} == {"fleet": set(), "drone": set()}
    assert invoke("drone", env=typed).stdout.split("\t")[0] == "register"
