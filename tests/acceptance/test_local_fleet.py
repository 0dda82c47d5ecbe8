"""The commands around a `fleet up` on this machine: its logs, its pages in a browser, and stopping it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from tests.support import wait_until, warm_processes
from tests.support.warm_processes import FLEET
from tests.support.whole_fleet import WholeFleet

pytestmark = pytest.mark.timeout(200)


def test_a_fleet_is_stopped_from_another_terminal_and_its_logs_stay(start_fleet: Callable[..., WholeFleet]) -> None:
    fleet = start_fleet()
    assert fleet.process is not None
    stopped = fleet.fleet("stop")
    assert (stopped.returncode, fleet.process.wait(60)) == (0, 0)
    assert "Stopped." in stopped.stderr

    again = fleet.fleet("stop")
    assert again.returncode == 0
    assert "No fleet is running" in again.stderr
    assert "broker" in fleet.fleet("logs").stdout
    fleet.start()


def test_logs_are_printed_by_part_and_followed(shared_fleet: WholeFleet, tmp_path: Path) -> None:
    everything = shared_fleet.fleet("logs", "--lines", "3")
    assert everything.returncode == 0
    assert {line.split()[0] for line in everything.stdout.splitlines()} >= {"broker", "server"}
    assert len(shared_fleet.fleet("logs", "broker", "-n", "2").stdout.splitlines()) == 2

    unknown = shared_fleet.fleet("logs", "engine")
    assert unknown.returncode == 3
    assert "E-LOGS-PART" in unknown.stderr
    assert "server" in unknown.stderr

    log = shared_fleet.data / "logs" / "server.log"
    with (tmp_path / "followed").open("wb+") as out:
        command = [*FLEET, "logs", "server", "-n", "0", "--follow"]
        with warm_processes.popen(command, env=shared_fleet.environment, stdout=out) as following:
            try:
                wait_until(
                    lambda: _appended(log, "a new line") and b"a new line" in (tmp_path / "followed").read_bytes()
                )
            finally:
                following.terminate()


def _appended(log: Path, line: str) -> bool:
    with log.open("a") as file:
        file.write(f"{line}\n")
    return True


def test_a_login_link_logs_one_browser_in_once(shared_fleet: WholeFleet) -> None:
    link = shared_fleet.fleet("login-link").stdout.strip()
    token = parse_qs(urlsplit(link).query)["token"][0]
    answers = [
        httpx.post(f"{shared_fleet.url}/login", data={"link": token}, headers=_same_site(link)) for _ in range(2)
    ]
    assert [answer.status_code for answer in answers] == [303, 401]
    assert shared_fleet.json("login-link")["url"].startswith(shared_fleet.url)


@pytest.mark.parametrize(
    ("thing", "path"), [((), "/"), (("sessions",), "/sessions"), (("flower",), "/flower/"), (("board",), "/")]
)
def test_a_page_is_opened_in_the_browser(
    shared_fleet: WholeFleet, tmp_path: Path, thing: tuple[str, ...], path: str
) -> None:
    assert parse_qs(urlsplit(_opened(shared_fleet, tmp_path, *thing)).query)["next"] == [path]


def test_an_unknown_page_is_an_unknown_order(shared_fleet: WholeFleet) -> None:
    refused = shared_fleet.fleet("open", "zzz")
    assert refused.returncode == 3
    assert "E-ORDER-404" in refused.stderr


def test_without_a_browser_the_link_is_printed(shared_fleet: WholeFleet) -> None:
    environment = {**shared_fleet.environment, "BROWSER": "/bin/false", "PATH": "/nowhere"}
    done = warm_processes.run([*FLEET, "open"], environment)
    assert done.returncode == 0
    assert done.stdout.startswith(f"{shared_fleet.url}/login?token=")


def _opened(fleet: WholeFleet, directory: Path, *words: str) -> str:
    """The address that `fleet open` gives to the browser."""
    browser, opened = directory / "browser", directory / "opened"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {json.dumps(str(opened))}\n')
    browser.chmod(0o755)
    done = warm_processes.run([*FLEET, "open", *words], {**fleet.environment, "BROWSER": str(browser)})
    assert done.returncode == 0, done.stderr
    return opened.read_text()


def _same_site(link: str) -> dict[str, str]:
    parts = urlsplit(link)
    return {"Origin": f"{parts.scheme}://{parts.netloc}"}
