"""The commands around a `fleet up` on this machine: its logs, its pages in a browser, and stopping it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.support import wait_until, warm_processes
from tests.support.warm_processes import FLEET
from tests.support.whole_fleet import WholeFleet

pytestmark = pytest.mark.timeout(200)


def test_a_fleet_is_stopped_from_another_terminal_and_its_logs_stay_and_are_followed(
    start_fleet: Callable[..., WholeFleet], tmp_path: Path
) -> None:
    fleet = start_fleet()
    assert fleet.process is not None
    assert len(fleet.fleet("logs", "broker", "-n", "2").stdout.splitlines()) == 2
    unknown = fleet.fleet("logs", "engine")
    assert (unknown.returncode, "E-LOGS-PART" in unknown.stderr) == (3, True)
    stopped = fleet.fleet("stop")
    assert (stopped.returncode, fleet.process.wait(60)) == (0, 0)
    assert fleet.fleet("stop").returncode == 0, "there is nothing to stop"
    everything = fleet.fleet("logs", "--lines", "3").stdout
    assert {line.split()[0] for line in everything.splitlines()} >= {"broker", "server"}

    fleet.start()
    log, shown = fleet.data / "logs" / "server.log", tmp_path / "followed"
    with shown.open("wb+") as out:
        command = [*FLEET, "logs", "server", "-n", "0", "--follow"]
        with warm_processes.popen(command, env=fleet.environment, stdout=out) as following:
            try:
                # Again and again: it may not read yet.
                wait_until(lambda: _append(log, "a new line\n") and b"a new line" in shown.read_bytes())
            finally:
                following.terminate()


def test_a_fleet_whose_drones_were_drained_renamed_or_removed_starts_again(
    start_fleet: Callable[..., WholeFleet],
) -> None:
    fleet = start_fleet(drones=2)
    assert fleet.json("drone", "edit", "local-1", "--name", "box")["name"] == "box"
    fleet.json("drone", "drain", "box")
    assert fleet.fleet("drone", "rm", "local-2", "--yes").returncode == 0
    assert fleet.stop() == 0

    fleet.start()

    found = {drone["name"]: drone["status"] for drone in fleet.json("drones")}
    assert found == {"box": "draining", "local-2": "online"}


def _append(log: Path, text: str) -> int:
    with log.open("a") as file:
        return file.write(text)


def test_a_page_is_opened_in_the_browser_and_without_one_the_link_is_printed(
    shared_fleet: WholeFleet, tmp_path: Path
) -> None:
    browser, opened = tmp_path / "browser", tmp_path / "opened"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {json.dumps(str(opened))}\n')
    browser.chmod(0o755)
    for words, page in (((), "/"), (("sessions",), "/sessions"), (("flower",), "/flower/"), (("board",), "/")):
        done = warm_processes.run([*FLEET, "open", *words], {**shared_fleet.environment, "BROWSER": str(browser)})
        assert done.returncode == 0, done.stderr
        assert parse_qs(urlsplit(opened.read_text()).query)["next"] == [page]
    without = {**shared_fleet.environment, "BROWSER": "/bin/false", "PATH": "/nowhere"}
    printed = warm_processes.run([*FLEET, "open"], without)
    assert (printed.returncode, printed.stdout.startswith(f"{shared_fleet.url}/login?token=")) == (0, True)
