"""Words before a program that start it as on another machine: with a resolver and, if wanted, a user of its own.

The program gets a mount namespace, so that nothing changes for other processes; programs of util-linux make it, and
only root may.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

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
