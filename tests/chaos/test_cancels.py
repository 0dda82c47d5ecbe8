"""Cancels of runs whose commands try to escape, four at once: no process outlives its receipt.

Real drones on a real Valkey, one with bubblewrap and one without, with a stand-in for the control plane. The test also
searches for remaining processes itself, by arguments and working directories that only these runs have, which exposes a
wrong receipt. Each run of the drone without bubblewrap has an MCP server.
"""

from __future__ import annotations

import json
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from itertools import count, cycle, islice
from pathlib import Path

import psutil
import pytest

from shared import names
from shared.control import Cancel, ControlMessage
from shared.events import Event, Receipt, RunEnded
from tests.support import mcp_program, wait_until
from tests.support.control_stand_in import ControlPlaneStandIn, Dispatch
from tests.support.drones import DroneUnderTest
from tests.support.runs import order_for, shell
from tests.support.sandboxes import processes_with, sandbox_of
from tests.support.scripted import ScriptedFactory

pytestmark = [pytest.mark.chaos, pytest.mark.hostile]
MakeDrone = Callable[..., DroneUnderTest]
AT_ONCE = 4
MEDIAN_SECONDS = 1.0
"""From the cancel to the receipt, for processes that obey SIGTERM."""
TERM_SECONDS = 10.0
"""For the other processes, which are killed after this time."""
SLACK_SECONDS = 8.0
"""For the check for survivors and for the report, on a machine that four runs share with other tests."""


@dataclass(frozen=True)
class Way:
    """How a command tries to escape. `{}` is a sleep duration that no other process has."""

    name: str
    command: str
    processes: int = 2
    """The minimum number of its processes that have the sleep duration as an argument."""
    stubborn: bool = False
    """It ignores SIGTERM."""


_PYTHON = f"{sys.base_prefix}/bin/python3"
"""Also visible inside bubblewrap."""
_RENAMED = "import sys, time; open('/proc/self/comm', 'w').write('kworker/0:1'); time.sleep(float(sys.argv[1]))"
_DAEMON = (
    "import os, signal, sys, time; os.fork() and sys.exit(); os.setsid(); os.fork() and sys.exit(); "
    "[signal.signal(n, signal.SIG_IGN) for n in (1, 2, 15)]; time.sleep(float(sys.argv[1]))"
)
WAYS = (
    Way("stays where it is", "sleep {}", 1),
    Way("setsid", "setsid sleep {} & sleep {}"),
    Way("nohup", "nohup sleep {} >/dev/null 2>&1 & sleep {}"),
    Way("ignores SIGTERM", "trap '' TERM INT HUP; sleep {}; sleep {}; sleep {}", 1, stubborn=True),
    Way("double fork", "(setsid sleep {} &) & sleep {}"),
    Way("without environment", "(env -i setsid sleep {} >/dev/null 2>&1 &); sleep {}"),
    Way("another name", f'(env -i setsid {_PYTHON} -c "{_RENAMED}" {{}} &); exec -a "[kworker/1:2]" sleep {{}}'),
    Way("stopped", "sleep {} & sleep 0.5; kill -STOP $!; sleep {}"),
    Way("daemon that ignores SIGTERM", f'{_PYTHON} -c "{_DAEMON}" {{}}; sleep {{}}', stubborn=True),
    Way("forty at once", "for i in $(seq 40); do sleep {} & done; wait", 40),
    Way("fork bomb", "for i in $(seq 12); do (while :; do sleep 0.1; done) & done; sleep {}", 1),
)


@dataclass(frozen=True)
class Canceled:
    """One cancel and its outcome."""

    way: Way
    sandbox: str
    seconds: float
    receipt: Receipt | None
    left: tuple[int, ...]


@pytest.mark.long
@pytest.mark.timeout(300)
def test_no_process_outlives_the_receipt_of_eight_cancels(
    stand_in: ControlPlaneStandIn, make_drone: MakeDrone, repository: Path, scripted: ScriptedFactory
) -> None:
    done = list(_cancel(8, _Ground(stand_in, make_drone, repository, scripted)))

    # Other tests may keep the machine busy, so only the long form checks the seconds.
    _judge(done, least=8, slack=60.0)


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_no_process_outlives_the_receipt_of_a_hundred_cancels(
    stand_in: ControlPlaneStandIn, make_drone: MakeDrone, repository: Path, scripted: ScriptedFactory
) -> None:
    done = list(_cancel(100, _Ground(stand_in, make_drone, repository, scripted)))

    _judge(done, least=100)
    willing = [each.seconds for each in done if not each.way.stubborn]
    assert statistics.median(willing) <= MEDIAN_SECONDS, _table(done)


@dataclass
class _Ground:
    """Drones with both kinds of sandbox, as far as this machine supports them."""

    fleet: ControlPlaneStandIn
    make_drone: MakeDrone
    repository: Path
    scripted: ScriptedFactory
    drones: dict[str, DroneUnderTest] = field(default_factory=dict)
    turn: threading.Lock = field(default_factory=threading.Lock)
    """Held while one cancel is timed; cancels that end with SIGKILL anyway do not need it."""
    numbers: Iterator[int] = field(default_factory=lambda: count(int(names.new_id(), 16) % 100_000_000))

    def start(self) -> None:
        for kind in ("none", "bwrap"):
            with suppress(pytest.skip.Exception):
                sandbox_of(kind)
                self.drones[kind] = self.make_drone(concurrency=AT_ONCE // 2, sandbox=kind)
        server = {"command": sys.executable, "args": [mcp_program.__file__, "raw"]}
        for drone in self.drones.values():
            (drone.home.path / "mcp.json").write_text(json.dumps({"mcpServers": {"mine": server}}))
            drone.start_worker()
        for drone in self.drones.values():
            drone.wait_warm(seconds=90)

    def cancel(self, way: Way, kind: str, watch: _Watch, ready: threading.Barrier) -> Canceled:
        """Run the way's command, cancel it once its processes exist and all runs are `ready`; wait for the receipt."""
        drone, number = self.drones[kind], f"1{next(self.numbers)}.5"
        model = self.scripted([shell(way.command.replace("{}", number)), {"text": "Done."}])
        sent = self.fleet.dispatch(order_for(drone.id, self.repository, model.url))
        wait_until(lambda: len(processes_with(number)) >= way.processes, seconds=90)
        ready.wait(90)
        with nullcontext() if way.stubborn else self.turn:
            began = time.monotonic()
            self.fleet.broker.revoke_run(drone.id, sent.run_id, 1)
            cancel = Cancel(run_id=sent.run_id, generation=1, reason="enough")
            self.fleet.tell(drone.id, ControlMessage(id=names.new_id(), body=cancel))
            end, at = watch.ended(sent)
        return Canceled(way, kind, at - began, end.receipt, tuple(processes_with(number)))

    def left(self) -> list[int]:
        """Processes whose working directory is in a drone's workspace; those of the drones themselves are not."""
        roots = [drone.config.workspace for drone in self.drones.values()]
        return [process.pid for process in psutil.process_iter() if _works_in(process, roots)]


class _Watch:
    """Opens each entry of the drones' streams once, as it arrives, and records the time of each run's last event."""

    def __init__(self, ground: _Ground) -> None:
        self._ground = ground
        self._ended: dict[str, tuple[RunEnded, float]] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> _Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(10)

    def ended(self, sent: Dispatch) -> tuple[RunEnded, float]:
        return wait_until(lambda: self._ended.get(sent.run_id), seconds=60, every=0.02)

    def _look(self) -> None:
        fleet, seen = self._ground.fleet, {drone.id: "-" for drone in self._ground.drones.values()}
        while not self._over.wait(0.02):
            for drone_id, last in seen.items():
                for entry, event in fleet.stream_after(drone_id, last):
                    seen[drone_id] = f"({entry}"
                    if isinstance(event, Event) and isinstance(event.body, RunEnded):
                        self._ended[event.run_id] = event.body, time.monotonic()


def _cancel(number: int, ground: _Ground) -> Iterator[Canceled]:
    ground.start()
    kinds = cycle(ground.drones)
    chosen = [(way, next(kinds)) for way in islice(cycle(WAYS), number)]
    with _Watch(ground) as watch, ThreadPoolExecutor(AT_ONCE) as pool:
        while chosen:
            together, chosen = chosen[:AT_ONCE], chosen[AT_ONCE:]
            ready = threading.Barrier(len(together))
            yield from pool.map(lambda each, ready=ready: ground.cancel(*each, watch, ready), together)
    wait_until(lambda: not ground.left(), seconds=5)


def _judge(done: list[Canceled], *, least: int, slack: float = SLACK_SECONDS) -> None:
    sys.stdout.write(_table(done))
    wrong = [each for each in done if not _is_complete(each)]
    late = [each for each in done if each.seconds > slack + (TERM_SECONDS if each.way.stubborn else 0)]
    early = [each for each in done if each.way.stubborn and each.seconds < TERM_SECONDS]
    assert (len(done), wrong, late, early) == (least, [], [], [])


def _is_complete(done: Canceled) -> bool:
    receipt = done.receipt
    return (
        receipt is not None
        and not done.left
        and receipt.survivors == 0
        and receipt.ended == receipt.found >= done.way.processes
    )


def _table(done: list[Canceled]) -> str:
    """One line per way and sandbox, as in the documentation."""
    lines = ["", f"{'way':<30} {'sandbox':<8} {'runs':>4} {'found':>6} {'survivors':>9} {'median':>8} {'slowest':>8}"]
    for way, kind in sorted({(each.way.name, each.sandbox) for each in done}):
        these = [each for each in done if (each.way.name, each.sandbox) == (way, kind)]
        found = sum(each.receipt.found for each in these if each.receipt)
        alive = sum(each.receipt.survivors + len(each.left) for each in these if each.receipt)
        seconds = [each.seconds for each in these]
        median, slowest = f"{statistics.median(seconds):.2f} s", f"{max(seconds):.2f} s"
        lines.append(f"{way:<30} {kind:<8} {len(these):>4} {found:>6} {alive:>9} {median:>8} {slowest:>8}")
    return "\n".join([*lines, ""])


def _works_in(process: psutil.Process, roots: list[str]) -> bool:
    with suppress(psutil.Error, OSError):
        return process.status() != psutil.STATUS_ZOMBIE and process.cwd().startswith(tuple(roots))
    return False
