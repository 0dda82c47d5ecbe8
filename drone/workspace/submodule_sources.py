"""Fetches the submodules of a commit, each into its mirror; one that cannot be fetched is named, and ends no order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from drone.installation.git_urls import is_local
from drone.workspace.conversions import in_portions
from drone.workspace.git import Git
from drone.workspace.mirror import Mirror
from drone.workspace.remote import Remote
from drone.workspace.submodule_urls import resolved, where_to_fetch
from shared.errors import FleetError, Forbidden
from shared.redaction import shortened

MOST = 100
"""Submodules of one project, nested ones included; more are not fetched."""
DEEPEST = 8
"""Submodules in each other."""
_NO_FILE = 128
_SHOWN = 10
_LONGEST_SHOWN = 300
"""Characters of a path or a reason."""
_STEPS = frozenset({"", ".", ".."})


@dataclass(frozen=True)
class Submodule:
    """A submodule of the base."""

    path: str
    """Below the work tree, also of one in another."""
    name: str
    """In the `.gitmodules` of the repository around it."""
    commit: str
    around: str = ""
    """The path of the submodule that it is in; empty: it is the project's own."""
    url: str = ""
    """As `.gitmodules` says."""
    mirror: Mirror | None = None
    """Has the commit; None: it was not fetched."""
    why_not: str = ""

    @property
    def shown(self) -> str:
        """The path, for users."""
        return _shown(self.path)

    @property
    def is_fetched(self) -> bool:
        return self.mirror is not None


@dataclass(frozen=True)
class SubmoduleSources:
    """How the submodules of a project are fetched."""

    project: Mirror
    git: Git
    """With the environment of all fetches."""
    mirror_of: Callable[[Remote], Mirror]
    allow: Callable[[str], None]
    """Accepts a URL, or raises Refused: the policy of the machine's owner."""

    def fetched(self, commit: str | None) -> tuple[Submodule, ...]:
        """The submodules of a commit in the project's mirror, outer ones first; those that were not fetched, too."""
        found: list[Submodule] = []
        waiting = [(Submodule("", "", commit or "", mirror=self.project), 1)] if commit else []
        while waiting:
            around, depth = waiting.pop(0)
            for each in self._in(around):
                if len(found) == MOST:
                    return (*found, replace(each, why_not=f"like all after the first {MOST}"))
                too_deep = replace(each, why_not=f"more than {DEEPEST} submodules in each other")
                found.append(too_deep if depth > DEEPEST else self._fetched(each, around))
                waiting.append((found[-1], depth + 1))
        return tuple(found)

    def _in(self, around: Submodule) -> Iterator[Submodule]:
        """What `.gitmodules` names and the commit has; a file that git cannot read names nothing."""
        if around.mirror is None:
            return
        git = self.git.at(around.mirror.directory)
        settings: dict[str, dict[str, str]] = {}
        for name, variable, value in _settings(git, around.commit):
            settings.setdefault(name, {})[variable] = value
        paths = {each.get("path", ""): (name, each.get("url", "")) for name, each in settings.items()}
        commits = _commits(git, around.commit, [path for path in paths if not _STEPS & set(path.split("/"))])
        for path, commit in sorted(commits.items()):
            name, url = paths[path]
            yield Submodule(f"{around.path}/{path}".lstrip("/"), name, commit, around.path, url)

    def _fetched(self, each: Submodule, around: Submodule) -> Submodule:
        assert around.mirror is not None
        wanted = resolved(each.url, around.mirror.remote.url)
        url = where_to_fetch(wanted, self.project.remote.url)
        if url is None:
            return replace(each, why_not=f"{Remote(wanted).shown or 'no URL'} is not where the project comes from")
        mirror = self.mirror_of(Remote(url, self.project.remote.project))
        try:
            self.allow(url)
            mirror.ensure(each.commit)
        except FleetError as error:
            return replace(each, why_not=error.what)
        return replace(each, mirror=mirror)


def not_from_the_disk(url: str) -> None:
    """Raise Forbidden for a repository on this machine: others of a user may be beside the one that is worked on."""
    if is_local(url):
        raise Forbidden(
            "submodules are not fetched from the disk",
            code="E-POLICY-FILE",
            next="use the URL of the project's server: drone run PROMPT --repo URL --model M",
        )


def note_of_unfetched(submodules: Sequence[Submodule]) -> str:
    """What users and the model should know of those that were not fetched; empty if all were."""
    missing = [f"{each.shown} ({_shown(each.why_not)})" for each in submodules if not each.is_fetched]
    return f"Submodules that were not fetched, and are empty in the workspace: {_listed(missing)}." if missing else ""


def note_of_submodules(submodules: Sequence[Submodule]) -> str:
    """What the model should know of all submodules; empty if there are none."""
    fetched = [each.shown for each in submodules if each.is_fetched]
    how = (
        f"Submodules in the workspace: {_listed(fetched)}. Files that you change in them are delivered. Commits that "
        "you make in them are not: record no such commit in the project."
    )
    return " ".join(filter(None, (how if fetched else "", note_of_unfetched(submodules))))


def _listed(names: Sequence[str]) -> str:
    more = [f"{len(names) - _SHOWN:,} more"] if len(names) > _SHOWN else []
    return "; ".join([*names[:_SHOWN], *more])


def _shown(text: str) -> str:
    return shortened(os.fsencode(text).decode(errors="replace"), _LONGEST_SHOWN)


def _settings(git: Git, commit: str) -> Iterator[tuple[str, str, str]]:
    listing = git.raw(
        "config", "--no-includes", "--blob", f"{commit}:.gitmodules", "--null", "--list", codes=(0, _NO_FILE)
    )
    for entry in os.fsdecode(listing).split("\0"):
        key, _, value = entry.partition("\n")
        section, _, variable = key.rpartition(".")
        kind, _, name = section.partition(".")
        if kind == "submodule":
            yield name, variable, value


def _commits(git: Git, commit: str, paths: Sequence[str]) -> dict[str, str]:
    """The commits at those of the paths at which the commit has submodules."""
    found = {}
    for names in in_portions(map(os.fsencode, paths)):
        listing = os.fsdecode(git.raw("ls-tree", "-z", commit, "--", *names))
        for line in filter(None, listing.split("\0")):
            facts, _, path = line.partition("\t")
            if facts.startswith("160000 "):
                found[path] = facts.split()[2]
    return {path: found[path] for path in paths if path in found}
