"""Finds secrets in what a delivery would give away: the patch, every version of a file, and messages of commits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from drone.workspace.git import Git
from drone.workspace.secret_scan import SecretScan
from shared.visible_text import visible

MOST_SHOWN = 5
"""Places that are named."""
_HUNK = re.compile(r"@@ -\S+ \+(\d+)")
_MESSAGES, _END = "--format=%h%n%B%n%an %ae%n%cn %ce%x00", "\0\n"
_HIDDEN_NAME = "a file whose name contains a secret"


class SecretFinder(Protocol):
    """What recognizes secrets."""

    def knows(self, text: str) -> bool:
        """Whether a secret that the run knows is in the text."""
        ...

    def has_token(self, text: str) -> bool:
        """Whether such a secret, or a token of a well-known shape, is in the text."""
        ...


class Head(NamedTuple):
    """A commit or a tree that leaves the drone."""

    name: str
    published: str | None
    """The commit that the receiver has already."""
    below: str = ""
    """The directory whose tree it is, with a slash at its end."""


@dataclass(frozen=True)
class Outgoing:
    """The work of a run as it would leave the drone."""

    git: Git
    """Has the drone's git directory and no work tree."""
    scan: SecretScan
    heads: Sequence[Head]
    patch: bytes


def places_of_secrets(work: Outgoing, secrets: SecretFinder) -> list[str]:
    """Where secrets are, without the secrets themselves: `src/a.py line 3`; empty if there are none.

    Known secrets count wherever they are; tokens of well-known shapes in added lines and in messages of commits: a file
    that is only changed may have contained an example before.
    """
    messages, versions = _listed(work)
    found = [*added_secrets(work.patch, secrets), *_in_messages(messages, secrets)]
    named = {place.partition(" line ")[0] for place in found}
    found += [f"a version of {path}" for path in _in_versions(work, versions, secrets) if path not in named]
    places = list(dict.fromkeys(found))
    more = len(places) - MOST_SHOWN
    return [*places[:MOST_SHOWN], f"and {more} more"] if more > 0 else places


def added_secrets(patch: bytes, secrets: SecretFinder) -> Iterator[str]:
    """Where added lines and names of files contain a known secret or a token of a well-known shape."""
    text = patch.decode("utf-8", "replace")
    if not secrets.has_token(text):
        return
    for path, number, line in _added_lines(text):
        name = _name(path, secrets)
        if name == _HIDDEN_NAME:
            yield name
        elif secrets.has_token(line):
            yield f"{name} line {number}"


def _added_lines(patch: str) -> Iterator[tuple[str, int, str]]:
    """Path, number and text of each added line. The head of a file counts as its line 0, so that its name is seen."""
    path, number = "", 0
    for line in patch.split("\n"):
        if hunk := _HUNK.match(line):
            number = int(hunk[1])
        elif line.startswith("diff --git "):
            path, number = line.rpartition(" b/")[2], 0
            yield path, number, ""
        elif number and line.startswith("+"):
            yield path, number, line[1:]
        number += bool(number) and line.startswith(("+", " "))


def _listed(work: Outgoing) -> tuple[list[str], dict[str, str]]:
    """The messages of all commits, each below a line with the commit's short name; and the paths of all objects."""
    found: list[str] = []
    paths: dict[str, str] = {}
    for head in work.heads:
        without = [f"^{head.published}"] if head.published else []
        listing = work.git.raw("rev-list", "--objects", _MESSAGES, head.name, *without).decode("utf-8", "replace")
        # The objects follow the commits, and no message contains a zero byte.
        messages, _, objects = listing.rpartition(_END)
        named = (line.split(" ", 1) for line in objects.split("\n") if " " in line)
        paths |= {name: f"{head.below}{path}" for name, path in named}
        # The first line of each is git's own: `commit` and the whole name.
        found += [message.partition("\n")[2] for message in messages.split(_END)]
    return found, paths


def _in_messages(messages: Iterable[str], secrets: SecretFinder) -> Iterator[str]:
    for message in messages:
        name, _, text = message.partition("\n")
        if secrets.has_token(text):
            yield f"the message of commit {name}"


def _in_versions(work: Outgoing, paths: Mapping[str, str], secrets: SecretFinder) -> Iterator[str]:
    """The files that have a known secret in any version: the branch and the bundle contain every version."""
    work.scan.has_secret = lambda content: secrets.knows(content.decode("utf-8", "replace"))
    found = work.scan.with_secrets(paths)
    yield from sorted({_name(path, secrets) for name, path in paths.items() if name in found})


def _name(path: str, secrets: SecretFinder) -> str:
    return _HIDDEN_NAME if secrets.has_token(path) else visible(path)
