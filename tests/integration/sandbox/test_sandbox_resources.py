"""What commands may use of the machine: each limit ends or refuses what goes over it, and is named."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from drone.sandbox import CommandResult, Sandbox, choose
from drone.sandbox.account import is_root
from drone.sandbox.bubblewrap import Bubblewrap
from drone.sandbox.opened import close_all
from drone.sandbox.resources import ResourceLimits, Resources, at_most
from drone.sandbox.resources.cgroups import PREFIX, Group
from drone.sandbox.resources.usage import UsageWatch
from drone.tools.arguments import ShellArguments
from drone.tools.shell import Shell
from tests.support import needs, wait_until
from tests.support.disks import MEGABYTES, Disk
from tests.support.sandboxes import as_nobody, shell

pytestmark = pytest.mark.usefixtures("networks_closed")
MB = 1024 * 1024
Run = Callable[[str, ResourceLimits], CommandResult]


@pytest.fixture
def run(sandbox: Sandbox, tmp_path: Path) -> Run:
    """Runs one line in a session of each sandbox, with these limits."""
    workspace = tmp_path / "work"
    workspace.mkdir()

    def run(line: str, limits: ResourceLimits) -> CommandResult:
        limited = choose(sandbox.kind, os.environ, limits=limits, trial=False)
        return limited.for_session(scratch=tmp_path / "scratch").run(line, workspace=workspace, timeout=60)

    return run


def needs_cgroup(bound: str) -> None:
    group = Group(ResourceLimits(memory=MB, processes=1, cpus=1))
    group.close()
    if bound not in group.bounds:
        pytest.skip(f"no cgroup that bounds {bound} can be made here")


def test_all_processes_of_a_run_share_its_memory(run: Run) -> None:
    needs_cgroup("memory")
    hold = "python3 -c 'import time; x = bytearray(80 << 20); time.sleep(2); print(len(x))'"

    together = run(f"{hold} & {hold} & {hold} & {hold} & wait; echo after", ResourceLimits(memory=200 * MB))
    one = run(hold, ResourceLimits(memory=200 * MB))

    assert together.output.count("83886080") in {1, 2}
    assert "after" in together.output
    assert "200.0MiB of memory" in " ".join(together.reached)
    assert (one.output.strip(), one.reached) == ("83886080", ())


def test_a_run_without_memory_leaves_nothing_where_its_drone_was_started(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_cgroup("memory")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")

    result = run("python3 -c 'bytearray(300 << 20)'; echo after", ResourceLimits(memory=100 * MB))
    close_all()

    assert "100.0MiB of memory" in " ".join(result.reached)
    assert list((tmp_path / "here").iterdir()) == []


def test_a_run_has_only_so_many_processes(run: Run) -> None:
    needs_cgroup("processes")

    result = run("for i in $(seq 300); do sleep 1 & done; wait; echo after", ResourceLimits(processes=60))

    assert "60 processes" in " ".join(result.reached)
    assert run("echo still works", ResourceLimits(processes=60)).output == "still works\n"


def test_processor_time_is_shared_out(run: Run) -> None:
    needs_cgroup("cpus")
    line = (
        "python3 -c '\nimport time\nend, began = time.time() + 2, time.process_time()\n"
        "while time.time() < end: pass\nprint(time.process_time() - began)'"
    )

    assert float(run(line, ResourceLimits(cpus=0.2)).output) < 0.8


def test_one_file_has_a_largest_size(run: Run) -> None:
    result = run("head -c 3000000 /dev/zero > big; echo $?; stat -c %s big", ResourceLimits(file_size=MB))

    assert result.output.splitlines()[-2:] == ["153", str(MB)]


@pytest.mark.parametrize("place", [".", "$HOME", "${TMPDIR:-/tmp}"])
def test_a_command_that_fills_the_disk_is_ended_and_what_removes_files_is_not(run: Run, place: str) -> None:
    limits = ResourceLimits(disk=20 * MB)

    filling = run(f"for i in $(seq 400); do head -c 1000000 /dev/zero > {place}/f$i; sleep 0.05; done", limits)
    reading = run(f"cat {place}/f1 | wc -c; sleep 3", limits)
    removing = run(f"sleep 3; rm {place}/f*; echo removed", limits)

    assert (filling.return_code, "of 20.0MiB allowed" in filling.over) == (None, True)
    assert (reading.return_code, reading.output) == (0, "1000000\n")
    assert removing.output == "removed\n"


def test_the_group_of_a_run_is_gone_after_it(bwrap: Sandbox, tmp_path: Path) -> None:
    needs_cgroup("memory")
    shell(bwrap, tmp_path, "true")
    made = groups()

    close_all()

    assert len(made) >= 1
    assert not groups() & made


def test_a_command_that_removes_its_own_workspace_runs_to_its_end(run: Run) -> None:
    result = run('rm -rf "$PWD" 2>/dev/null; sleep 3; echo end', ResourceLimits())

    assert (result.return_code, result.output) == (0, "end\n")


def test_a_group_is_kept_while_commands_run_and_closing_does_not_end_them() -> None:
    needs_cgroup("memory")
    resources = Resources(ResourceLimits())
    command = resources.spawn(lambda: subprocess.Popen(["sh", "-c", f"{resources.entering()}; exec sleep 60"]))
    try:
        wait_until(lambda: any(str(command.pid) in (each / "cgroup.procs").read_text().split() for each in groups()))
        began = time.monotonic()
        close_all()
        kept, took, running = groups(), time.monotonic() - began, command.poll() is None
    finally:
        command.kill()
        command.wait()

    close_all()

    assert (len(kept) >= 1, took < 10, running) == (True, True, True)
    assert not groups()


def groups() -> set[Path]:
    """Those of this process."""
    return set(Path("/sys/fs/cgroup").glob(f"**/{PREFIX}{os.getpid()}-*"))


def test_what_a_killed_run_left_behind_is_removed_by_the_next() -> None:
    needs_cgroup("memory")
    line = (
        "import os\nfrom drone.sandbox.resources.cgroups import Group\n"
        "from drone.sandbox.resources import ResourceLimits\ngroup = Group(ResourceLimits())\n"
        "print(os.getpid(), flush=True)\nos.kill(os.getpid(), 9)"
    )
    pid = subprocess.run([sys.executable, "-c", line], capture_output=True, check=False, text=True).stdout.strip()
    left = set(Path("/sys/fs/cgroup").glob(f"**/{PREFIX}{pid}-*"))

    Group(ResourceLimits()).close()

    assert left
    assert not any(each.exists() for each in left)


def test_the_model_is_told_which_limit_it_was(tmp_path: Path) -> None:
    shell = Shell(
        tmp_path, choose("none", os.environ, limits=ResourceLimits(disk=MB)), 60, tmp_path / "logs", None, lambda: None
    )

    result = shell(ShellArguments(command="for i in $(seq 99); do head -c 1000000 /dev/zero > f$i; sleep 0.1; done"))

    assert result.note.startswith("(ended by a limit of this drone: the workspace, with home and /tmp, holds ")
    assert (result.execution, result.is_error) == ("broken_off", True)


# Where no cgroup can be made


@contextmanager
def running(code: str) -> Iterator[subprocess.Popen[bytes]]:
    """Python code in a session of its own, which has said that it is ready."""
    process = subprocess.Popen(
        [sys.executable, "-c", f"import subprocess, sys, time\n{code}\nprint(flush=True)\ntime.sleep(60)"],
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    with process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield process
        finally:
            os.killpg(process.pid, 9)


def told(usage: UsageWatch, seconds: float = 10) -> str:
    return wait_until(usage, seconds=seconds)


def test_the_memory_of_a_command_and_its_children_is_added_up(tmp_path: Path) -> None:
    children = (
        "each = [subprocess.Popen([sys.executable, '-c', 'import time; x = bytearray(60 << 20); print(flush=True); "
        "time.sleep(60)'], stdout=subprocess.PIPE) for _ in range(3)]\n[one.stdout.readline() for one in each]"
    )
    with running(children) as command:
        fits, over = (
            UsageWatch(ResourceLimits(memory=size * MB), command.pid, [tmp_path], processes=True)
            for size in (1000, 150)
        )
        assert "of 150.0MiB of memory allowed" in told(over)
        assert fits() == ""


def test_memory_that_processes_share_counts_once(tmp_path: Path) -> None:
    """A forked process resembles its parent, byte for byte."""
    forked = "import os\nx = bytearray(60 << 20)\nfor _ in range(4):\n    if os.fork() == 0: time.sleep(60)"
    with running(forked) as command:
        usage = UsageWatch(ResourceLimits(memory=200 * MB), command.pid, [tmp_path], processes=True)
        end = time.monotonic() + 2
        while time.monotonic() < end:
            assert usage() == ""
            time.sleep(0.05)


def test_the_processes_of_a_command_are_counted(tmp_path: Path) -> None:
    with running("[subprocess.Popen(['sleep', '60']) for _ in range(30)]") as command:
        fits, over = (
            UsageWatch(ResourceLimits(processes=most), command.pid, [tmp_path], processes=True) for most in (40, 20)
        )
        assert told(over) == "it had 30 processes of 20 allowed"
        assert fits() == ""


@pytest.mark.skipif(not is_root(), reason="only root can take another account")
def test_a_user_without_cgroups_has_only_so_many_processes_in_a_sandbox() -> None:
    needs("bwrap")
    spawn = ["bash", "-c", "for i in $(seq 200); do sleep 2 & done 2>&1 | grep -c Resource; echo after"]
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        Path(directory).chmod(0o777)
        line = Bubblewrap(os.environ).line(at_most(60, spawn), workspace=Path(directory))
        done = as_nobody(line)
    refused, after = done.stdout.split()
    assert (int(refused) > 0, after) == (True, b"after"), done.stderr


def test_only_roots_processes_are_left_to_the_watch() -> None:
    counted = Resources(ResourceLimits(processes=60)).counted(["true"], alone=True)

    assert counted == (["true"] if is_root() else at_most(60, ["true"]))


# The disk of the machine


def test_a_command_fills_no_more_than_half_of_the_free_disk(small_disk: Disk) -> None:
    work, scratch = small_disk.path / "work", small_disk.path / "scratch"
    work.mkdir()
    sandbox = choose("none", os.environ, limits=ResourceLimits()).for_session(scratch=scratch)
    fill = f"for i in $(seq {2 * MEGABYTES}); do head -c 1000000 /dev/zero > f$i; sleep 0.05; done; echo filled"

    filling = sandbox.run(fill, workspace=work, timeout=60)
    left = small_disk.free
    removing = sandbox.run("sleep 1.5; rm f*; echo removed", workspace=work, timeout=60)

    assert "on the drone's disk" in filling.over
    assert left > 10 * MB
    assert removing.output == "removed\n"


def test_a_command_is_not_blamed_for_a_disk_that_others_fill(small_disk: Disk) -> None:
    work, scratch = small_disk.path / "work", small_disk.path / "scratch"
    work.mkdir()
    sandbox = choose("none", os.environ, limits=ResourceLimits()).for_session(scratch=scratch)

    result = sandbox.run(
        "echo begun; sleep 4; echo ended", workspace=work, timeout=60, on_output=lambda _: small_disk.fill()
    )

    assert (result.return_code, result.over, small_disk.free) == (0, "", 0)
