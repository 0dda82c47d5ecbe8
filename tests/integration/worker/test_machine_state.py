"""When a drone takes orders depends on its machine: real files of the kernel and of the log-ins, in a namespace."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support import needs

BATTERY = {"type": "Battery", "capacity": "61", "energy_now": "61", "energy_full": "100", "power_now": "10"}
USER_PROCESS = 7
RECORD = "hxxi32s4s32s256shhiii16s20s"
"""A log-in as `utmp(5)` describes it."""
HIDDEN = "mount -t tmpfs none /sys/class; mkdir /sys/class/power_supply; mount -t tmpfs none /run"
LOGIND = """
mount --bind /usr/bin /mnt; mkdir "$0/bin"; ln -s /mnt/* "$0/bin"; rm -f "$0/bin/loginctl"
cp "$0/loginctl" "$0/bin/loginctl"; mount --bind "$0/bin" /usr/bin
"""
LACKING = "from drone.installation.owner_rules.when import When; print(*When({}).lacking(()), sep=': ')"
TERMINAL = """
import os, time
_, end = os.openpty()
line = os.ttyname(end)
os.utime(line, (time.time() - {idle}, time.time()))
name = line.removeprefix("/dev/").encode()
record = open("{record}", "rb").read().replace(b"LINE".ljust(32, b"\\0"), name.ljust(32, b"\\0"))
open("/run/utmp", "wb").write(record)
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    needs("unshare")
    tried = subprocess.run(["unshare", "-rm", "sh", "-c", HIDDEN], capture_output=True, check=False)
    if tried.returncode and os.environ.get("CI") != "true":
        pytest.skip("no mount namespace can be made here")
    return tmp_path


def test_a_drone_on_battery_power_waits_for_mains(place: Path) -> None:
    mains = {"type": "Mains", "online": "0"}
    discharging = {"AC": mains, "BAT0": BATTERY | {"status": "Discharging"}}
    charging = {"AC": mains | {"online": "1"}, "BAT0": BATTERY | {"status": "Charging"}}
    supplies = (discharging, charging, {"AC": mains | {"online": "1"}})
    said = [lacking(place / str(number), "on_mains=True", supplies=each) for number, each in enumerate(supplies)]
    assert said == ["on_mains: on battery power\n", ": \n", ": \n"]


def test_a_drone_waits_while_a_user_types_at_a_terminal(place: Path) -> None:
    record = struct.pack(RECORD, USER_PROCESS, 1, b"LINE", b"1", b"ada", b"", 0, 0, 0, 0, 0, b"", b"")
    (place / "record").write_bytes(record)
    for idle, said in ((300, "idle_minutes: the machine is in use\n"), (900, ": \n")):
        begin = TERMINAL.format(idle=idle, record=place / "record")
        assert lacking(place, "idle_minutes=10", begin=begin) == said


def test_a_drone_waits_while_a_desktop_is_in_use(place: Path) -> None:
    """A stand-in for `loginctl` answers, since there is no desktop."""
    said = []
    for idle, session in (("no", "3 /org/x"), ("yes", "3 /org/x"), ("no", "")):
        machine = place / f"{idle} {session[:1]}"
        machine.mkdir()
        program = machine / "loginctl"
        program.write_text(f"#!/bin/sh\nprintf 'IdleHint={idle}\\nActiveSession={session}\\n'\n")
        program.chmod(0o755)
        said.append(lacking(machine, "idle_minutes=10", mounts=LOGIND))
    assert said == ["idle_minutes: the machine is in use\n", ": \n", ": \n"]


def lacking(
    place: Path,
    settings: str,
    *,
    supplies: Mapping[str, Mapping[str, str]] | None = None,
    begin: str = "",
    mounts: str = "",
) -> str:
    """What a drone with these settings says that it lacks, on a machine with these power supplies and log-ins."""
    for name, files in (supplies or {}).items():
        directory = place / "supplies" / name
        directory.mkdir(parents=True)
        for file, content in files.items():
            (directory / file).write_text(content + "\n")
    shown = 'cp -r "$0/supplies/." /sys/class/power_supply' if supplies else ":"
    script = f'set -e; {HIDDEN}; {shown}; {mounts}\nexec "$1" -c "$2"'
    line = ["unshare", "-rm", "sh", "-c", script, str(place), sys.executable, begin + LACKING.format(settings)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
