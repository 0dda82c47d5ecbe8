"""Translates git's failures into one sentence, its cause, and what to do; one table, read from top to bottom.

The class decides whether the order may run again: a server that cannot be reached is the fleet's fault. A password
that is rejected will be rejected again, but only on this drone: logins, keys and name servers are its own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from drone.installation.disk import FULL, fault_of
from drone.workspace.git import GitFailed
from drone.workspace.remote import Remote
from shared.errors import FleetError, FleetFault, OrderError, UnsuitableDrone
from shared.proxies import Proxy, proxy_of
from shared.redaction import shortened

NOT_FOUND = "E-GIT-NOT-FOUND"
NO_HOST = "E-GIT-HOST"
_UNREACHABLE = "E-GIT-UNREACHABLE"
_PROXY = "E-GIT-PROXY"


@dataclass(frozen=True)
class _Case:
    pattern: re.Pattern[str]
    kind: type[FleetError]
    code: str
    what: str
    """May name the remote as {url}; so may `next`, and the project as {project}."""
    next: str


_CASES = (
    _Case(
        re.compile(r"No space left on device|Disk quota exceeded|ENOSPC"),
        FleetFault,
        "E-DISK-FULL",
        "the drone's disk is full",
        "free some space on the drone's machine: drone doctor shows how much is left",
    ),
    _Case(
        re.compile(r"transport '\w+' not allowed|protocol '\w+' is not supported|Unable to find remote helper"),
        UnsuitableDrone,
        "E-GIT-PROTOCOL",
        "this drone may not fetch from {url}",
        "use an https:// or ssh:// URL: fleet project edit {project} --git-url URL",
    ),
    _Case(
        re.compile(
            r"SSL certificate problem|certificate verif|SSL: no alternative certificate|unable to get local issuer"
        ),
        UnsuitableDrone,
        "E-GIT-TLS",
        "the certificate of {url} is not trusted on the drone's machine",
        "on the drone's machine: git config --global http.sslCAInfo FILE, then restart the drone",
    ),
    _Case(
        re.compile(r"Host key verification failed"),
        UnsuitableDrone,
        "E-GIT-HOST-KEY",
        "the drone's machine does not know the host key of {url}",
        "on the drone's machine: connect once with ssh, check the host key and accept it",
    ),
    _Case(
        re.compile(r"from proxy after CONNECT|CONNECT tunnel failed|Proxy Authentication Required|returned error: 407"),
        UnsuitableDrone,
        _PROXY,
        "{url} cannot be reached from this drone: its proxy refuses",
        "on the drone's machine: git ls-remote {url} must work",
    ),
    _Case(
        re.compile(
            r"Authentication failed|could not read (Username|Password)|terminal prompts disabled|"
            r"Permission denied \(|returned error: 40[13]|HTTP 40[13]|invalid credentials|Access denied|"
            r"Permission to .{0,200} denied"
        ),
        UnsuitableDrone,
        "E-GIT-AUTH",
        "{url} denied access to this drone",
        "on the drone's machine: git ls-remote {url} must work; its git credentials are used",
    ),
    _Case(
        # Of a name server that does not answer, only ssh says so; curl says the same as of an unknown name.
        re.compile(
            r"(?s:\A(?!.*Temporary failure in name).*(Could not resolve (host|proxy)|Name or service not known|"
            r"nodename nor servname|No address associated with hostname))"
        ),
        UnsuitableDrone,
        NO_HOST,
        "the host of {url} is unknown on the drone's machine",
        "correct the URL: fleet project edit {project} --git-url URL; or on the drone's machine: git ls-remote {url}",
    ),
    _Case(
        re.compile(
            r"Failed to connect|Couldn't connect|Connection (refused|timed out|reset|closed)|"
            r"No route to host|Network is unreachable|Operation timed out|Operation too slow|ssh: connect to host|"
            r"kex_exchange_identification|Temporary failure in name|early EOF|"
            r"returned error: (429|5\d\d)|remote end hung up|took too long|unexpected disconnect|Empty reply|RPC failed"
        ),
        FleetFault,
        _UNREACHABLE,
        "{url} cannot be reached from this drone",
        "on the drone's machine: git ls-remote {url}; then: fleet retry ORDER",
    ),
    _Case(
        re.compile(
            r"not appear to be a git repository|does not exist|returned error: 404|"
            r"is this a git repository|not valid: is this|No such file or directory|not a git repository|not found"
        ),
        UnsuitableDrone,
        NOT_FOUND,
        "git repository {url} not found, or this drone has no access to it",
        "correct the URL: fleet project edit {project} --git-url URL",
    ),
)


def explain(failure: GitFailed, remote: Remote) -> FleetError:
    """The error that users see; a password in the URL or in git's own output does not appear in it."""
    why = _last_words(remote.clean(failure.message))
    for case in _CASES:
        if case.pattern.search(failure.message):
            what, following = (text.format(url=remote.shown, project=remote.project) for text in (case.what, case.next))
            if case.code in {NO_HOST, _UNREACHABLE, _PROXY} and (proxy := _proxy_of(failure, remote)):
                what = f"{remote.shown} cannot be reached from this drone through {proxy}"
                following = proxy.advice(remote.shown)
            return case.kind(what, code=case.code, why=why, next=following)
    return OrderError(
        f"git {failure.command} failed for {remote.shown}",
        code="E-GIT",
        why=why,
        next=f"on the drone's machine: git ls-remote {remote.shown}",
    )


def _proxy_of(failure: GitFailed, remote: Remote) -> Proxy | None:
    """The proxy of the environment, if git names it, or says that a proxy is at fault."""
    proxy = proxy_of(remote.url, os.environ)
    if proxy is None:
        return None
    host = proxy.host.rpartition(":")[0] or proxy.host
    return proxy if re.search(rf"[Pp]roxy|CONNECT tunnel|\b407\b|{re.escape(host)}", failure.message) else None


@contextmanager
def explained(remote: Remote) -> Iterator[None]:
    """Translate the errors of git and the disk in a block, once, at the boundary."""
    try:
        yield
    except GitFailed as failure:
        raise explain(failure, remote) from failure
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise fault_of(error) from error


@contextmanager
def reading(repository: Path | None) -> Iterator[None]:
    """Raise FleetFault `E-GIT-DAMAGED` if git cannot read a repository on this disk: the order is not at fault."""
    try:
        yield
    except GitFailed as failure:
        raise FleetFault(
            "a git repository on this drone's disk cannot be read",
            code="E-GIT-DAMAGED",
            why=_last_words(failure.message),
            next=f"on the drone's machine: git -C '{repository}' fsck; then: fleet retry ORDER",
        ) from failure


def _last_words(message: str) -> str:
    """The lines that say what went wrong; progress and hints are left out."""
    lines = [line.strip() for line in message.replace("\r", "\n").split("\n") if line.strip()]
    telling = [line for line in lines if line.startswith(("fatal:", "error:", "remote:", "ssh:", "!"))]
    return shortened("; ".join((telling or lines)[-3:]), 500)
