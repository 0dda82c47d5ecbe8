"""The address of a repository: which ones are accepted, and what may be shown of them.

A project's URL goes to `git clone` on a user's workstation, so forms that make git run a program (`ext::…`), read an
option (`-…`) or read the drone's own disk are refused here, and again by the drone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from control_plane.contract.validation.checks import shown
from shared.errors import Invalid
from shared.redaction import redact_url

MAX_URL = 2000
_EXAMPLES = "https://host/path.git, ssh://git@host/path.git or git@host:path.git"
_SCHEMES = frozenset({"https", "http", "ssh"})
# user@host:path. A host with a slash before the colon would be a path, and a host of one letter a drive.
_SCP_LIKE = re.compile(
    r"(?=[^\s\\]*\Z)(?:[A-Za-z0-9_][A-Za-z0-9_.+-]*@)?(?!(?:https?|ssh|file|git):)"
    r"[A-Za-z0-9\[][A-Za-z0-9.:\[\]_-]*[A-Za-z0-9\]]:(?![-:]).+"
)
_HOST = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?|[0-9A-Fa-f:.]+")
_BRANCH = re.compile(r"(?!-)(?!.*(?:\.\.|@\{|//|/\.|\.lock(?:/|$)))(?![/.])[^\x00-\x20\x7f~^:?*\[\\]+(?<![/.])")


@dataclass(frozen=True)
class GitUrl:
    """A repository's address. `secret` is the whole URL if `shown` had to leave something out, else None."""

    shown: str
    secret: str | None

    @property
    def is_file(self) -> bool:
        """Whether it is a path on the drone's machine."""
        return self.shown.startswith("file://")


def parse_git_url(text: str, *, files_allowed: bool) -> GitUrl:
    """The URL as it is stored and shown. Raises Invalid (`E-GIT-URL`), which never repeats a password."""
    text = text.strip()
    if len(text) > MAX_URL:
        raise _refused(text, f"the git URL has {len(text):,} characters; {MAX_URL:,} are allowed")
    if not text or text.startswith("-") or "::" in text.split("/")[0] or not text.isprintable():
        raise _refused(text, f"invalid git URL {shown(redact_url(text))}")
    if text.startswith("/"):
        # git decodes the path of a URL, so a percent sign in the path itself must be encoded.
        return _file("file://" + text.replace("%", "%25"), files_allowed=files_allowed)
    if text.startswith("file://"):
        return _file(text, files_allowed=files_allowed)
    if " " in text:
        raise _refused(text, f"invalid git URL {shown(redact_url(text))}", why="it contains a space")
    if "://" not in text:
        if not _SCP_LIKE.fullmatch(text):
            raise _refused(text, f"invalid git URL {shown(text)}", why="a path must be absolute")
        return GitUrl(text, None)
    return _with_scheme(text)


def check_branch(name: str) -> str:
    """The name of a branch, if git accepts it. Raises Invalid."""
    if len(name) > 200 or not _BRANCH.fullmatch(name):
        raise Invalid(f"invalid branch name {shown(name)}", code="E-BRANCH", next="for example main")
    return name


def _with_scheme(text: str) -> GitUrl:
    try:
        parts = urlsplit(text)
        host, _port = parts.hostname, parts.port
    except ValueError:
        raise _refused(text, f"invalid git URL {shown(redact_url(text))}", why="its host or port is invalid") from None
    if parts.scheme not in _SCHEMES:
        raise _refused(text, f"git URLs with the scheme {shown(parts.scheme)} are not supported")
    if host is None or not _HOST.fullmatch(host) or parts.path in {"", "/"}:
        said = f"git URL {shown(redact_url(text))} has no repository"
        raise _refused(text, said, why="a host and a path are required")
    public = redact_url(text)
    return GitUrl(public, text if public != text else None)


def _file(text: str, *, files_allowed: bool) -> GitUrl:
    if not files_allowed:
        raise Invalid(
            "a file:// URL is accepted only if the control plane listens on loopback",
            code="E-GIT-FILE",
            why="it refers to a directory on the drone that runs the order",
            next="use https or ssh, or set FLEET_ALLOW_FILE_URLS=true if all drones are yours",
        )
    host, _, path = text.removeprefix("file://").partition("/")
    if host not in {"", "localhost"} or not path:
        raise _refused(text, f"git URL {shown(text)} has no directory", why="the form is file:///absolute/path")
    return GitUrl(text, None)


def _refused(text: str, what: str, why: str = "") -> Invalid:
    return Invalid(what, code="E-GIT-URL", why=why, next=_EXAMPLES).of(text)
