"""Ending process trees: nothing below is left, whichever way it tried to get away, and the receipt says so."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from drone.processes.ending import TERM_SECONDS, end_all, end_process
from drone.processes.tree import start_time, this_machine_boot
from tests.support import wait_until

ESCAPING = """
import dataclasses, json, subprocess, sys, time
import psutil
from drone.processes.ending import end_all
from drone.processes.reaping import become_reaper
become_reaper()
main = subprocess.Popen(["sh", "-c", sys.argv[1]])
words, states = [], []
while not eval(sys.argv[2]):
    time.sleep(0.02)
    words, states = [], []
    for each in psutil.Process().children(recursive=True):
        try:
            states += [each.status()]
            words += each.cmdline()
        except psutil.NoSuchProcess:
            pass
print(json.dumps(dataclasses.asdict(end_all(at_once=len(sys.argv) > 3))))
"""


def receipt(command: str, begun: str, *more: str) -> dict[str, int]:
    """Run a command below a reaper in a process of its own, and let that end everything.

    It does so when `begun` is true, an expression of `main`, the command, and of all below the reaper: the `words` of
    their lines and their `states`.
    """
    arguments = [sys.executable, "-c", ESCAPING, command, begun, *more]
    return dict(json.loads(subprocess.check_output(arguments, timeout=120)))


def test_whatever_a_command_started_is_found_and_ended() -> None:
    fork = f"{sys.executable} -c 'import os, time; os.fork() or os._exit(0); time.sleep(311)'"
    command = f"setsid sleep 302 & nohup sleep 303 >/dev/null 2>&1 & (setsid sh -c '(sleep 304 &) & exit' &) ; {fork}"
    told = receipt(command, "{'302', '303', '304'} <= {*words} and 'zombie' in states")
    assert told["found"] >= 4
    assert (told["survivors"], told["ended"]) == (0, told["found"])


def test_at_once_does_not_ask_first(tmp_path: Path) -> None:
    line = f"trap 'touch {tmp_path}/asked' TERM; sleep 306 & wait; wait"
    assert receipt(line, "'306' in words", "now")["survivors"] == 0
    assert not (tmp_path / "asked").exists()


def test_a_process_of_an_older_boot_is_ended_with_its_session() -> None:
    old = subprocess.Popen(["sh", "-c", "sleep 307 & wait"], start_new_session=True)
    wait_until(lambda: psutil.Process(old.pid).children())
    child = psutil.Process(old.pid).children()[0]
    ended = end_process(old.pid, start_time(old.pid), this_machine_boot())
    assert (ended.found, ended.ended, ended.survivors) == (2, 2, 0)
    old.wait(60)
    wait_until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process that has nothing to do with any run."""
    with subprocess.Popen(["sleep", "308"]) as process:
        yield process
        assert process.poll() is None
        process.kill()


def test_a_pid_that_belongs_to_another_by_now_is_left_alone(bystander: subprocess.Popen[bytes]) -> None:
    other = (start_time(bystander.pid) or 0.0) - 1000
    assert end_process(bystander.pid, other, this_machine_boot()).found == 0
    assert end_process(bystander.pid, None, this_machine_boot()).found == 0
    before = "5d1f3a52-0000-4000-8000-000000000000"
    assert end_process(bystander.pid, start_time(bystander.pid), before).found == 0


def test_a_stopped_process_is_asked_too(tmp_path: Path) -> None:
    line = f"sleep 310 & trap 'touch {tmp_path}/asked; exit' TERM; kill -STOP $!; kill -STOP $$; wait"
    told = receipt(line, "states == ['stopped', 'stopped']")
    assert (told["ended"], told["survivors"]) == (2, 0)
    assert (tmp_path / "asked").exists()


def test_the_time_to_clean_up_counts_from_when_the_run_was_asked_first(tmp_path: Path) -> None:
    long_ago = time.monotonic() - TERM_SECONDS
    with subprocess.Popen(["sh", "-c", f"trap 'touch {tmp_path}/asked' TERM; sleep 312 & wait; wait"]) as stubborn:
        wait_until(lambda: psutil.Process(stubborn.pid).children())
        others = [child.pid for child in psutil.Process().children() if child.pid != stubborn.pid]
        told = end_all(spare=others, asked_at=lambda: long_ago)
    assert (told.found, told.survivors) == (2, 0)
    # Its time was up: it was killed, and not asked again.
    assert not (tmp_path / "asked").exists()
