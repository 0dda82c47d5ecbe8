"""The skill for coding assistants, and its installation into a project (S-125)."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Literal

from shared.errors import Conflict, FleetFault

NAME = "dronefleet"
FILE = "SKILL.md"
OURS = ".written"
"""Next to the skill: the digest of what was written; a later version recognizes a modified file by it."""
Outcome = Literal["written", "updated", "unchanged"]
_SENTENCES: dict[Outcome, str] = {
    "written": "written: assistants that read this directory can now use the fleet",
    "updated": "updated",
    "unchanged": "is already up to date",
}


@dataclass(frozen=True)
class Installed:
    """The outcome, and the path."""

    path: Path
    outcome: Outcome

    @property
    def sentence(self) -> str:
        return _SENTENCES[self.outcome]


def skill_text() -> bytes:
    """The skill, as it came with this version."""
    return (files(__name__) / FILE).read_bytes()


def skills_directory(project: Path) -> Path:
    """Where assistants look for skills in a project: `.claude/skills` if a `.claude` exists, else `.agents/skills`."""
    return project / (".claude" if (project / ".claude").is_dir() else ".agents") / "skills"


def install(skills: Path, *, force: bool = False, text: bytes | None = None) -> Installed:
    """Write the skill under `skills`, in a separate directory; `text`: a text other than this version's.

    Raises Conflict, without `force`, for a file that was modified or not written by us; FleetFault if nothing can be
    written.
    """
    path = skills.expanduser().absolute() / NAME / FILE
    try:
        return _install(path, text or skill_text(), force=force)
    except OSError as error:
        raise FleetFault(
            f"{path} cannot be written", code="E-SKILL-PATH", why=str(error), next="fleet install-skill --path DIR"
        ) from error


def _install(path: Path, text: bytes, *, force: bool) -> Installed:
    before = path.read_bytes() if path.exists() else None
    if before == text:
        return Installed(path, "unchanged")
    if before is not None and not force and _digest(before) != _written(path):
        raise Conflict(
            f"{path} was changed since it was written and was not overwritten",
            code="E-SKILL-CHANGED",
            next="fleet install-skill --force    to overwrite it",
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    _replace(path, text)
    _replace(path.with_name(OURS), _digest(text).encode())
    return Installed(path, "written" if before is None else "updated")


def _written(path: Path) -> str | None:
    mark = path.with_name(OURS)
    return mark.read_text(errors="replace").strip() if mark.is_file() else None


def _replace(path: Path, content: bytes) -> None:
    """Write the file completely or not at all."""
    draft = path.with_name(f".{path.name}.new")
    draft.write_bytes(content)
    draft.replace(path)


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()
