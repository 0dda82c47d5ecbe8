"""Ending process trees: nothing below is left, whichever way it tried to get away, and the receipt says so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import psutil
import pytest

from drone.runs.shutdown import end_process, start_time
from tests.support import wait_until

ESCAPING = """
import json, subprocess, sys, time
from drone.runs.shutdown import become_reaper, end_below
from shared.clock import SystemClock
become_reaper()
subprocess.Popen(["sh", "-c", sys.argv[1]])
time.sleep(1.0)
print(end_below(SystemClock(), at_once=len(sys.argv) > 2).model_dump_json())
"""


def receipt(command: str, *more: str) -> dict[str, int]:
    """Run a command below a reaper in a process of its own, and let that end everything."""
    arguments = [sys.executable, "-c", ESCAPING, command, *more]
    return dict(json.loads(subprocess.check_output(arguments, timeout=30)))


@pytest.mark.parametrize(
    "command",
    [
        "sleep 301",
        "setsid sleep 302 & wait",
        "nohup sleep 303 >/dev/null 2>&1 & exit",
        "(setsid sh -c '(sleep 304 &) & exit' &) ; exit",
        "trap '' TERM; sleep 305 & wait; wait; sleep 305",
    ],
)
def test_whatever_a_command_started_is_found_and_ended(command: str) -> None:
    told = receipt(command)
    assert told["found"] >= 1
    assert told["survivors"] == 0
    assert told["ended"] == told["found"]


def test_nothing_to_end_is_a_receipt_of_zeros() -> None:
    told = receipt("true")
    assert (told["found"], told["ended"], told["survivors"]) == (0, 0, 0)


def test_at_once_does_not_ask_first() -> None:
    began = time.monotonic()
    assert receipt("trap '' TERM; sleep 306; sleep 306", "now")["survivors"] == 0
    assert time.monotonic() - began < 10


def test_a_process_of_an_older_boot_is_ended_with_its_session() -> None:
    old = subprocess.Popen(["sh", "-c", "sleep 307 & wait"], start_new_session=True)
    wait_until(lambda: psutil.Process(old.pid).children())
    child = psutil.Process(old.pid).children()[0]
    assert end_process(old.pid, start_time(old.pid))
    old.wait(5)
    wait_until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)


def test_a_pid_that_belongs_to_another_by_now_is_left_alone() -> None:
    assert not end_process(os.getpid(), (start_time(os.getpid()) or 0.0) - 1000)
    assert not end_process(os.getpid(), None)
