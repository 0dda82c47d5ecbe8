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
"""Asks once, and waits until the drone is gone or systemd's patience at an end."""
STOP_SECONDS = 120
"""For runs to end by themselves after `systemctl stop`; as long again for them to give their orders back."""
_OURS = "# Written by `drone install-service`; it may be written again."


def unit_path() -> Path:
    """Where systemd looks for the units of a user."""
    return config_home() / "systemd" / "user" / UNIT


def unit_text(settings: DroneSettings) -> str:
    """The unit for the drone with these settings, started by the Python that runs now.

    A drone that cannot start for a reason that its owner has to mend (exit codes 2 to 4 and 6) is not started again.
    """
    policy = settings.environ.get("DRONE_POLICY")
    variables = {"DRONE_HOME": str(settings.home.path), "PATH": settings.environ.get("PATH", os.defpath)}
    if policy:
        variables["DRONE_POLICY"] = policy
    lines = [f"Environment={_quoted(f'{name}={value}')}" for name, value in variables.items()]
    return "\n".join(
        [
            _OURS,
            "[Unit]",
            "Description=Dronefleet drone",
            "After=network-online.target",
            "",
            "[Service]",
            f"ExecStart={_quoted(sys.executable).replace('$', '$$')} -m drone.cli.main start",
            *lines,
            "Restart=on-failure",
            "RestartSec=5",
            "RestartPreventExitStatus=2 3 4 6",
            # Each signal goes to the parent alone; what is left in the end is killed. ExecStop sends the first, which
            # lets runs end: systemd's own comes when the time is up, as the second, which has them given back.
            "KillMode=mixed",
            f"ExecStop={STOP}",
            f"TimeoutStopSec={STOP_SECONDS}",
            "",
            "[Install]",
            "WantedBy=default.target",
            "",
        ]
    )


def write_unit(settings: DroneSettings) -> Path:
    """Write the unit and return its path. Raises Conflict where somebody else's file has its name."""
    path = unit_path()
    if path.exists() and not path.read_text().startswith(_OURS):
        raise Conflict(
            f"{path} is there already, and not ours",
            code="E-SERVICE",
            next=f"mv {path} {path}.old && drone install-service",
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(unit_text(settings))
    return path


def _quoted(text: str) -> str:
    """`text` as systemd reads it back: quotes and backslashes escaped, `%` doubled."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'
