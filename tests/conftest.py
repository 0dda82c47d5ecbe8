"""Registers the fixture modules in tests/support; each fixture is in the module of what it starts."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from tests.support.quiet_logs import quiet_logs

# Nothing imported during collection becomes garbage, and searching for garbage takes a third of that time.
gc.disable()

# The duration of one example depends on the machine; a test's own time limit remains.
settings.register_profile("dronefleet", deadline=None, max_examples=30)
settings.register_profile("thorough", deadline=None, max_examples=1000)
settings.load_profile("dronefleet")

pytest_plugins = [
    "tests.support.skips",
    "tests.support.left_behind",
    "tests.support.compiled_statements",
    "tests.support.database",
    "tests.support.broker",
    "tests.support.planes",
    "tests.support.scripted",
    "tests.support.repositories",
    "tests.support.git_servers",
    "tests.support.containers",
    "tests.support.sandboxes",
    "tests.support.fleet",
    "tests.support.drones",
    "tests.support.mcp_servers",
    "tests.support.disks",
    "tests.support.outages",
    "tests.support.receivers",
    "tests.support.otlp_receivers",
    "tests.support.mail_servers",
    "tests.support.push_services",
    "tests.support.attention",
    "tests.support.s3_server",
]


def pytest_configure(config: pytest.Config) -> None:
    """Keep logs off stdout, and let Ctrl-C reach the programs that tests start.

    A shell without job control starts the tests of a script with SIGINT ignored, and every child inherits that.
    """
    if config.args_source is not pytest.Config.ArgsSource.ARGS and not config.option.keyword:
        _require_room()
    quiet_logs()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


# Every process that tests start loads some hundred modules: without bytecode files that takes three times as long.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# A title is one more order for each new session, which most tests do not expect.
os.environ["FLEET_SESSION_TITLES"] = "false"
sys.dont_write_bytecode = False


_ROOT = Path(__file__).parents[1]
_ROOM = 4 * 10**9
"""Bytes that all tests together need for what they write."""
_WAITING = (
    "chaos/",
    "integration/broker/",
    "integration/collector/",
    "integration/fleet/",
    "integration/mcp_servers/",
    "integration/replay/",
    "integration/worker/",
)
"""Test directories that mostly wait: their own processor time is less than a quarter of their duration."""
_PROGRAMS = ("acceptance/", "browser/")
"""Test directories that start whole programs: they wait for more than half of their duration."""
_TOGETHER = {"warm_model": "tests/with LiteLLM", "shared_fleet": "tests/acceptance/with the shared fleet"}
"""What takes seconds of a processor to start, and the name of the tests that use it: one process runs all of them."""
_WAITS, _STARTS, _COMPUTES = range(3)
_KINDS = ((_WAITS, _COMPUTES, _STARTS), (_STARTS, _WAITS, _COMPUTES), (_COMPUTES, _WAITS, _STARTS))
"""What a process takes first, second and last: few of them then have to prepare what starts programs quickly."""
_SLOWEST_FIRST = (
    *_WAITING,
    *_PROGRAMS,
    "hostile/",
    "bench/",
    "integration/workspace/",
    "integration/",
    "unit/processes/",
)
"""Test directories in the order in which they start, so that no slow file is left for the end."""


def _require_room() -> None:
    # A full disk would make hundreds of tests fail, none of which would say why.
    try:
        directory = tempfile.gettempdir()
        room = shutil.disk_usage(directory).free
    except FileNotFoundError:
        directory, room = os.environ.get("TMPDIR", "/tmp"), 0
    if room < _ROOM:
        raise pytest.UsageError(
            f"{directory} has room for {room // 10**6} MB, and the tests need {_ROOM // 10**6}: "
            "make some, or name another directory: TMPDIR=/path make test"
        )


def pytest_collection_finish() -> None:
    """Enable garbage collection for objects made by tests, and exempt the modules and the tests themselves from it."""
    gc.freeze()
    gc.enable()
    gc.set_threshold(10_000, 10, 10)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the slow tests first."""
    items.sort(key=_room)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    """Keep the tests of a file in one process, where they share what they start, unless the file is marked `apart`."""
    return _ByFile(config, log) if config.getvalue("dist") == "loadscope" else None


class _ByFile(LoadScopeScheduling):
    # Not by xdist_group: xdist 3.8 writes the group to an attribute that pytest 9 does not read.
    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        if _mentions(file, "pytest.mark.apart"):
            return nodeid
        return next((scope for word, scope in _TOGETHER.items() if _mentions(file, word)), file)

    def _assign_work_unit(self, node: Any) -> None:
        # The processes begin in turn with tests that wait, with whole programs, and with tests that compute: if all
        # wait at the same time, the processor is idle.
        order = _KINDS[list(self.assigned_work).index(node) % 3]
        chosen = min(self.workqueue, key=lambda scope: order.index(_kind(scope)))
        self.workqueue.move_to_end(chosen, last=False)
        super()._assign_work_unit(node)


@cache
def _mentions(file: str, word: str) -> bool:
    # Read from the text: the process that distributes the tests does not import them.
    return word in (_ROOT / file).read_text()


def _kind(scope: str) -> int:
    within = scope.removeprefix("tests/")
    return _WAITS if within.startswith(_WAITING) else _STARTS if within.startswith(_PROGRAMS) else _COMPUTES


def _room(item: pytest.Item) -> int:
    within = item.location[0].removeprefix("tests/")
    return next((n for n, room in enumerate(_SLOWEST_FIRST) if within.startswith(room)), len(_SLOWEST_FIRST))
