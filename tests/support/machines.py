"""Words before a program that start it as on another machine.

`Machine` gives it a resolver and, if wanted, a user of its own, in a mount namespace, so that nothing changes for other
processes; programs of util-linux make it. `Island` gives it a network of its own with one link. Only root may do both.
"""

from __future__ import annotations

import os
import random
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from shared import names
from tests.support import needs

ORDINARY = 61_234
"""The id of a user without a name, a home and other files or processes."""
_NEEDED = (Path(sys.base_prefix), Path(sys.prefix), Path(__file__).parents[2])
"""The interpreter of the tests, its packages and the project: root may have them in a directory of its own."""


@dataclass(frozen=True)
class Machine:
    """Where a drone runs."""

    resolver: Path
    """Takes the place of /etc/resolv.conf."""
    room: Path
    """An empty directory."""
    processes: int
    """No user but root has more of them, from the program's start on."""
    user: int | None = None
    """None: that of the tests."""

    @property
    def words(self) -> list[str]:
        """In front of a command; the process that they start becomes the command."""
        return ["unshare", "--mount", "sh", "-ec", "\n".join(self._script()), "sh"]

    def _script(self) -> Iterator[str]:
        yield f"mount --bind {_quoted(self.resolver)} /etc/resolv.conf"
        bound = f"exec prlimit --nproc={self.processes}:{self.processes}"
        if self.user is None:
            yield f'{bound} "$@"'
            return
        for closed in sorted({top for path in _NEEDED if (top := _closed_above(path))}):
            yield from self._opened(closed)
        yield f'{bound} setpriv --reuid {self.user} --regid {self.user} --clear-groups -- "$@"'

    def _opened(self, closed: Path) -> Iterator[str]:
        """Lines that put an empty directory in place of a closed one, with nothing but what the program needs."""
        kept = {path: self.room / str(n) for n, path in enumerate(_NEEDED) if path.is_relative_to(closed)}
        for path, place in kept.items():
            yield f"mkdir -p {_quoted(place)} && mount --bind {_quoted(path)} {_quoted(place)}"
        yield f"mount -t tmpfs -o mode=755 none {_quoted(closed)}"
        for path, place in kept.items():
            yield f"(umask 022 && mkdir -p {_quoted(path)}) && mount --bind {_quoted(place)} {_quoted(path)}"


def needs_root() -> None:
    """Skip the test unless it may make such a machine."""
    for program in ("unshare", "mount", "prlimit", "setpriv"):
        needs(program)
    if os.geteuid() != 0:
        pytest.skip("only root can give a program another resolver and another user")


def _closed_above(path: Path) -> Path | None:
    """The first directory on the way to `path` that other users cannot pass."""
    return next((each for each in reversed(path.parents) if not each.stat().st_mode & 0o001), None)


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))


@dataclass
class Island:
    """A network namespace with one link to the host; the address of the host's side is `bridgehead`."""

    name: str
    bridgehead: str
    shore: str

    @property
    def words(self) -> list[str]:
        """In front of a command that runs on the island; the process that they start becomes the command."""
        return ["ip", "netns", "exec", self.name]

    @property
    def link(self) -> str:
        """The host's side of the link."""
        return f"v{self.name}"

    def command(self, *words: str) -> list[str]:
        """The command that runs `words` on the island."""
        return [*self.words, *words]

    def reach(self, address: str) -> None:
        """Let programs on the island connect to another address of the host."""
        _ip("-n", self.name, "route", "add", f"{address}/32", "via", self.bridgehead)

    @contextmanager
    def cut_off(self, *, silently: bool) -> Iterator[None]:
        """Block all traffic meanwhile: the link is down, or (`silently`) answers are dropped without an error."""
        address = f"{self.shore}/32"
        begin, end = (["link", "set", self.link, state] for state in ("down", "up"))
        if silently:
            begin, end = (["route", verb, "blackhole", address] for verb in ("add", "del"))
        _ip(*begin)
        try:
            yield
        finally:
            _ip(*end)


@contextmanager
def new_island() -> Iterator[Island]:
    """A network namespace. Skips the test if the tests are not allowed to create one."""
    needs("ip")
    if os.geteuid() != 0:
        pytest.skip("network namespaces can be made by root alone")
    name, number = f"i{names.new_id()[:8]}", random.randrange(256)
    made = Island(name, f"10.213.{number}.1", f"10.213.{number}.2")
    try:
        _ip("netns", "add", name)
    except subprocess.CalledProcessError:
        pytest.skip("network namespaces cannot be made here")
    try:
        _ip("link", "add", f"v{name}", "type", "veth", "peer", "name", "eth0", "netns", name)
        _ip("addr", "add", f"{made.bridgehead}/30", "dev", f"v{name}")
        _ip("link", "set", f"v{name}", "up")
        for words in (["addr", "add", f"{made.shore}/30", "dev", "eth0"], ["link", "set", "eth0", "up"]):
            _ip("-n", name, *words)
        _ip("-n", name, "link", "set", "lo", "up")
        yield made
    finally:
        _ip("netns", "del", name)


@contextmanager
def host_address() -> Iterator[str]:
    """An address of this machine that no link has: it stays when links are cut. Only root may."""
    address = f"10.214.{random.randrange(256)}.{random.randrange(1, 255)}"
    _ip("addr", "add", f"{address}/32", "dev", "lo")
    try:
        yield address
    finally:
        _ip("addr", "del", f"{address}/32", "dev", "lo")


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=60)
