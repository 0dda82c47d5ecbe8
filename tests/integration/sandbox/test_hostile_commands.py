"""Commands that print without end, never end, or try to get away: the drone's process stays small, and nothing is left.

Each runs in every sandbox through the `shell` tool of a process of its own, whose memory the kernel measures.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from drone.sandbox import Sandbox
from shared.names import new_id
from shared.terminal.output import say
from tests.support import wait_until
from tests.support.hostile import Measured, run_hostile
from tests.support.sandboxes import processes_with

pytestmark = [pytest.mark.hostile, pytest.mark.apart]
MOST_MB = 64
"""Over idle, whatever a command does."""
GET_AWAY = """
setsid sleep {0} &
nohup sleep {0} >/dev/null 2>&1 &
(setsid sleep {0} &) &
(env -i setsid sleep {0} >/dev/null 2>&1 </dev/null &)
setsid sh -c 'trap "" TERM HUP INT QUIT; sleep {0}; sleep {0}' &
python3 -c "
import os, sys
if os.fork(): sys.exit()
os.setsid()
if os.fork(): sys.exit()
os.chdir('/')
os.closerange(0, 3)
os.execvpe('sleep', ['sleep', '{0}'], {{'PATH': os.environ['PATH']}})
"
"""
"""Ways to leave process group, session, parent, environment and output; each sleeps for a time that is its name."""
WAITING = """
cat
read line || echo nothing to read
python3 -c 'input()' 2>&1 | tail -1
(read line < /dev/tty) 2>/dev/null || echo no terminal
printf 'protocol=https\\nhost=example.org\\n' | git credential fill 2>/dev/null || echo refused
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    path = tmp_path / "work"
    path.mkdir()
    return path


@pytest.fixture
def name() -> str:
    """A time to sleep that no other process has."""
    return f"{1000 + int(new_id(), 16) % 1_000_000}.25"


def run(sandbox: Sandbox, workspace: Path, command: str, seconds: float = 60) -> Measured:
    measured = run_hostile(sandbox.kind, workspace, command, seconds)
    say(f"{sandbox.kind}: {measured.over_idle_mb:.1f} MB over idle, {measured.seconds:.1f} s, {command[:60]!r}")
    assert measured.over_idle_mb <= MOST_MB
    return measured


def test_1_gb_of_output_is_counted_shown_in_part_and_costs_little_memory(sandbox: Sandbox, workspace: Path) -> None:
    measured = run(sandbox, workspace, "printf first; head -c 1000000000 /dev/zero | tr '\\0' x; printf last", 90)

    assert (measured.return_code, measured.is_error) == (0, False)
    assert measured.output_bytes == 1_000_000_009
    assert measured.output.startswith("firstxxx")
    assert "xxxlast\n(return code 0)\n(the middle is not shown" in measured.output
    assert "[… 999,990,009 characters elided …]" in measured.output
    assert len(measured.output) < 10_200
    assert 50_000_000 < measured.log_bytes < 53_000_000
    assert measured.live_characters < 210_000


def test_lines_without_end_stop_at_the_time_limit(sandbox: Sandbox, workspace: Path) -> None:
    measured = run(sandbox, workspace, "yes drone", 1.5)

    assert measured.is_error
    assert measured.return_code is None
    assert measured.output.startswith("drone\ndrone\n")
    # The hint about the middle of the output is the last line.
    assert measured.output.splitlines()[-2].startswith("(ended after 1.5 s")


def test_commands_that_wait_for_somebody_to_type_get_nobody(sandbox: Sandbox, workspace: Path) -> None:
    measured = run(sandbox, workspace, WAITING)

    lines = measured.output.splitlines()
    assert (lines[0], lines[1].partition(":")[0]) == ("nothing to read", "EOFError")
    assert lines[2:] == ["no terminal", "refused", "(return code 0)"]


def test_what_forks_itself_away_ends_with_its_command(sandbox: Sandbox, workspace: Path, name: str) -> None:
    count = f"grep -laF {name} /proc/[0-9]*/cmdline 2>/dev/null | wc -l > count"

    measured = run(sandbox, workspace, f"{GET_AWAY.format(name)}\nsleep 0.5; {count}; echo done")

    assert measured.output == "done\n(return code 0)"
    assert int((workspace / "count").read_text()) >= 6
    wait_until(lambda: not processes_with(name))


def test_bytes_that_are_no_text_arrive_as_text_that_can_be_stored(sandbox: Sandbox, workspace: Path) -> None:
    lines = (r"a\000b\377\376c\300\257", r"\355\240\200", r"\360\237\232", r"\033[31mred\033[0m\r\007")

    measured = run(sandbox, workspace, "; ".join(f"printf '{line}\\n'" for line in lines))

    shown = ["a␀b\ufffd\ufffdc\ufffd\ufffd", "\ufffd\ufffd\ufffd", "\ufffd", "\x1b[31mred\x1b[0m\r\x07"]
    assert measured.output.split("\n") == [*shown, "(return code 0)"]
    assert json.loads(json.dumps(measured.output)).encode()
