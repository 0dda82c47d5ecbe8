"""Names the fixture modules; each lives beside what it starts, in tests/support."""

from __future__ import annotations

import os
import signal
import sys

pytest_plugins = [
    "tests.support.database",
    "tests.support.broker",
    "tests.support.scripted",
    "tests.support.repositories",
    "tests.support.git_servers",
    "tests.support.sandboxes",
    "tests.support.fleet",
    "tests.support.drones",
    "tests.support.mcp_servers",
    "tests.support.disks",
    "tests.support.outages",
    "tests.support.receivers",
]


def pytest_configure() -> None:
    """Let Ctrl-C reach the programs that tests start, also where the tests run as a background job of a script.

    A shell without job control starts those with SIGINT ignored, and every child inherits that.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


# Every process that tests start loads some hundred modules: without compiled ones that takes three times as long.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
