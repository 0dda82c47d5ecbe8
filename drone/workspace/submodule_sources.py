"""Fetches the submodules of a commit, each into its mirror; one that cannot be fetched is named, and ends no order."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlsplit, urlunsplit

from drone.installation.git_urls import is_beside, is_local, is_remote
from drone.workspace.conversions import in_portions
from drone.workspace.git import Git
from drone.workspace.mirror import Mirror
from drone.workspace.remote import Remote
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


# --- where a submodule may be fetched from: only where the project itself comes from ---------------
#
# `.gitmodules` belongs to the repository, and an address in it could make the drone send requests, and its owner's
# logins, to any server that the drone reaches.

_URL = re.compile(
    r"(?P<scheme>https?|ssh)://(?:[\w.~%:+-]*@)?(?P<host>[\w.-]+|\[[0-9a-f:.]+\])(?::(?P<port>\d+))?"
    r"/(?P<path>[^\0-\x20\x7f\\?#]+)",
    re.ASCII | re.IGNORECASE,
)
"""Stricter than git: what git and Python would read differently is not accepted."""
_SHORT = re.compile(r"(?:[\w.-]+@)?(?P<host>[\w.-]+):(?P<path>[^\0-\x20\x7f\\?#]+)", re.ASCII)
"""git's short form of an ssh URL."""
_USUAL_PORTS = {"http": 80, "https": 443, "ssh": 22}


@dataclass(frozen=True)
class _Place:
    scheme: str
    host: str
    port: int
    path: str

    @property
    def server(self) -> tuple[str, str, int]:
        return self.scheme, self.host, self.port


def resolved(url: str, around: str) -> str:
    """A URL of `.gitmodules`; a relative one relative to the URL of the repository that it is in, as git does it."""
    if not url.startswith(("./", "../")):
        return url
    base, separator = around.rstrip("/"), "/"
    while url.startswith(("./", "../")):
        step, _, url = url.partition("/")
        if step == "..":
            base, separator, _ = base.rpartition("/" if "/" in base else ":")
    return f"{base}{separator}{url}".rstrip("/")


def where_to_fetch(url: str, project: str) -> str | None:
    """The URL from which to fetch what `url` names for a project, with the project's login; None: from nowhere.

    For a project that comes by https, a URL for ssh on its host is fetched by https: for that, the drone has a login.
    """
    if is_local(project):
        return url if is_local(url) and is_beside(url, project) else None
    wanted, own = _place(url), _place(project)
    if wanted is None or own is None or wanted.host != own.host:
        return None
    if wanted.server == own.server:
        return url if own.scheme == "ssh" else _on_server_of(project, wanted.path)
    if wanted.port != _USUAL_PORTS[wanted.scheme]:
        return None
    if (wanted.scheme, own.scheme) == ("ssh", "https"):
        return _on_server_of(project, wanted.path)
    return url if (wanted.scheme, own.scheme) == ("https", "ssh") else None


def _place(url: str) -> _Place | None:
    if found := _URL.fullmatch(url):
        scheme = found["scheme"].lower()
        return _Place(scheme, found["host"].lower(), int(found["port"] or _USUAL_PORTS[scheme]), found["path"])
    if is_remote(url) and (found := _SHORT.fullmatch(url)):
        return _Place("ssh", found["host"].lower(), _USUAL_PORTS["ssh"], found["path"])
    return None


def _on_server_of(project: str, path: str) -> str:
    return urlunsplit(urlsplit(project)._replace(path=f"/{path.lstrip('/')}", query="", fragment=""))
