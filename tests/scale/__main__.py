"""`python -m tests.scale --drones N --orders M`: print one simulation's figures; exit 1 where a promise is broken."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from tests.scale.bare_celery import tasks_per_s
from tests.scale.samples import FleetSample
from tests.scale.simulation import Outcome, document, simulate
from tests.scale.size import ScaleSize


def main(words: Sequence[str] | None = None) -> int:
    """Run what the command line says."""
    given = _parser().parse_args(words)
    options = {each.name: getattr(given, each.name) for each in fields(ScaleSize)}
    size = ScaleSize(**options)
    with tempfile.TemporaryDirectory(prefix="scale-") as directory:
        outcome, samples = simulate(size, Path(directory) / "fleet")
        celery = tasks_per_s(Path(directory) / "celery", given.celery) if given.celery else None
    found = {**document(size, outcome, samples), "celery_tasks_per_s": celery}
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=1))
    _print(outcome, samples, celery)
    return 1 if outcome.broken() else 0


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


def _print(outcome: Outcome, samples: Sequence[FleetSample], celery: float | None) -> None:
    lines = [f"{each.name:16} {getattr(outcome, each.name)}" for each in fields(outcome)]
    lines += ["", f"{'s':>6} {'ended':>7} {'board':>6}  " + "  ".join(f"{name:>22}" for name in samples[-1].usage)]
    for sample in _some(samples):
        used = (f"{use.cpu_s:7.1f} s {use.rss_mb:4.0f} MB {use.open_files:4}" for use in sample.usage.values())
        lines.append(f"{sample.at_s:6.0f} {sample.ended:7} {sample.board_s:6.2f}  " + "  ".join(used))
    if celery is not None:
        lines.append(
            f"bare Celery: {celery:.0f} tasks/s; the fleet's orders: {outcome.orders_per_s / celery:.2f} of it"
        )
    lines += [f"BROKEN  {each}" for each in outcome.broken()]
    sys.stdout.write("\n".join(lines) + "\n")


def _some(samples: Sequence[FleetSample]) -> Sequence[FleetSample]:
    """At most about 20 samples, the last one among them."""
    step = max(1, len(samples) // 20)
    return [*samples[:-1:step], samples[-1]]


if __name__ == "__main__":
    sys.exit(main())
