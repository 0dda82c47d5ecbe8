"""The systemd user unit that starts the drone with its owner's session, or with the machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from drone.installation.settings import DroneSettings
from shared.errors import Conflict
from shared.terminal.directories import config_home

UNIT = "dronefleet-drone.service"
STOP = """/bin/sh -c 'kill "$$MAINPID"; while kill -0 "$$MAINPID" 2>/dev/null; do sleep 0.5; done'"""
"""Asks once, and waits until the drone is gone or systemd's timeout expires."""
STOP_SECONDS = 120
"""Time for runs to finish after `systemctl stop`; then the same time again for them to give their orders back."""
_KEPT = ("DRONE_POLICY", "DRONE_HIDDEN", "DRONE_METRICS_PORT", "XDG_CONFIG_HOME")
"""Variables that the service has as the shell in which it is installed; their paths are made absolute. Without the
first one, the policy is below the last one."""
_OURS = "# Written by `drone install-service`; it may be written again."


def unit_path() -> Path:
    """The path of the unit, where systemd looks for user units."""
    return config_home() / "systemd" / "user" / UNIT


def unit_text(settings: DroneSettings) -> str:
    """The unit for the drone with these settings, started by the current Python.

    A drone that cannot start for a reason that its owner must fix (exit codes 2 to 4 and 6) is not restarted.
    """
    variables = {"DRONE_HOME": str(settings.home.path), "PATH": settings.environ.get("PATH", os.defpath)}
    variables |= {name: _absolute(name, value) for name in _KEPT if (value := settings.environ.get(name))}
    lines = [f"Environment={_quoted(f'{name}={value}')}" for name, value in variables.items()]
    return "\n".join(
        [
            _OURS,
            "[Unit]",
            "Description=Dronefleet drone",
            "After=network-online.target",
            "",
            "[Service]",
            f"ExecStart={_quoted(sys.executable).replace('$', '$$')} -P -m drone.cli.main start",
            *lines,
            "Restart=on-failure",
            "RestartSec=5",
            "RestartPreventExitStatus=2 3 4 6",
            # Each signal goes to the parent only; processes left at the end are killed. ExecStop sends the first
            # signal, which lets runs finish. When the time is up, systemd sends the second: orders are given back.
            "KillMode=mixed",
            f"ExecStop={STOP}",
            f"TimeoutStopSec={STOP_SECONDS}",
            # The commands of each run get a cgroup beside the drone's own (systemd before 254 ignores the second line).
            "Delegate=cpu memory pids",
            "DelegateSubgroup=drone",
            "",
            "[Install]",
            "WantedBy=default.target",
            "",
        ]
    )


def write_unit(settings: DroneSettings) -> Path:
    """Write the unit and return its path.

    Raises Conflict if a file that is not ours has its name, or the unit of another drone.
    """
    path, unit = unit_path(), unit_text(settings)
    found = path.read_text() if path.exists() else _OURS
    if not found.startswith(_OURS):
        raise Conflict(
            f"{path} already exists and was not written by drone install-service",
            code="E-SERVICE",
            next=f"mv {path} {path}.old && drone install-service",
        )
    if (other := _home_in(found)) not in {"", _home_in(unit)}:
        raise Conflict(
            f"{path} already starts the drone in {other}",
            code="E-SERVICE",
            why=f"this drone is in {settings.home.path}",
            next="save a copy of that file under another name, with the DRONE_HOME of this drone; "
            f"or, to replace it: rm {path} && drone install-service",
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(unit)
    return path


def _home_in(unit: str) -> str:
    """The DRONE_HOME of a unit that we wrote, quoted for systemd; '' if it has none."""
    begin = 'Environment="DRONE_HOME='
    homes = (line[len(begin) : -1] for line in unit.splitlines() if line.startswith(begin))
    return next(homes, "")


def _absolute(name: str, value: str) -> str:
    """The value of a variable for a process that starts in another directory."""
    match name:
        case "DRONE_POLICY":
            return str(Path(value).absolute())
        case "DRONE_HIDDEN":
            return os.pathsep.join(str(Path(place).absolute()) for place in value.split(os.pathsep) if place)
        case _:
            return value


def _quoted(text: str) -> str:
    """`text` quoted for systemd: quotes and backslashes escaped, `%` doubled."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'
