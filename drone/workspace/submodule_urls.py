"""Where a submodule may be fetched from: only where the project itself comes from.

`.gitmodules` belongs to the repository, and an address in it could make the drone send requests, and its owner's
logins, to any server that the drone reaches.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from drone.installation.git_urls import is_beside, is_local, is_remote

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
