"""Cancels of runs whose commands try to escape, four at once: no process outlives its receipt.

Real drones on a real Valkey, one with bubblewrap and one without, with a stand-in for the control plane. The test also
searches for remaining processes itself, by arguments and working directories that only these runs have, which exposes a
wrong receipt. Each run of the drone without bubblewrap has an MCP server.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

import psutil
import pytest

from shared import names
from shared.control import Cancel, ControlMessage
from tests.support import mcp_program, wait_until
from tests.support.control_stand_in import ControlPlaneStandIn
from tests.support.drones import DroneUnderTest
from tests.support.runs import order_for, shell
from tests.support.sandboxes import processes_with, sandbox_of
from tests.support.scripted import ScriptedFactory

pytestmark = [pytest.mark.chaos, pytest.mark.hostile, pytest.mark.long, pytest.mark.timeout(1200)]
AT_ONCE = 4
TERM_SECONDS = 10.0
"""What ignores SIGTERM is killed after this time."""


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


@pytest.fixture
def drones(make_drone: Callable[..., DroneUnderTest]) -> dict[str, DroneUnderTest]:
    """Drones with both kinds of sandbox, as far as this machine supports them."""
    made = {}
    for kind in ("none", "bwrap"):
        with suppress(pytest.skip.Exception):
            sandbox_of(kind)
            made[kind] = make_drone(concurrency=AT_ONCE // 2, sandbox=kind)
    server = {"command": sys.executable, "args": [mcp_program.__file__, "raw"]}
    for drone in made.values():
        (drone.home.path / "mcp.json").write_text(json.dumps({"mcpServers": {"mine": server}}))
        drone.start_worker()
    for drone in made.values():
        drone.wait_warm(seconds=90)
    return made


def test_no_process_outlives_the_receipt_of_a_hundred_cancels(
    stand_in: ControlPlaneStandIn, drones: dict[str, DroneUnderTest], repository: Path, scripted: ScriptedFactory
) -> None:
    def canceled(way: Way, kind: str, ready: threading.Barrier) -> str:
        """Run the way's command, cancel it once its processes exist and all runs are `ready`; what is wrong then."""
        drone, number = drones[kind], f"1{int(names.new_id(), 16) % 100_000_000}.5"
        model = scripted([shell(way.command.replace("{}", number)), {"text": "Done."}])
        sent = stand_in.dispatch(order_for(drone.id, repository, model.url))
        wait_until(lambda: len(processes_with(number)) >= way.processes, seconds=90)
        ready.wait(90)
        began = time.monotonic()
        stand_in.broker.revoke_run(drone.id, sent.run_id, 1)
        cancel = Cancel(run_id=sent.run_id, generation=1, reason="enough")
        stand_in.tell(drone.id, ControlMessage(id=names.new_id(), body=cancel))
        receipt = stand_in.ended(sent).receipt
        early = way.stubborn and time.monotonic() - began < TERM_SECONDS
        left = processes_with(number)
        complete = receipt and receipt.survivors == 0 and receipt.ended == receipt.found >= way.processes
        return "" if complete and not left and not early else f"{way.name}, {kind}: {receipt}, {left}, {early}"

    kinds = cycle(drones)
    chosen = [(way, next(kinds)) for way in islice(cycle(WAYS), 100)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for begin in range(0, len(chosen), AT_ONCE):
            ready = threading.Barrier(AT_ONCE)
            together = chosen[begin : begin + AT_ONCE]
            assert list(pool.map(lambda each, ready=ready: canceled(*each, ready), together)) == [""] * AT_ONCE
    roots = tuple(drone.config.workspace for drone in drones.values())
    wait_until(lambda: not any(works_in(process, roots) for process in psutil.process_iter()))


def works_in(process: psutil.Process, roots: tuple[str, ...]) -> bool:
    with suppress(psutil.Error, OSError):
        return process.status() != psutil.STATUS_ZOMBIE and process.cwd().startswith(roots)
    return False
