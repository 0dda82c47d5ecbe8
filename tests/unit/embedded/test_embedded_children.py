"""Child processes of `fleet up`, with real processes."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from control_plane.server.embedded.children import Child, without_fleet_secrets
from control_plane.server.embedded.data_dir import DataDir
from control_plane.server.embedded.parts import drone, wait_ready
from shared.errors import Unreachable
from tests.support import wait_until

STUBBORN = "import signal, time; signal.signal(15, signal.SIG_IGN); print('ready', flush=True); time.sleep(600)"


def child(tmp_path: Path, code: str, **settings: float) -> Child:
    return Child("server", (sys.executable, "-c", code), tmp_path / "logs" / "child.log", **settings)


def test_a_dead_child_is_started_again_after_a_pause_and_what_it_printed_is_in_its_log(tmp_path: Path) -> None:
    part = child(tmp_path, "print('hello'); raise SystemExit(3)")
    part.start()
    assert wait_until(part.died) == 3
    assert part.last_words() == "hello"

    assert not part.restart_when_due()
    assert wait_until(part.restart_when_due)
    wait_until(part.died)


def test_a_child_that_ignores_sigterm_is_killed_when_its_time_is_up(tmp_path: Path) -> None:
    part = child(tmp_path, STUBBORN, stop_seconds=0.3)
    part.start()
    wait_until(lambda: part.last_words() == "ready")

    part.stop()

    assert part.died() == -signal.SIGKILL


def test_a_child_that_ends_at_once_is_told_with_the_end_of_its_log(tmp_path: Path) -> None:
    part = child(tmp_path, "raise SystemExit('no such database')")
    part.start()

    with pytest.raises(Unreachable, match="exit code 1") as failure:
        wait_ready(part, lambda: False, watch=(), pause=lambda: None)

    assert "no such database" in failure.value.why


def test_a_drone_that_is_late_does_not_end_the_fleet_as_other_parts_do(tmp_path: Path) -> None:
    part = child(tmp_path, STUBBORN, ready_seconds=0.0, stop_seconds=0.3)
    part.start()
    with pytest.raises(Unreachable, match="in time"):
        wait_ready(part, lambda: False, watch=(), pause=lambda: None)
    part.may_be_late = drone("local-1", tmp_path, DataDir(tmp_path / "fleet"), tmp_path).may_be_late
    assert not wait_ready(part, lambda: False, watch=(), pause=lambda: None)
    part.stop()


def test_a_child_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from control_plane.server.embedded.children import Child\n"
        f"c = Child('x', (sys.executable, '-c', 'import time; time.sleep(600)'), Path({str(tmp_path / 'log')!r}))\n"
        "c.start(); print(c.process.pid, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.kill()

    wait_until(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)


def test_drones_inherit_neither_secrets_of_the_fleet_nor_a_port_that_only_one_could_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = {"FLEET_METRICS_TOKEN": "m" * 32, "DRONE_METRICS_PORT": "9464", "DRONE_LOG_LEVEL": "debug"}
    for name, value in given.items():
        monkeypatch.setenv(name, value)

    inherited = without_fleet_secrets()

    assert {name for name in given if name in inherited} == {"DRONE_LOG_LEVEL"}


def test_commands_of_embedded_drones_see_neither_the_fleets_data_nor_its_server_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRONE_HIDDEN", "/opt/mine")
    data = DataDir(tmp_path / "data")
    environment = drone("d1", data.drones / "d1", data, tmp_path / "home").environment
    assert environment is not None
    assert environment["DRONE_HIDDEN"] == f"/opt/mine:{data.root}:{tmp_path / 'home'}"
