"""A process that exchanges two directory entries without a pause, as a hostile one beside a tool would."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_EXCHANGE = """
import ctypes, sys
exchange = ctypes.CDLL(None).renameat2
one, other = (path.encode() for path in sys.argv[1:])
print("ready", flush=True)
while exchange(-100, one, -100, other, 2) == 0:
    pass
"""
"""-100 is AT_FDCWD, and 2 is RENAME_EXCHANGE."""


@contextmanager
def exchanging(one: Path, other: Path) -> Iterator[None]:
    """Exchange both until the end; skips the test on a system that cannot."""
    command = [sys.executable, "-I", "-S", "-c", _EXCHANGE, str(one), str(other)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            assert process.stdout is not None
            if process.stdout.readline() != b"ready\n":
                pytest.skip("this system has no renameat2")
            yield
            ended = process.poll()
        finally:
            process.kill()
    assert ended is None, "the exchanges ended before the test"
