"""Directories for a user's files, according to the XDG base directory specification."""

from __future__ import annotations

import os
from pathlib import Path


def state_home() -> Path:
    """`$XDG_STATE_HOME` if it is an absolute path, otherwise `~/.local/state`."""
    return _xdg("XDG_STATE_HOME", ".local/state")


def data_home() -> Path:
    """`$XDG_DATA_HOME` if it is an absolute path, otherwise `~/.local/share`."""
    return _xdg("XDG_DATA_HOME", ".local/share")


def config_home() -> Path:
    """`$XDG_CONFIG_HOME` if it is an absolute path, otherwise `~/.config`."""
    return _xdg("XDG_CONFIG_HOME", ".config")


def _xdg(variable: str, default: str) -> Path:
    # According to the specification, a relative path is invalid and must be ignored.
    named = Path(os.environ.get(variable, ""))
    return named if named.is_absolute() else Path.home() / default
