"""Sources of the system prompt's texts, and their precedence (O-060, O-061)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from drone.prompting.files import Folder, ReadFiles
from drone.prompting.skills import Skill, merged, read_skills, real_location, workspace_location
from drone.prompting.templates import read_templates
from drone.prompting.time_limit import within

READ_SECONDS = 10.0
"""Maximum delay of a run if the home's disk does not respond."""


@dataclass(frozen=True)
class PromptSources:
    """Directories with files for the prompt; None and a missing directory provide none.

    The project's files come from its default branch, never from the agent's work. Files that both may provide are in
    cache order: the project's first, because they are the same on every drone.
    """

    home: Path | None = None
    """`<DRONE_HOME>/prompt`: SYSTEM.md, SOUL.md, APPEND.md, MEMORY.md, USER.md, skills/, templates/."""
    project: Path | None = None
    """A copy of `.dronefleet/`: SYSTEM.md, SOUL.md, APPEND.md, MEMORY.md, skills/."""


@dataclass(frozen=True)
class PromptParts:
    """The texts, each ready for the prompt, or empty."""

    system: str = ""
    """Replaces the whole identity section."""
    soul: str = ""
    """The agent's identity, below our heading; used only if `system` is empty."""
    instructions: str = ""
    """AGENTS.md or AGENT.md."""
    appended: tuple[str, ...] = ()
    memory: tuple[str, ...] = ()
    user: str = ""
    skills: tuple[Skill, ...] = ()
    templates: Mapping[str, str] = field(default_factory=dict)
    """The owner's templates by name, which replace ours."""
    readable: tuple[Path, ...] = ()
    """Directories outside the workspace that tools must be able to read: those of the owner's skills."""
    problems: list[str] = field(default_factory=list)
    """Problems with files and templates, one sentence each, for people; rendering adds to it."""


def read_sources(
    sources: PromptSources, instructions: Mapping[str, bytes] | None = None, *, seconds: float = READ_SECONDS
) -> PromptParts:
    """Read all sources. Never fails: missing parts are empty, invalid parts are empty and added to the problems.

    `instructions` has the project's AGENTS.md, which the caller has read from its default branch, by its name; of
    several files, the first one with a text is used.
    """
    try:
        parts = within(seconds, partial(_read, sources))
    except TimeoutError:
        parts = PromptParts()
        parts.problems.append(f"The files for the prompt could not be read within {seconds:g} s and were left out.")
    return replace(parts, instructions=ReadFiles("", instructions or {}, problems=parts.problems).first())


def _read(sources: PromptSources) -> PromptParts:
    problems: list[str] = []
    project = Folder(".dronefleet/", sources.project or _NOWHERE, links=False, problems=problems)
    home = Folder("the drone's prompt/", sources.home or _NOWHERE, links=True, problems=problems)
    folders = (project, home)
    own_skills = read_skills(home, real_location(home.path))
    skills = merged(read_skills(project, workspace_location), own_skills, problems)
    return PromptParts(
        system=_first(folders, "SYSTEM.md"),
        soul=_first(folders, "SOUL.md"),
        appended=_all(folders, "APPEND.md"),
        memory=_all(folders, "MEMORY.md"),
        user=home.text("USER.md"),
        skills=skills,
        templates=read_templates(home),
        readable=tuple(Path(skill.location).parent for skill in own_skills if skill in skills),
        problems=problems,
    )


_NOWHERE = Path("/nonexistent")


def _first(folders: tuple[Folder, ...], name: str) -> str:
    return next((text for folder in folders if (text := folder.text(name))), "")


def _all(folders: tuple[Folder, ...], name: str) -> tuple[str, ...]:
    return tuple(text for folder in folders if (text := folder.text(name)))
