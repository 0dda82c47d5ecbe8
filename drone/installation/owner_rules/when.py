"""When the drone takes orders: at which hours, and in which state of its machine."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import psutil

from drone.installation.owner_rules.times import Hours, time_left

_LOGIND_SECONDS = 5


@dataclass(frozen=True)
class When:
    """The table `[when]`. It applies to new orders, not to runs."""

    hours: tuple[Hours, ...] = ()
    """Local time; empty: always."""
    on_mains: bool = False
    idle_minutes: float = 0
    """Without input at the keyboard; 0: also while the machine is used."""
    free_cpus: float = 0
    """Processors without load, as an average over a minute."""
    free_memory: int = 0
    """Bytes."""
    free_disk: int = 0
    """Bytes, in the drone's home and workspace."""

    def lacking(self, disks: tuple[Path, ...]) -> tuple[str, str]:
        """The name of the first setting that is not met now, and how things are; two times '' if all are."""
        tests = (self._hours, self._mains, self._idle, self._cpus, self._memory, lambda: self._disk(disks))
        return next((found for test in tests if (found := test())[0]), ("", ""))

    def hours_left(self) -> float | None:
        """Seconds until its hours end; None: it has none."""
        return time_left(self.hours, datetime.now().astimezone()).total_seconds() if self.hours else None

    def _hours(self) -> tuple[str, str]:
        now = datetime.now().astimezone()
        outside = self.hours and not any(hours.contain(now) for hours in self.hours)
        return ("hours", f"outside its hours, at {now:%a %H:%M}") if outside else ("", "")

    def _mains(self) -> tuple[str, str]:
        battery = psutil.sensors_battery() if self.on_mains and hasattr(psutil, "sensors_battery") else None
        return ("on_mains", "on battery power") if battery and not battery.power_plugged else ("", "")

    def _idle(self) -> tuple[str, str]:
        used = self.idle_minutes and idle_seconds() < self.idle_minutes * 60
        return ("idle_minutes", "the machine is in use") if used else ("", "")

    def _cpus(self) -> tuple[str, str]:
        free = (os.cpu_count() or 1) - os.getloadavg()[0] if self.free_cpus else 0
        return (
            ("free_cpus", f"{max(free, 0):.1f} processors free")
            if self.free_cpus and free < self.free_cpus
            else ("", "")
        )

    def _memory(self) -> tuple[str, str]:
        free = psutil.virtual_memory().available if self.free_memory else 0
        return ("free_memory", f"{free / 2**30:.1f} GiB of memory free") if free < self.free_memory else ("", "")

    def _disk(self, disks: tuple[Path, ...]) -> tuple[str, str]:
        free = min(shutil.disk_usage(disk).free for disk in disks) if self.free_disk and disks else self.free_disk
        return ("free_disk", f"{free / 2**30:.1f} GiB of disk free") if free < self.free_disk else ("", "")


def idle_seconds() -> float:
    """Seconds since the last input of a user who is logged in; infinite if there is none."""
    now, idle = time.time(), float("inf")
    for user in psutil.users():
        with contextlib.suppress(OSError):
            idle = min(idle, now - Path("/dev", user.terminal or "").stat().st_atime) if user.terminal else idle
    return min(idle, 0.0) if _in_use_at_a_desktop() else idle


def _in_use_at_a_desktop() -> bool:
    """Whether logind knows a session with a seat that is in use; desktops report their own idleness to it."""
    program = shutil.which("loginctl", path="/usr/bin:/bin")
    if program is None:
        return False
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        asked = [program, "show-seat", "seat0", "-p", "IdleHint", "-p", "ActiveSession"]
        answer = subprocess.run(asked, capture_output=True, text=True, timeout=_LOGIND_SECONDS, check=False).stdout
        return "IdleHint=no" in answer.split() and "ActiveSession=" not in answer.split()
    return False
