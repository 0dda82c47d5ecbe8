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

from drone.sandbox import choose
from tests.bench.side_by_side.clients import Alone, Floor, MiniSteps, OpenHandsSteps, StepClient, steps_of
from tests.bench.side_by_side.fleet_rows import fleet_rows
from tests.bench.side_by_side.report import Aim, BenchRow
from tests.bench.side_by_side.scale_rows import scale_rows
from tests.bench.side_by_side.size_rows import size_rows

BIN = Path(sys.executable).parent


@dataclass(frozen=True)
class Peers:
    """The Pythons of the environments of what we compare with."""

    mini: Path
    openhands: Path | None
    """None: it is not installed here."""


def all_rows(peers: Peers) -> list[BenchRow]:
    """Every row, in the order of the table."""
    return [*_loop(peers), *fleet_rows(), *size_rows(), *scale_rows(), *_commands(), *_starts()]


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
            bound="LiteLLM's call, bwrap's start, two syncs of the journal",
            ours=Alone().name,
        )


def _late_steps(clients: list[StepClient], steps: int) -> Mapping[str, float]:
    return {client.name: steps_of(client, steps).late_ms for client in clients}


def _commands() -> Iterator[BenchRow]:
    yield BenchRow(
        "a command in bubblewrap",
        partial(_command, "bwrap"),
        "ms",
        (Aim("bwrap, same arguments", 1.3),),
        bound="bwrap's mounts",
    )
    yield BenchRow(
        "a command without a sandbox",
        partial(_command, "none"),
        "ms",
        (Aim("subprocess and one fsync", 2.0),),
        bound="the start of the keeper, a Python that holds the command's processes",
    )


def _command(kind: str, times: int = 40) -> Mapping[str, float]:
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        where = Path(directory)
        where.chmod(0o755)
        (where / "work").mkdir()
        session = choose(kind, os.environ).for_session(scratch=where / "scratch")
        session.run(["true"], workspace=where / "work", timeout=60)
        line = session.line(["true"], workspace=where / "work")

        def ours() -> None:
            session.run(["true"], workspace=where / "work", timeout=60)

        def same() -> None:
            given = dict(line.environment)
            subprocess.run(
                line.arguments, check=True, cwd="/", env=given, stdin=subprocess.DEVNULL, capture_output=True
            )

        def bare() -> None:
            subprocess.run(["true"], check=True, stdin=subprocess.DEVNULL, capture_output=True)
            with (where / "record").open("ab") as record:
                record.write(b"a line\n")
                record.flush()
                os.fsync(record.fileno())

        beside = {"bwrap, same arguments": same} if kind == "bwrap" else {"subprocess and one fsync": bare}
        return _medians({"ours": ours, **beside}, times)


def _starts() -> Iterator[BenchRow]:
    yield BenchRow(
        "`drone run` to its first request",
        _first_request,
        "s",
        (Aim("import litellm", 0.5),),
        bound="the import of LiteLLM",
        ours="drone run",
    )
    yield BenchRow(
        "`fleet --help`",
        partial(_programs, {"ours": [str(BIN / "fleet"), "--help"], "import typer": _python("import typer")}),
        "s",
        (Aim("import typer", 2.0),),
        bound="Typer's import",
    )


def _first_request() -> Mapping[str, float]:
    return {
        "drone run": steps_of(Alone(), 1).to_first_s,
        **_programs({"import litellm": _python("import litellm")}, times=1),
    }


def _python(line: str) -> list[str]:
    return [sys.executable, "-c", line]


def _programs(programs: Mapping[str, list[str]], times: int = 5) -> Mapping[str, float]:
    environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}

    def start(words: list[str]) -> None:
        subprocess.run(words, check=True, env=environment, stdin=subprocess.DEVNULL, capture_output=True)

    found = _medians({name: partial(start, words) for name, words in programs.items()}, times)
    return {name: each / 1e3 for name, each in found.items()}


def _medians(work: Mapping[str, Callable[[], None]], times: int) -> dict[str, float]:
    """The median milliseconds of each, done in turn."""
    spent: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(times):
        for name, do in work.items():
            began = time.perf_counter()
            do()
            spent[name].append(1e3 * (time.perf_counter() - began))
    return {name: sorted(each)[len(each) // 2] for name, each in spent.items()}
