"""What commands may use of the machine: each limit ends or refuses what goes over it, and is named."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from glob import glob
from itertools import count
from pathlib import Path

import pytest

from drone.sandbox import CommandResult, CommandSpec, Sandbox, account, choose
from drone.sandbox.account import UNPRIVILEGED, is_root
from drone.sandbox.bubblewrap import Bubblewrap
from drone.sandbox.opened import close_all
from drone.sandbox.resources import ResourceLimits, Resources, at_most, cgroups
from drone.sandbox.resources import usage as usage_module
from drone.sandbox.resources.cgroups import PREFIX, Group
from drone.sandbox.resources.usage import UsageWatch
from drone.tools.arguments import ShellArguments
from drone.tools.shell import Shell
from shared.errors import FleetFault
from tests.support import needs, wait_until
from tests.support.command_time import LONG
from tests.support.disks import MEGABYTES, Disk
from tests.support.sandboxes import as_nobody

pytestmark = pytest.mark.usefixtures("sandboxes_closed")
MB = 1024 * 1024
LOOKED_AT = "touch ~/waiting; while [ -e ~/waiting ]; do sleep 0.02; done"
"""A line that ends when the use of the machine was looked at several times: see `looking`."""
SPAWN = """
import os
reading, writing = os.pipe()
try:
    for _ in range(300):
        if os.fork() == 0:
            os.close(writing)
            os.read(reading, 1)
            os._exit(0)
except OSError:
    print("refused")
print("after")
"""
"""Starts 300 processes that stay until their parent ends."""
Run = Callable[[str, ResourceLimits], CommandResult]


def looking(scratch: Path, begun: Callable[[], bool] = lambda: True) -> Callable[[], None]:
    """A command's check, which lets LOOKED_AT end in its tenth round after `begun`.

    With `DISK_S` at 0, each round comes with a look at the disk.
    """
    rounds = count(1)

    def check() -> None:
        waiting = scratch / "home" / "waiting"
        if waiting.exists() and begun() and next(rounds) == 10:
            waiting.unlink()

    return check


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is looked at in every round."""
    monkeypatch.setattr(usage_module, "DISK_S", 0.0)


@pytest.fixture
def run(sandbox: Sandbox, tmp_path: Path, often: None) -> Run:
    """Runs one line in a session of each sandbox, with these limits."""
    workspace, scratch = tmp_path / "work", tmp_path / "scratch"
    workspace.mkdir()

    def run(line: str, limits: ResourceLimits) -> CommandResult:
        limited = choose(sandbox.kind, os.environ, limits=limits, trial=False).for_session(scratch=scratch)
        return limited.run(CommandSpec(line, workspace=workspace, timeout=LONG, check=looking(scratch)))

    return run


def needs_cgroup(bound: str) -> None:
    group = Group(ResourceLimits(memory=MB, processes=1, cpus=1))
    group.close()
    if bound not in group.bounds:
        pytest.skip(f"no cgroup that bounds {bound} can be made here")


def test_all_processes_of_a_run_share_its_memory(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_cgroup("memory")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    hold = (
        'python3 -c \'import os, time; x = bytearray(80 << 20); open("up$i", "w")\n'
        'while not os.path.exists("end"): time.sleep(0.02)\nprint(len(x))\''
    ).replace("$i", "'$i'")
    # Each has its memory, or was ended, before the next one begins.
    started = f"{hold} & pid=$!; until [ -e up$i ] || ! kill -0 $pid 2>/dev/null; do sleep 0.02; done"

    together = run(
        f"for i in 1 2 3 4; do {started}; done; touch end; wait; echo after", ResourceLimits(memory=200 * MB)
    )
    one = run(f"i=5; {hold}", ResourceLimits(memory=200 * MB))
    close_all()

    assert together.output.count("83886080") in {1, 2}
    assert "after" in together.output
    assert "200.0MiB of memory" in " ".join(together.reached)
    assert (one.output.strip(), one.reached) == ("83886080", ())
    assert list((tmp_path / "here").iterdir()) == [], "nothing is left where the drone was started"


def test_a_run_has_only_so_many_processes(run: Run) -> None:
    needs_cgroup("processes")
    limits = ResourceLimits(processes=60, file_size=MB)

    result = run(f"python3 -c '{SPAWN}'", limits)

    assert result.output == "refused\nafter\n"
    assert "60 processes" in " ".join(result.reached)
    # Nor may a file be larger than its limit.
    large = run("head -c 3000000 /dev/zero > big; echo $?; stat -c %s big", limits)
    assert large.output.splitlines()[-2:] == ["153", str(MB)]


def test_processor_time_is_shared_out_and_a_command_may_remove_its_workspace(tmp_path: Path) -> None:
    needs_cgroup("cpus")
    line = (
        "python3 -c '\nimport time\nend, began = time.time() + 2, time.process_time()\n"
        "while time.time() < end: pass\nprint(time.process_time() - began)'"
    )
    (tmp_path / "work").mkdir()
    sandbox = choose("none", os.environ, limits=ResourceLimits(cpus=0.2)).for_session(scratch=tmp_path / "scratch")

    spent = sandbox.run(CommandSpec(line, workspace=tmp_path / "work", timeout=LONG)).output
    removed = sandbox.run(CommandSpec('rm -rf "$PWD"; sleep 0.2; echo end', workspace=tmp_path / "work", timeout=LONG))

    assert float(spent) < 0.8
    assert (removed.return_code, removed.output) == (0, "end\n")


def test_a_command_that_fills_the_disk_is_ended_and_what_removes_files_is_not(run: Run) -> None:
    limits = ResourceLimits(disk=5 * MB)
    places = '. "$HOME" "${TMPDIR:-/tmp}"'
    # Only all three together are above the limit, and that not yet when the disk is looked at first.
    fill = f"{LOOKED_AT}; for place in {places}; do head -c 2000000 /dev/zero > $place/f; done; sleep 1000"

    filling = run(fill, limits)
    removing = run(f"{LOOKED_AT}; for place in {places}; do rm $place/f; done; echo removed", limits)

    assert (filling.return_code, "of 5.0MiB allowed" in filling.over) == (None, True)
    assert removing.output == "removed\n"


def test_a_group_is_kept_while_commands_run_and_gone_after_them() -> None:
    needs_cgroup("memory")
    resources = Resources(ResourceLimits())
    command = resources.spawn(lambda: subprocess.Popen(["sh", "-c", f"{resources.entering()}; exec sleep 1000"]))
    try:
        wait_until(lambda: any(str(command.pid) in (each / "cgroup.procs").read_text().split() for each in groups()))
        close_all()
        kept, running = groups(), command.poll() is None
    finally:
        command.kill()
        command.wait()

    close_all()

    assert (len(kept) >= 1, running) == (True, True)
    assert not groups()


def groups(pid: int | str | None = None) -> set[Path]:
    """Those of a process, of this one unless another is named."""
    # pathlib's own search fails when the groups of other tests, which run beside this one, are removed meanwhile.
    return set(map(Path, glob(f"/sys/fs/cgroup/**/{PREFIX}{pid or os.getpid()}-*", recursive=True)))  # noqa: PTH207


def test_what_a_killed_run_left_behind_is_removed_by_the_next() -> None:
    needs_cgroup("memory")
    line = (
        "import os\nfrom drone.sandbox.resources.cgroups import Group\n"
        "from drone.sandbox.resources import ResourceLimits\ngroup = Group(ResourceLimits())\n"
        "print(os.getpid(), flush=True)\nos.kill(os.getpid(), 9)"
    )
    pid = subprocess.run([sys.executable, "-c", line], capture_output=True, check=False, text=True).stdout.strip()
    left = groups(pid)

    Group(ResourceLimits()).close()

    assert left
    assert not any(each.exists() for each in left)


def test_the_model_is_told_which_limit_it_was(tmp_path: Path) -> None:
    shell = Shell(
        tmp_path,
        choose("none", os.environ, limits=ResourceLimits(disk=MB)),
        LONG,
        tmp_path / "logs",
        None,
        lambda: None,
    )

    result = shell(
        ShellArguments(command="for i in $(seq 99); do head -c 1000000 /dev/zero > f$i; sleep 0.1; done; sleep 1000")
    )

    assert result.note.startswith("(ended by a limit of this drone: the workspace, with home and /tmp, holds ")
    assert (result.execution, result.is_error) == ("broken_off", True)


# Where no cgroup can be made


@contextmanager
def running(code: str) -> Iterator[subprocess.Popen[bytes]]:
    """Python code in a session of its own, which has said that it is ready."""
    process = subprocess.Popen(
        [sys.executable, "-c", f"import subprocess, sys, time\n{code}\nprint(flush=True)\ntime.sleep(1000)"],
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


def test_the_memory_and_the_processes_of_a_command_and_its_children_are_added_up(tmp_path: Path) -> None:
    hold = "import time; x = bytearray(60 << 20); print(flush=True); time.sleep(1000)"
    children = (
        f"each = [subprocess.Popen([sys.executable, '-c', '{hold}'], stdout=subprocess.PIPE) for _ in range(3)]\n"
        "[one.stdout.readline() for one in each]"
    )
    forked = "import os\nx = bytearray(60 << 20)\nfor _ in range(4):\n    if os.fork() == 0: time.sleep(1000)"
    many = "[subprocess.Popen(['sleep', '1000']) for _ in range(30)]"
    cases = (
        (children, ResourceLimits(memory=1000 * MB), ResourceLimits(memory=150 * MB), "of 150.0MiB of memory allowed"),
        # Memory that processes share counts once.
        (forked, ResourceLimits(memory=200 * MB), ResourceLimits(memory=40 * MB), "of 40.0MiB of memory allowed"),
        (many, ResourceLimits(processes=40), ResourceLimits(processes=20), "it had 30 processes of 20 allowed"),
    )
    for code, enough, less, said in cases:
        with running(code) as command:
            fits, over = (UsageWatch(each, command.pid, [tmp_path], processes=True) for each in (enough, less))
            assert (said, said in wait_until(over), fits()) == (said, True, "")


@pytest.mark.skipif(not is_root(), reason="only root can take another account")
def test_a_user_without_cgroups_has_only_so_many_processes_in_a_sandbox() -> None:
    needs("bwrap")
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        Path(directory).chmod(0o777)
        line = Bubblewrap(os.environ).line(at_most(60, ["python3", "-c", SPAWN]), workspace=Path(directory))
        done = as_nobody(line)
    assert done.stdout == b"refused\nafter\n", done.stderr


@pytest.fixture
def no_cgroups(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine where no cgroup can be made."""
    monkeypatch.setattr(cgroups, "_parents", lambda: iter(()))


@pytest.mark.usefixtures("no_cgroups")
def test_the_commands_of_a_drone_of_root_have_only_so_many_processes_without_cgroups(
    bwrap: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del bwrap  # it works here
    # The kernel counts what an account has on the whole machine, and other tests run commands as well.
    monkeypatch.setattr(account, "UNPRIVILEGED", 60_000 + os.getpid() % 5_000)
    (tmp_path / "work").mkdir()
    for limits, said in ((ResourceLimits(processes=60), "refused\nafter\n"), (ResourceLimits(), "after\n")):
        session = choose("bwrap", os.environ, limits=limits, trial=False).for_session(scratch=tmp_path / "scratch")
        done = session.run(CommandSpec(f"python3 -c '{SPAWN}'", workspace=tmp_path / "work", timeout=LONG))
        assert (done.output, done.return_code) == (said, 0), limits


@pytest.mark.usefixtures("no_cgroups")
def test_without_a_cgroup_a_limit_on_processor_time_is_refused_and_no_other_one() -> None:
    Resources(ResourceLimits(memory=MB, processes=10, disk=MB)).entering()
    with pytest.raises(FleetFault) as refused:
        Resources(ResourceLimits(cpus=1)).entering()
    assert refused.value.code == "E-SANDBOX"


@pytest.mark.usefixtures("no_cgroups")
def test_only_the_processes_of_roots_own_commands_are_left_to_the_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    resources = Resources(ResourceLimits(processes=60))
    counted = {user: resources.counted(["true"], user, alone=True) for user in (0, 1000, UNPRIVILEGED)}
    assert counted == {0: ["true"], 1000: at_most(60, ["true"]), UNPRIVILEGED: at_most(60, ["true"])}
    others = [int(resources.counted(["true"], user, alone=False)[1].removeprefix("--nproc=")) for user in (1000,) * 2]
    assert others[0] == others[1] >= 60
    # A limit of the drone's own cannot be raised: a command that tried would not start.
    monkeypatch.setattr(resource, "getrlimit", lambda _: (10, 40))
    assert at_most(60, ["true"])[1] == "--nproc=40"


# The disk of the machine


@pytest.mark.usefixtures("often")
def test_a_command_fills_no_more_than_half_of_the_free_disk(small_disk: Disk) -> None:
    work, scratch = small_disk.path / "work", small_disk.path / "scratch"
    work.mkdir()
    sandbox = choose("none", os.environ, limits=ResourceLimits()).for_session(scratch=scratch)
    fill = f"for i in $(seq {MEGABYTES * 2 // 3}); do head -c 1000000 /dev/zero > f$i; done; sleep 1000"
    remove = f"{LOOKED_AT}; rm f*; echo removed"

    filling = sandbox.run(CommandSpec(fill, workspace=work, timeout=LONG))
    left = small_disk.free
    removing = sandbox.run(CommandSpec(remove, workspace=work, timeout=LONG, check=looking(scratch)))

    assert "on the drone's disk" in filling.over
    assert left > 10 * MB
    assert removing.output == "removed\n"


@pytest.mark.usefixtures("often")
def test_a_command_is_not_blamed_for_a_disk_that_others_fill(small_disk: Disk) -> None:
    work, scratch = small_disk.path / "work", small_disk.path / "scratch"
    work.mkdir()
    sandbox = choose("none", os.environ, limits=ResourceLimits()).for_session(scratch=scratch)

    result = sandbox.run(
        CommandSpec(
            f"echo begun; {LOOKED_AT}; echo ended",
            workspace=work,
            timeout=LONG,
            on_output=lambda _: small_disk.fill(),
            check=looking(scratch, lambda: small_disk.free == 0),
        )
    )

    assert (result.return_code, result.over, small_disk.free) == (0, "", 0)
