"""`python -m tests.scale --drones N --orders M`: print one simulation's figures; exit 1 where a promise is broken."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path

from tests.scale.bare_celery import tasks_per_s
from tests.scale.fleet import ScaleSize
from tests.scale.simulation import FleetSample, simulate


def main(words: Sequence[str] | None = None) -> int:
    """Run what the command line says."""
    given = _parser().parse_args(words)
    size = ScaleSize(**{each.name: getattr(given, each.name) for each in fields(ScaleSize)})
    with tempfile.TemporaryDirectory(prefix="scale-") as directory:
        outcome = simulate(size, Path(directory) / "fleet")
        if given.celery:
            outcome.figures["celery_tasks_per_s"] = tasks_per_s(Path(directory) / "celery", given.celery)
    if given.json is not None:
        given.json.write_text(json.dumps({"size": asdict(size), **asdict(outcome)}, indent=1))
    lines = [f"{name:16} {figure}" for name, figure in {**outcome.promises, **outcome.figures}.items()]
    # At most about 20 samples, the last one among them.
    lines += map(_line, [*outcome.samples[: -1 : max(1, len(outcome.samples) // 20)], outcome.samples[-1]])
    sys.stdout.write("\n".join([*lines, *(f"BROKEN  {each}" for each in outcome.broken()), ""]))
    return 1 if outcome.broken() else 0


def _line(sample: FleetSample) -> str:
    used = (f"{name} {u.cpu_s:.1f} s {u.rss_mb:.0f} MB {u.open_files}" for name, u in sample.usage.items())
    return f"{sample.at_s:.0f} s: {sample.ended} ended, list {sample.board_s:.2f} s; {', '.join(used)}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.scale", description=__doc__)
    for each in fields(ScaleSize):
        option = f"--{each.name.replace('_', '-')}"
        if isinstance(each.default, bool):
            parser.add_argument(option, action="store_true")
        else:
            parser.add_argument(option, type=type(each.default), default=each.default)
    parser.add_argument("--celery", type=int, default=0, metavar="TASKS", help="also measure so many tasks of Celery")
    parser.add_argument("--json", type=Path, help="write all figures and samples to this file")
    return parser


if __name__ == "__main__":
    sys.exit(main())
