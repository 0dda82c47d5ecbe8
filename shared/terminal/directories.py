"""Where files of a user lie, by the XDG base directory specification."""

from __future__ import annotations

import os
from pathlib import Path


def state_home() -> Path:
    """`$XDG_STATE_HOME`, where it is an absolute path, else `~/.local/state`."""
    return _xdg("XDG_STATE_HOME", ".local/state")


def data_home() -> Path:
    """`$XDG_DATA_HOME`, where it is an absolute path, else `~/.local/share`."""
    return _xdg("XDG_DATA_HOME", ".local/share")


def config_home() -> Path:
    """`$XDG_CONFIG_HOME`, where it is an absolute path, else `~/.config`."""
    return _xdg("XDG_CONFIG_HOME", ".config")


def _xdg(variable: str, default: str) -> Path:
    # The base directory specification: a relative path there is invalid and must be ignored.
    named = Path(os.environ.get(variable, ""))
    return named if named.is_absolute() else Path.home() / default
