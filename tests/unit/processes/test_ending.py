"""Ending process trees: nothing below is left, whichever way it tried to get away, and the receipt says so."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator

import psutil
import pytest

from drone.processes.ending import TERM_SECONDS, end_all, end_process
from drone.processes.tree import start_time, this_machine_boot
from tests.support import wait_until

ESCAPING = """
import dataclasses, json, subprocess, sys, time
from drone.processes.ending import end_all
from drone.processes.reaping import become_reaper
become_reaper()
subprocess.Popen(["sh", "-c", sys.argv[1]])
time.sleep(1.0)
print(json.dumps(dataclasses.asdict(end_all(at_once=len(sys.argv) > 2))))
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
    ended = end_process(old.pid, start_time(old.pid), this_machine_boot())
    assert (ended.found, ended.ended, ended.survivors) == (2, 2, 0)
    old.wait(5)
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


def test_a_process_with_pid_and_start_time_of_one_before_a_reboot_is_left_alone(
    bystander: subprocess.Popen[bytes],
) -> None:
    before = "5d1f3a52-0000-4000-8000-000000000000"
    assert end_process(bystander.pid, start_time(bystander.pid), before).found == 0


def test_what_an_older_drone_wrote_without_the_machines_boot_is_gone_by_alone() -> None:
    old = subprocess.Popen(["sleep", "309"], start_new_session=True)
    assert end_process(old.pid, start_time(old.pid)).ended == 1
    old.wait(5)
    assert not psutil.pid_exists(old.pid)


def test_a_stopped_process_is_asked_too() -> None:
    began = time.monotonic()
    told = receipt("sleep 310 & kill -STOP $!; kill -STOP $$")
    assert (told["ended"], told["survivors"]) == (2, 0)
    assert time.monotonic() - began < 9


def test_a_zombie_is_no_survivor() -> None:
    told = receipt(f"{sys.executable} -c 'import os, time; os.fork() or os._exit(0); time.sleep(311)'")
    assert told["survivors"] == 0
    assert told["ended"] == told["found"]


def test_the_time_to_clean_up_counts_from_when_the_run_was_asked_first() -> None:
    began = time.monotonic()
    asked = {"asked_at": lambda: began - TERM_SECONDS}
    with subprocess.Popen(["sh", "-c", "trap '' TERM; sleep 312; sleep 312"]) as stubborn:
        others = [child.pid for child in psutil.Process().children() if child.pid != stubborn.pid]
        told = end_all(spare=others, **asked)
    assert told.survivors == 0
    assert time.monotonic() - began < TERM_SECONDS


def test_a_process_without_children_ends_them_without_a_look_at_all_processes() -> None:
    listing = "listed = []; sys.addaudithook(lambda event, given: listed.append(given) if event == 'os.listdir' else 0)"
    ending = "from drone.processes.ending import end_all; import sys"
    program = f"{ending}; {listing}; print(end_all().found, listed)"

    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert found.stdout == "0 []\n"
