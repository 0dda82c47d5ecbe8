"""Skills: folders with a SKILL.md. The prompt lists name, description and location; the model reads the rest."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import yaml  # type: ignore[import-untyped]

from drone.prompting.files import Folder
from shared.redaction import shortened

FILE = "SKILL.md"
MOST = 100
"""Maximum number of skills listed in a prompt."""
_FOLDERS = 1000
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_NAME_CHARACTERS = 64
_DESCRIPTION_CHARACTERS = 1024
_FRONT_MATTER = re.compile(r"---[ \t]*\r?\n(.{0,20000}?)^---[ \t]*\r?$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Skill:
    """One line of the list."""

    name: str
    description: str
    location: str
    """The path of its SKILL.md, as an argument for file_read."""


def read_skills(folder: Folder, location: Callable[[str], str]) -> list[Skill]:
    """Return the skills in `folder`'s `skills/`, sorted by name; broken ones are added to the folder's problems.

    `location` returns the path to show for the SKILL.md in a folder of that name.
    """
    found: dict[str, Skill] = {}
    for name in _folders(folder):
        skill = _skill(folder, name, location)
        if skill is None:
            continue
        if skill.name in found:
            folder.problem(f"skills/{name}/{FILE}", f"is ignored: another skill is also called {skill.name!r}")
        else:
            found[skill.name] = skill
    return [found[name] for name in sorted(found)]


def merged(preferred: Sequence[Skill], others: Sequence[Skill], problems: list[str]) -> tuple[Skill, ...]:
    """Merge both, sorted by name, at most MOST; of two with the same name, the preferred one is kept."""
    known = {skill.name: skill for skill in preferred}
    for skill in others:
        if skill.name in known:
            problems.append(f"The drone's skill {skill.name!r} is ignored: the project has one with the same name.")
        else:
            known[skill.name] = skill
    names = sorted(known)
    if len(names) > MOST:
        problems.append(f"There are {len(names)} skills; the first {MOST} by name are listed.")
    return tuple(known[name] for name in names[:MOST])


def _folders(folder: Folder) -> list[str]:
    directory = folder.path / "skills"
    if not directory.exists():
        return []
    if directory.is_symlink() and not folder.links:
        return []
    try:
        names = sorted(path.name for path in islice(directory.iterdir(), _FOLDERS))
    except OSError as error:
        folder.problem("skills", f"cannot be listed: {error.strerror}")
        return []
    if len(names) == _FOLDERS:
        folder.problem("skills", f"has more than {_FOLDERS:,} entries; the others were ignored")
    return [name for name in names if folder.links or not (directory / name).is_symlink()]


def _skill(folder: Folder, name: str, location: Callable[[str], str]) -> Skill | None:
    file = f"skills/{name}/{FILE}"
    text = folder.whole(file)
    if text is None:
        return None
    try:
        front = _front_matter(text)
        return Skill(_checked_name(front.get("name")), _checked_description(front.get("description")), location(name))
    except ValueError as error:
        folder.problem(file, f"is ignored: {error}")
        return None


def _front_matter(text: str) -> dict[str, object]:
    matched = _FRONT_MATTER.match(text)
    if matched is None:
        raise ValueError("it does not begin with front matter between two lines of ---")
    try:
        front = yaml.safe_load(matched[1])
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        first = shortened(str(error).strip().split("\n")[0], 200)
        raise ValueError(f"its front matter is not valid YAML ({first})") from error
    if not isinstance(front, dict):
        raise ValueError("its front matter has no fields")
    return front


def _checked_name(name: object) -> str:
    if not isinstance(name, str) or len(name) > _NAME_CHARACTERS or not _NAME.fullmatch(name):
        raise ValueError(f"`name` must be 1 to {_NAME_CHARACTERS} characters of a-z, 0-9 and single hyphens")
    return name


def _checked_description(description: object) -> str:
    text = " ".join(description.split()) if isinstance(description, str) else ""
    if not 1 <= len(text) <= _DESCRIPTION_CHARACTERS:
        raise ValueError(f"`description` must be a string of 1 to {_DESCRIPTION_CHARACTERS:,} characters")
    return text


def real_location(directory: Path) -> Callable[[str], str]:
    """The real path of a skill of the drone's owner, with links resolved: that path is readable."""
    return lambda name: str((directory / "skills" / name / FILE).resolve())


def workspace_location(name: str) -> str:
    """The path of a project's skill in the workspace."""
    return f".dronefleet/skills/{name}/{FILE}"
