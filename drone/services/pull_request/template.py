"""The repository's own template for pull requests: filled in, never replaced."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from drone.workspace import DefaultBranch
from drone.workspace.git import GitFailed
from drone.workspace.history import History

MAX_TEMPLATE = 20_000
"""Bytes; a longer file is not a template."""
MAX_BODY = 60_000
"""Characters; GitHub accepts 65,536."""
_NAMES = ("pull_request_template.md", "PULL_REQUEST_TEMPLATE.md")
_GITLAB = (".gitlab/merge_request_templates/Default.md", ".gitlab/merge_request_templates/default.md")
_GITHUB = tuple(f"{folder}{name}" for folder in (".github/", "", "docs/") for name in _NAMES)
_GITEA = tuple(f"{folder}/{name}" for folder in (".gitea", ".forgejo") for name in _NAMES)
ANY = "any"
PLACES = {
    "github": _GITHUB,
    "gitlab": _GITLAB,
    "gitea": (*_GITEA, *_GITHUB),
    ANY: (*_GITEA, *_GITHUB, *_GITLAB),
}
"""Where each kind of host looks for it; `ANY`: if the kind of host is unknown."""
_HEADING = re.compile(r" {0,3}#{1,6}\s")
_ASKS = re.compile(r"(?i)\b(?:description|descri\w*|summary|what|overview)\b")
_FENCE = re.compile(r" {0,3}(?:```|~~~)")
_NEXT_SECTION = re.compile(r"^(?=## |(?:Order|Task): )", re.MULTILINE)


def template_of(branch: DefaultBranch, kind: str) -> str:
    """The template that a host of this kind would show, from the default branch; empty if there is none."""
    if branch.commit is None:
        return ""
    try:
        with History(branch.git) as history:
            texts = (_file(history, branch.commit, place) for place in PLACES[kind])
            return next(filter(None, texts), "")
    except GitFailed:
        return ""


def filled(template: str, body: str) -> str:
    """`body` in the template: its first part below the heading that asks for a description, the rest at the end.

    The template's own text stays unchanged, including checkboxes. Without that heading the first part comes first. The
    end of `body`, where the trailers are, is kept at any length.
    """
    if not template.strip():
        return _cut(body, "")
    start = _NEXT_SECTION.search(body)
    summary, rest = (body[: start.start()], body[start.start() :]) if start else (body, "")
    lines = template.replace("\r\n", "\n").rstrip().split("\n")
    at = next((number for number, line in _headings(lines) if _ASKS.search(line)), None)
    if at is None:
        return _cut(summary, _joined("\n".join(lines), rest))
    before, after = "\n".join(lines[: at + 1]), "\n".join(lines[at + 1 :])
    return before + "\n\n" + _cut(summary, _joined(after, rest), len(before) + 2)


def _file(history: History, commit: str, place: str) -> str:
    """A plain file of a commit as text; empty if there is none."""
    entry = history.entry(commit, place)
    if entry is None or not entry.is_plain_file or entry.size > MAX_TEMPLATE:
        return ""
    return history.content(entry.blob).decode(errors="replace").replace("\0", "")


def _headings(lines: list[str]) -> Iterator[tuple[int, str]]:
    """The visible headings: not those in code or in comments."""
    outside = _Outside()
    for number, line in enumerate(lines):
        if outside(line) and _HEADING.match(line):
            yield number, line


class _Outside:
    """Decides for each line in turn whether it is neither code nor comment."""

    def __init__(self) -> None:
        self._until: Callable[[str], bool] | None = None

    def __call__(self, line: str) -> bool:
        if self._until is not None:
            if self._until(line):
                self._until = None
            return False
        if _FENCE.match(line):
            self._until = lambda later: _FENCE.match(later) is not None
            return False
        if "<!--" in line and "-->" not in line.rpartition("<!--")[2]:
            self._until = lambda later: "-->" in later
            return not line.lstrip().startswith("<!--")
        return True


def _joined(*parts: str) -> str:
    return "\n\n".join(part.strip("\n") for part in parts if part.strip())


def _cut(summary: str, rest: str, taken: int = 0) -> str:
    """Both with an empty line between, the first cut so that the whole stays within the limit of the hosts."""
    room = max(0, MAX_BODY - taken - len(rest) - 2)
    text = summary.strip()
    text = text if len(text) <= room else text[: max(0, room - 20)].rstrip() + "\n\n… (cut)"
    return _joined(text, rest) + "\n"
