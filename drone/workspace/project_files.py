"""Files that a project keeps for its runs: read from its default branch, never from an agent's own work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path, PurePosixPath

from drone.workspace.history import History

INSTRUCTION_FILES = ("AGENTS.md", "AGENT.md")
"""The first one with content is used."""
SETTINGS_FOLDER = ".dronefleet"
"""The folder in which a repository keeps its settings for drones."""
_BYTES = 1024 * 1024
"""Of instructions, what follows is not read; larger files of the folder are left out."""
_MOST_PROBLEMS = 100


@dataclass(frozen=True)
class ProjectFiles:
    """What there is of them."""

    instructions: Mapping[str, bytes] = field(default_factory=dict)
    """The beginning of AGENTS.md, or of AGENT.md, by its name."""
    settings: Path | None = None
    """A copy of `.dronefleet/`, which the agent's own work cannot change; None if nothing of it can be used."""
    problems: list[str] = field(default_factory=list)
    """The first of those that were left out, one sentence each, for people."""


def read_project_files(history: History, commit: str, target: Path) -> ProjectFiles:
    """The files of a commit. `target` becomes the copy of `.dronefleet/`. Raises GitFailed."""
    problems: list[str] = []
    instructions = {}
    for name in INSTRUCTION_FILES:
        try:
            content = history.file(commit, name, _BYTES)
        except ValueError as error:
            problems.append(f"{name} {error}.")
            continue
        if content:
            instructions[name] = content
            break
    left_out = history.export(commit, SETTINGS_FOLDER, target, _BYTES)
    problems += islice(_told(left_out), _MOST_PROBLEMS)
    return ProjectFiles(instructions, target if any(target.iterdir()) else None, problems)


def _told(left_out: Mapping[str, str]) -> Iterator[str]:
    for name, reason in left_out.items():
        _, *inside = PurePosixPath(name).parts
        # What lies beside a SKILL.md is read in the workspace.
        if inside[:1] != ["skills"] or len(inside) < 3 or inside[2:] == ["SKILL.md"]:
            shown = name.encode(errors="surrogateescape").decode(errors="replace")
            yield f"{shown} {reason}."
