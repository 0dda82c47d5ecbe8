"""Measure, print the table, and fail where a ratio got worse: `make bench`.

python -m tests.bench.side_by_side --mini .venv-mini [--openhands .venv-openhands] [--rounds 5] [--only WORDS]
    [--json FILE] [--accepted FILE] [--accept]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.bench.side_by_side.report import BenchReport, BenchRow, Found, read_accepted
from tests.bench.side_by_side.rows import Peers, all_rows


def main() -> int:
    """Exit code 1: a ratio is worse than in the accepted run; 2: wrong use, and nothing was measured."""
    given = _arguments()
    openhands = given.openhands / "bin" / "python" if given.openhands else None
    peers = Peers(given.mini / "bin" / "python", openhands if openhands and openhands.exists() else None)
    if peers.openhands is None:
        _say("OpenHands is not installed (it needs Python 3.12): its columns are left out")
    rows = [row for row in all_rows(peers) if given.only in row.name]
    if not rows:
        _say(f"error: no row's name contains {given.only!r}")
        return 2
    try:
        # Before minutes of measuring.
        accepted = read_accepted(given.accepted.read_text()) if given.accepted.exists() else {}
    except ValueError as error:
        _say(
            f"error: {given.accepted} holds no accepted run: {error}; next: measure with --accept, which writes it anew"
        )
        return 2
    report = BenchReport(_measured(rows, given.rounds))
    document = {"at": f"{datetime.now(UTC):%Y-%m-%d}", "machine": _machine(), **report.document()}
    sys.stdout.write(f"{report.table()}\n")
    _written(given.json, document)
    if given.accept:
        _written(given.accepted, document)
        return 0
    worse = report.worse_than(accepted)
    for sentence in worse:
        _say(f"worse: {sentence}")
    return 1 if worse else 0


def _measured(rows: Sequence[BenchRow], rounds: int) -> list[Found]:
    """Every row in every round: a busy minute disturbs one round of each row, and not all rounds of one."""
    found: dict[str, dict[str, list[float]]] = {row.name: defaultdict(list) for row in rows}
    for number in range(1, rounds + 1):
        for row in rows:
            _say(f"round {number} of {rounds}: {row.name}")
            for column, figure in row.measure().items():
                found[row.name][column].append(figure)
    return [Found(row, found[row.name]) for row in rows]


def _machine() -> str:
    return (
        f"{os.cpu_count()} cores, {platform.machine()}, Linux {platform.release()}, Python {platform.python_version()}"
    )


def _written(path: Path, document: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n")


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Dronefleet beside what people use today, as ratios.")
    parser.add_argument("--mini", type=Path, required=True, help="the environment of mini-swe-agent")
    parser.add_argument("--openhands", type=Path, help="the environment of OpenHands")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="only rows whose name contains this")
    parser.add_argument("--json", type=Path, default=Path("bench-results/bench.json"))
    parser.add_argument("--accepted", type=Path, default=Path("docs/performance.json"))
    parser.add_argument("--accept", action="store_true", help="make this run the one that later ones are compared with")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
