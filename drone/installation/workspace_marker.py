"""Directories that are ours: they were empty, or hold our marker. Nothing else is ever written or removed."""

from __future__ import annotations

from pathlib import Path

from shared.errors import Precondition
from shared.names import new_id

WORKSPACE_MARKER = ".dronefleet-workspace"
"""A directory with this file is one of ours: nothing else is ever cleaned up, and no other directory is used."""


def claim_root(root: Path) -> str:
    """Claim `root` if that is allowed, and return the permanent id of the workspace.

    Raises Precondition if the directory is not empty and not ours, or cannot be used.
    """
    marker = root / WORKSPACE_MARKER
    try:
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not marker.exists() and any(root.iterdir()):
            raise _not_ours(root)
        known = marker.read_text().strip() if marker.exists() else ""
        if not known:
            known = new_id()
            marker.write_text(known + "\n")
    except OSError as error:
        raise Precondition(
            f"{root} cannot be used as the workspace",
            code="E-WORKSPACE",
            why=f"{error.strerror or error}",
            next="drone register --workspace DIR",
        ) from error
    return known


def _not_ours(root: Path) -> Precondition:
    return Precondition(
        f"{root} is neither empty nor a drone workspace",
        code="E-WORKSPACE",
        why=f"it contains files but no {WORKSPACE_MARKER}; a drone deletes files in its workspace",
        next="use a new or empty directory: drone register --workspace DIR",
    )
