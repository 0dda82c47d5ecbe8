"""The command lines in a real terminal: lists that are watched, a drone's status line, an order that is followed."""

from __future__ import annotations

from pathlib import Path

import pytest

from drone.model.scripted.server import ScriptedServer
from tests.support import wait_until
from tests.support.repositories import calc_project
from tests.support.terminals import running
from tests.support.warm_processes import DRONE, FLEET
from tests.support.whole_fleet import WholeFleet

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def fleet(shared_fleet: WholeFleet, model: ScriptedServer, tmp_path_factory: pytest.TempPathFactory) -> WholeFleet:
    """The shared fleet with a project of these tests."""
    remote = calc_project(tmp_path_factory.mktemp("remote") / "terminal.git")
    shared_fleet.add_work(model.url, f"file://{remote}", slug="terminal", provider="terminal")
    return shared_fleet


def submit(fleet: WholeFleet, prompt: str) -> str:
    return str(fleet.submit(prompt, project="terminal")["id"])


def environ(fleet: WholeFleet, **more: str) -> dict[str, str]:
    return {**fleet.environment, "TERM": "xterm-256color", "LANG": "C.UTF-8", **more}


def test_ctrl_c_ends_a_watched_list_and_a_follower_and_leaves_order_and_terminal_as_they_were(
    fleet: WholeFleet,
) -> None:
    with running([*FLEET, "orders", "--watch"], environ(fleet), columns=100, rows=30) as (screen, program):
        wait_until(lambda: "Ctrl-C ends" in screen.text)
        order = submit(fleet, "Held work, script:hold")
        wait_until(lambda: order in screen.text and "Held work" in screen.text)
        screen.types("\x03")
        assert program.wait(timeout=60) == 0
    # After the block, all has been read that the program wrote.
    assert "Traceback" not in screen.text
    with running([*FLEET, "follow", order], environ(fleet), columns=40, rows=30) as (screen, program):
        wait_until(lambda: "calls ·" in screen.text)
        screen.types("\x03")
        assert program.wait(timeout=60) == 130
    assert "Traceback" not in screen.text
    assert not screen.screen.cursor.hidden
    assert fleet.order(order)["status"] != "canceled"
    fleet.fleet("cancel", order)
    fleet.ended(order)


def test_the_whole_screen_shows_an_order_and_is_given_back(fleet: WholeFleet) -> None:
    order = submit(fleet, "Whole screen, script:hold")
    with running([*FLEET, "top"], environ(fleet), columns=120, rows=30) as (screen, program):
        wait_until(lambda: order in screen.text and "Whole screen" in screen.text)
        screen.types("\r")
        wait_until(lambda: "calls ·" in screen.text)
        screen.types("q")
        wait_until(lambda: "STATUS" in screen.text)
        screen.types("\x03")
        assert program.wait(timeout=60) == 0
    assert "Traceback" not in screen.text
    assert not screen.screen.cursor.hidden
    assert screen.raw.rfind(b"\x1b[?1049l") > screen.raw.rfind(b"\x1b[?1049h") >= 0
    assert fleet.order(order)["status"] != "canceled"
    fleet.fleet("cancel", order)
    fleet.ended(order)


def test_ctrl_z_fg_and_a_resize_in_the_middle_lose_and_repeat_nothing_and_what_is_long_is_paged(
    fleet: WholeFleet, tmp_path: Path
) -> None:
    order = submit(fleet, "Stopped work, script:steps")
    shell = ("bash", "--norc", "--noprofile", "-i")
    with running(shell, environ(fleet, PS1="ready> "), columns=100, rows=40) as (screen, program):
        screen.types(f"{' '.join(FLEET)} follow {order}\n")
        wait_until(lambda: "✓ shell: echo step 2" in screen.text)
        screen.types("\x1a")
        wait_until(lambda: "Stopped" in screen.text)
        screen.types("echo typed while it $((1 + 1)) waits\n")
        wait_until(lambda: "typed while it 2 waits" in screen.text)
        # Not fewer rows: the screen in memory would drop the first ones, which a terminal keeps above.
        screen.resize(70, 40)
        screen.types("fg\n")
        wait_until(lambda: "✓ done" in screen.text, seconds=60)
        screen.types("exit\n")
        assert program.wait(timeout=60) == 0
    steps = [line.split(" >> ")[0] for line in screen.lines if line.startswith("✓ shell: echo step")]
    assert steps == [f"✓ shell: echo step {number}" for number in range(1, 11)]
    assert "Traceback" not in screen.text

    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\ncat\necho paged\n")
    pager.chmod(0o755)
    for rows, paged in ((10, True), (200, False)):
        there = environ(fleet, PAGER=str(pager))
        with running([*FLEET, "show", order], there, columns=80, rows=rows) as (screen, program):
            assert program.wait(timeout=60) == 0
        assert "✓ done" in screen.text
        assert screen.text.endswith("paged") is paged


def test_a_drone_shows_what_it_does_in_one_line(fleet: WholeFleet) -> None:
    drone = fleet.workstation("oka", "--sandbox", "none", "--label", "terminal=yes")
    there = {**drone.environment, "TERM": "xterm-256color"}
    with running([*DRONE, "start"], there, columns=300) as (screen, program):
        wait_until(lambda: "oka: waiting for orders" in screen.text)
        prompt = ("Held at oka, script:hold", "--project", "terminal", "--label", "terminal=yes")
        order = fleet.json("submit", *prompt)["id"]
        wait_until(lambda: f"oka: 1 of 1 running · Held at oka, script:hold ({order})" in screen.text)
        fleet.fleet("cancel", order)
        wait_until(lambda: "oka: waiting for orders" in screen.text)
        screen.types("\x03")
        assert program.wait(timeout=60) == 0
    assert [line.split(";")[0] for line in screen.lines if line and not line.startswith("^C")] == [
        "starting drone oka",
        "stopping: no new orders",
        "drone oka stopped",
    ]
    fleet.fleet("drone", "rm", "oka", "--yes")
