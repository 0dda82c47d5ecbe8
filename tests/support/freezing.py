"""Suspended processes, as on a laptop that sleeps, or on a machine that swaps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil


@contextmanager
def frozen(pid: int) -> Iterator[None]:
    """Suspend a process and its descendants meanwhile.

    Parents come first, so that a suspended one starts no other; a descendant that ends before its turn is passed over.
    """
    root = psutil.Process(pid)
    suspended = []
    try:
        for process in (root, *root.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                process.suspend()
                suspended.append(process)
        yield
    finally:
        for process in reversed(suspended):
            with suppress(psutil.NoSuchProcess):
                process.resume()
