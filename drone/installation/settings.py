"""The drone's settings from the environment, read once at the entry and passed down; and the places that they name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from drone.installation.home import DroneHome
from drone.installation.policy import policy_file
from shared.errors import Invalid
from shared.terminal.directories import config_home, data_home, state_home

_LEVELS = ("debug", "info", "warning", "error")


@dataclass(frozen=True)
class DroneSettings:
    """Settings from the environment. Those that also have a flag are read with the flags."""

    home: DroneHome
    """DRONE_HOME."""
    policy_file: Path
    """DRONE_POLICY."""
    log_level: str
    """DRONE_LOG_LEVEL."""
    environ: Mapping[str, str] = field(repr=False)
    """The whole environment: git, the sandbox and the owner's programs take what they need from it."""


def load(environ: Mapping[str, str] = os.environ) -> DroneSettings:
    """Read the settings. Raises Invalid for an invalid value."""
    level = environ.get("DRONE_LOG_LEVEL", "info").lower()
    if level not in _LEVELS:
        raise Invalid(
            f"DRONE_LOG_LEVEL={level} is invalid: expected debug, info, warning or error",
            code="E-SETTING",
            next="export DRONE_LOG_LEVEL=info",
        )
    return DroneSettings(
        home=DroneHome.locate(environ),
        policy_file=policy_file(environ),
        log_level=level,
        environ=environ,
    )


def own_places(home: Path, environ: Mapping[str, str], *more: Path) -> tuple[Path, ...]:
    """Directories and files of the drone and of its owner, which no command may see wherever they are.

    `more`: of this drone, for example its workspace.
    """
    named = [Path(place) for place in environ.get("DRONE_HIDDEN", "").split(os.pathsep) if place]
    fleets = [each() / "dronefleet" for each in (config_home, data_home, state_home)]
    owners = Path(environ.get("HOME") or Path.home())
    # Accounts of services have a home such as /usr/sbin, which is not theirs.
    private = [owners] if owners.is_dir() and owners.stat().st_uid == os.geteuid() else []
    return (home, policy_file(environ), *fleets, *private, *named, *more)
