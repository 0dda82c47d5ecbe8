"""The rows of the table: what is measured, beside what, and the aims."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

from drone.sandbox import CommandSpec, choose
from tests.bench.side_by_side.clients import Alone, Floor, MiniSteps, OpenHandsSteps, StepClient, steps_of
from tests.bench.side_by_side.fleet_rows import fleet_rows
from tests.bench.side_by_side.report import Aim, BenchRow
from tests.bench.side_by_side.scale_rows import scale_rows


@dataclass(frozen=True)
class Peers:
    """The Pythons of the environments of what we compare with."""

    mini: Path
    openhands: Path | None
    """None: it is not installed here."""


def all_rows(peers: Peers) -> list[BenchRow]:
    """Every row, in the order of the table."""
    return [*_loop(peers), *fleet_rows(), *scale_rows(), *_commands()]


def _loop(peers: Peers) -> Iterator[BenchRow]:
    beside: list[StepClient] = [MiniSteps(peers.mini), MiniSteps(peers.mini, "bwrap")]
    if peers.openhands is not None:
        beside.append(OpenHandsSteps(peers.openhands))
    for steps, of_mini in ((100, 0.3), (400, 0.2)):
        clients = [Alone(), Floor(), *beside]
        yield BenchRow(
            f"a step of the loop, after {steps}",
            partial(_late_steps, clients, steps),
            "ms",
            (Aim("floor", 1.5), *(Aim(each.name, of_mini) for each in beside)),
            bound="LiteLLM's call, the command's start by its keeper, two syncs of the journal",
            ours=Alone().name,
        )


def _late_steps(clients: list[StepClient], steps: int) -> Mapping[str, float]:
    return {client.name: steps_of(client, steps).late_ms for client in clients}


def _commands() -> Iterator[BenchRow]:
    yield BenchRow(
        "a command without a sandbox",
        _command,
        "ms",
        (Aim("subprocess and one fsync", 2.0),),
        bound="the start of the keeper, a Python that holds the command's processes",
    )
    yield BenchRow(
        "`drone run` to its first request",
        _first_request,
        "s",
        (Aim("import litellm", 0.5),),
        bound="the import of LiteLLM",
        ours="drone run",
    )


def _command(times: int = 40) -> Mapping[str, float]:
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        where = Path(directory)
        where.chmod(0o755)
        (where / "work").mkdir()
        session = choose("none", os.environ).for_session(scratch=where / "scratch")

        def ours() -> None:
            session.run(CommandSpec(["true"], workspace=where / "work", timeout=60))

        def bare() -> None:
            subprocess.run(["true"], check=True, stdin=subprocess.DEVNULL, capture_output=True)
            with (where / "record").open("ab") as record:
                record.write(b"a line\n")
                record.flush()
                os.fsync(record.fileno())

        pairs = [(_ms(ours), _ms(bare)) for _ in range(times + 1)][1:]
        of_ours, of_bare = zip(*pairs, strict=True)
        return {"ours": median(of_ours), "subprocess and one fsync": median(of_bare)}


def _first_request() -> Mapping[str, float]:
    environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    words = [sys.executable, "-c", "import litellm"]
    imported = _ms(lambda: subprocess.run(words, check=True, env=environment, stdin=subprocess.DEVNULL))
    return {"drone run": steps_of(Alone(), 1).to_first_s, "import litellm": imported / 1e3}


def _ms(do: Callable[[], object]) -> float:
    began = time.perf_counter()
    do()
    return 1e3 * (time.perf_counter() - began)
