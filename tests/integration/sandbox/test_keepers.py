"""One keeper for all commands of a run: what it outlives, what a command can do to it, and when another one starts."""

from __future__ import annotations

import select
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from drone.sandbox import CommandSpec, Sandbox
from drone.sandbox import keepers as keepers_module
from drone.sandbox.container import running
from drone.sandbox.keepers import LOST, Held
from drone.sandbox.opened import close_all
from drone.sandbox.protocol import Asked
from tests.integration.sandbox.test_sandbox_processes import UNTIL_IT_RUNS, number
from tests.support import wait_until
from tests.support.command_time import LONG, time_is_up_when
from tests.support.sandboxes import processes_with, shell

pytestmark = pytest.mark.hostile


@pytest.fixture
def session(sandbox: Sandbox, tmp_path: Path) -> Sandbox:
    """A sandbox of a run, whose commands share a keeper."""
    return sandbox.for_session(scratch=tmp_path / "scratch")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def keepers() -> list[psutil.Process]:
    """The keepers of this process; in bubblewrap and in containers, a keeper is below other processes."""
    below = psutil.Process().children(recursive=True)
    names = {each.pid: name_of(each) for each in below}
    return [each for each in below if names[each.pid] == "drone" and names.get(parent_of(each)) != "drone"]


def name_of(process: psutil.Process) -> str:
    """Empty for one that has ended meanwhile."""
    with suppress(psutil.Error):
        return process.name()
    return ""


def parent_of(process: psutil.Process) -> int:
    """0 for one that has ended meanwhile."""
    with suppress(psutil.Error):
        return process.ppid()
    return 0


def test_commands_of_a_run_share_one_keeper_which_ends_with_the_run(session: Sandbox, work: Path) -> None:
    namespace = [session.python, "-c", "import os; print(os.readlink('/proc/self/ns/pid'))"]
    first, second = (session.run(CommandSpec(namespace, workspace=work, timeout=60)) for _ in range(2))

    assert first.output.startswith("pid:")
    assert first.output == second.output
    close_all()
    assert keepers() == []
    assert shell(session, work, "echo again").output == "again\n"


@pytest.mark.parametrize("sandbox", ["bwrap", "none"], indirect=True)
def test_a_keeper_that_was_killed_takes_its_namespace_with_it_and_the_next_command_gets_another(
    session: Sandbox, work: Path
) -> None:
    name = number()

    def kill() -> None:
        if processes_with(name):
            for each in keepers():
                with suppress(psutil.Error):
                    each.kill()
            (work / "go").touch()

    line = f"setsid sleep {name} & until [ -e go ]; do sleep 0.02; done; echo done"
    result = session.run(CommandSpec(line, workspace=work, timeout=LONG, check=kill))

    ended = (None, LOST) if session.kind == "bwrap" else (0, "")
    assert (result.return_code, result.lost) == ended
    wait_until(lambda: not processes_with(name))
    assert shell(session, work, "echo again").output == "again\n"


def test_a_holder_that_is_faster_than_the_drone_is_known(
    session: Sandbox, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Late(Held):
        def __init__(self, holder: socket.socket, asked: Asked) -> None:
            select.select([holder], [], [], 60)
            super().__init__(holder, asked)

    for module in (keepers_module, running):
        monkeypatch.setattr(module, "Held", Late)

    assert shell(session, work, "echo it").output == "it\n"


def test_a_command_that_kills_its_holder_ends_and_another_beside_it_does_not(session: Sandbox, work: Path) -> None:
    with ThreadPoolExecutor() as pool:
        other = pool.submit(shell, session, work, "until [ -e go ]; do sleep 0.02; done; echo beside")
        attack = shell(session, work, "kill -9 $PPID; sleep 1000")
        (work / "go").touch()

    assert attack.return_code == 128 + signal.SIGKILL
    assert (other.result().return_code, other.result().output) == (0, "beside\n")


def test_a_command_that_stops_its_holder_ends_at_its_time_limit(
    session: Sandbox, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    time_is_up_when(monkeypatch, (work / "done").exists)

    result = shell(session, work, "kill -STOP $PPID; touch done", timeout=LONG)

    assert (result.timed_out, result.survivors) == (True, 0)


def test_what_a_command_leaves_ends_although_another_one_still_runs(session: Sandbox, work: Path) -> None:
    left, kept = number(), number()
    with ThreadPoolExecutor() as pool:
        other = pool.submit(shell, session, work, f"setsid sleep {kept} & until [ -e go ]; do sleep 0.02; done")
        wait_until(lambda: processes_with(kept))
        shell(session, work, f"(setsid sleep {left} &) ; {UNTIL_IT_RUNS.format(left)}")

        assert (processes_with(left), len(processes_with(kept))) == ([], 1)
        (work / "go").touch()
    assert other.result().return_code == 0
    assert processes_with(kept) == []


def test_a_command_in_a_namespace_can_do_nothing_to_its_keeper(walled: Sandbox, tmp_path: Path, work: Path) -> None:
    session = walled.for_session(scratch=tmp_path / "scratch")
    looks = [f"/proc/{who}/{what}" for who in ("1", "$PPID") for what in ("environ", "fd/", "mem", "maps")]

    result = shell(session, work, f"kill -9 1; kill -STOP 1; kill -TERM 1; cat {' '.join(looks)}; exit 5")

    assert result.return_code == 5
    assert result.output.count("Permission denied") == len(looks)
    assert shell(session, work, "echo again").output == "again\n"


def test_a_command_has_no_descriptor_of_what_started_it(session: Sandbox, work: Path) -> None:
    shell(session, work, "true")

    assert shell(session, work, "ls /proc/self/fd").output.split() == ["0", "1", "2", "3"]


def test_programs_of_a_command_get_the_signals_that_its_holder_ignores(session: Sandbox, work: Path) -> None:
    line = 'for s in HUP INT QUIT TERM USR1 USR2 PIPE; do sh -c "kill -$s \\$\\$; sleep 5"; echo $?; done 2>/dev/null'

    numbers = [int(each) for each in shell(session, work, f"bash -c '{line}'").output.split()]

    assert numbers == [128 + each for each in (1, 2, 3, 15, 10, 12, 13)]


@pytest.mark.parametrize("sandbox", ["bwrap", "none"], indirect=True)
def test_a_workspace_that_was_replaced_is_the_one_that_the_next_command_sees(session: Sandbox, work: Path) -> None:
    shell(session, work, "touch old")
    work.rename(work.with_name("away"))
    work.mkdir()
    (work / "new").touch()

    assert shell(session, work, "ls").output == "new\n"


def test_a_sandbox_that_cannot_be_started_says_why(bwrap: Sandbox, tmp_path: Path) -> None:
    session = bwrap.for_session(scratch=tmp_path / "scratch")

    result = shell(session.for_session(scratch=tmp_path / "scratch", read_only=[tmp_path / "none"]), tmp_path, "true")

    assert result.return_code != 0
    assert str(tmp_path / "none") in result.output


def test_a_long_command_with_any_bytes_arrives(session: Sandbox, work: Path) -> None:
    text = "".join(map(chr, range(1, 0x250))).replace("'", "") * 50

    assert shell(session, work, f"printf %s '{text}'").output_bytes == len(text.encode())
