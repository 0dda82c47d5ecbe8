"""A command ends, and with it everything that it started, however far that tried to get away."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import psutil
import pytest

from drone.processes.ending import end_marked
from drone.processes.tree import MARK
from drone.sandbox import CommandSpec, Sandbox
from shared.errors import Preempted
from shared.names import new_id
from tests.support import needs, wait_until
from tests.support.command_time import LONG, time_is_up_when
from tests.support.sandboxes import NOBODY, processes_with, raise_when, sandbox_of, shell

pytestmark = pytest.mark.hostile
GET_AWAY = [
    "sleep {} &",
    "nohup sleep {} >/dev/null 2>&1 &",
    "setsid sleep {} &",
    "(setsid sleep {} &) &",
    "(env -i setsid sleep {} >/dev/null 2>&1 &)",
    "setsid sh -c 'trap \"\" TERM HUP INT; sleep {}; sleep {}' &",
    'python3 -c \'import os; os.fork() or (os.setsid(), os.fork())[1] or os.execlp("sleep", "sleep", "{}")\' &',
]
"""Ways to leave process group, session, parent and environment; each sleeps for a time that is its name."""


UNTIL_IT_RUNS = "until grep -qszx -e '^{}$' /proc/[0-9]*/cmdline; do sleep 0.02; done"
"""A line that ends when a process has this argument, which is not the line's own."""


def number() -> str:
    """A time to sleep that no other process has."""
    return f"{1000 + int(new_id(), 16) % 1_000_000}.5"


def running() -> Counter[str]:
    """How many live processes have each word among their arguments."""
    live = (each.info for each in psutil.process_iter(["cmdline", "status"]))
    return Counter(
        word for info in live if info["status"] != psutil.STATUS_ZOMBIE for word in set(info["cmdline"] or ())
    )


def test_what_a_command_leaves_behind_ends_with_it(sandbox: Sandbox, tmp_path: Path) -> None:
    names = {number(): way for way in GET_AWAY}
    begun = [f"{way.format(name, name)}\n{UNTIL_IT_RUNS.format(name)}" for name, way in names.items()]

    result = shell(sandbox, tmp_path, "\n".join([*begun, "echo done"]))

    assert (result.return_code, result.output) == (0, "done\n")
    wait_until(lambda: names.keys().isdisjoint(running()))


def test_a_command_that_takes_too_long_ends_with_all_that_it_started(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, part = {number(): way for way in GET_AWAY}, number()
    missing: list[str] = []

    def all_run() -> bool:
        found = running()
        missing[:] = [way for name, way in names.items() if not found[name]]
        return not missing and found[part] == 12

    time_is_up_when(monkeypatch, all_run)
    begun = [way.format(name, name) for name, way in names.items()]
    # Several at once: whichever process is told first, none may see another's end and begin its next part.
    parts = [f"(sleep {part}; touch after-{at}) &" for at in range(12)]

    result = shell(sandbox, tmp_path, "\n".join(["echo begun", *begun, *parts, "sleep 1000"]), timeout=LONG)

    assert (missing, result.output) == ([], "begun\n")
    assert (result.timed_out, result.return_code) == (True, None)
    assert (result.survivors, {*names, part} & running().keys()) == (0, set())
    assert result.found == result.ended >= len(names) + 12
    assert list(tmp_path.glob("after-*")) == []


def test_a_command_that_kills_its_own_holder_leaves_nothing_either(sandbox: Sandbox, tmp_path: Path) -> None:
    name, this = number(), psutil.Process()
    shell(sandbox, tmp_path, "true")  # the first command of a run opens its network, which lasts
    before = (this.num_threads(), this.num_fds(), this.children())

    shell(sandbox, tmp_path, f"setsid sleep {name} & {UNTIL_IT_RUNS.format(name)}; kill -9 $PPID")

    wait_until(lambda: not processes_with(name))
    wait_until(lambda: (this.num_threads(), this.num_fds(), this.children()) == before)


def test_a_fork_bomb_ends_at_its_time_limit(walled: Sandbox, tmp_path: Path) -> None:
    bomb = "for i in $(seq 40); do (while :; do (sleep 0.05); done) & done; sleep 100"

    result = shell(walled, tmp_path, bomb, timeout=0.7)

    assert result.timed_out
    assert result.survivors == 0


def test_a_check_that_raises_ends_the_command_keeps_its_output_and_lets_every_process_clean_up(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    name = number()
    trap = "trap 'sleep 0.3; echo cleaned > cleaned; exit' TERM; touch ready; while :; do sleep 0.1; done"
    line = f'echo begun; bash -c "{trap}" & setsid sleep {name} & sleep {name}'
    check = raise_when(lambda: (tmp_path / "ready").exists() and len(processes_with(name)) == 2, Preempted())

    with pytest.raises(Preempted):
        sandbox.run(CommandSpec(line, workspace=tmp_path, timeout=LONG, check=check))

    assert (tmp_path / "cleaned").read_text() == "cleaned\n", "not only the main process may"
    assert sandbox.tally.broken_off is not None
    assert sandbox.tally.broken_off.output.startswith("begun\n")
    assert (sandbox.tally.counts.survivors, processes_with(name)) == (0, [])
    assert sandbox.tally.counts.found == sandbox.tally.counts.ended >= 3


def test_a_callback_that_raises_ends_the_command_too_and_leftovers_of_an_older_boot_are_found_by_their_mark(
    tmp_path: Path,
) -> None:
    owner, name = new_id(), number()

    def on_output(text: str) -> None:
        raise ValueError(text)

    with pytest.raises(ValueError, match="begun"):
        sandbox_of("none").run(
            CommandSpec(f"echo begun; sleep {name}", workspace=tmp_path, timeout=LONG, on_output=on_output)
        )
    assert processes_with(name) == []

    leftover = subprocess.Popen(["sleep", name], env={MARK: f"{owner}.abc", "PATH": os.environ["PATH"]})
    ended = end_marked(owner)
    assert (ended.found, ended.ended, ended.survivors) == (1, 1, 0)
    assert leftover.wait(60) == -signal.SIGKILL
    with pytest.raises(ValueError, match="mark"):
        end_marked("")


def test_commands_die_with_the_process_that_ran_them(sandbox: Sandbox, tmp_path: Path) -> None:
    name = number()
    script = (
        "import os, sys; from pathlib import Path; from drone.sandbox import CommandSpec, choose; "
        "choose(sys.argv[1], os.environ).run(CommandSpec(sys.argv[2], workspace=Path(sys.argv[3]), timeout=0))"
    )
    line = f"setsid sleep {name} & sleep {name}"
    drone = subprocess.Popen([sys.executable, "-c", script, sandbox.kind, line, tmp_path])
    wait_until(lambda: len(processes_with(name)) == 2)

    os.kill(drone.pid, signal.SIGKILL)
    drone.wait()

    wait_until(lambda: not processes_with(name))


def test_a_command_ends_although_a_process_of_another_user_that_it_left_cannot_be_killed(tmp_path: Path) -> None:
    needs("setpriv")
    if os.geteuid() != 0:
        pytest.skip("processes of another user can be started by root alone")
    name, killed = number(), number()
    script = (
        "import os, sys; from pathlib import Path; from drone.sandbox import CommandSpec, choose; "
        "result = choose('none', os.environ).run(CommandSpec(sys.argv[1], workspace=Path(sys.argv[2]), timeout=0)); "
        "print(result.return_code)"
    )
    left = f"setpriv --reuid {NOBODY} sh -c 'echo; exec sleep {name}' > begun & setsid sleep {killed} &"
    line = f"{left} until [ -s begun ]; do sleep 0.02; done; exit 3"
    powerless = ["setpriv", "--bounding-set", "-kill", sys.executable, "-c", script, line, str(tmp_path)]
    try:
        ended = subprocess.run(powerless, check=True, capture_output=True, timeout=60)
        assert (ended.stdout, processes_with(killed), len(processes_with(name))) == (b"3\n", [], 1)
    finally:
        for pid in processes_with(name):
            os.kill(pid, signal.SIGKILL)
