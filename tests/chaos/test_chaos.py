"""Campaigns of seeded faults against a fleet of real processes: a short one always, a long one with `make chaos`."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import pytest

from tests.chaos import report
from tests.chaos.campaign import Campaign, Plan, carry_out
from tests.chaos.fleet_under_load import Size

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
SHORT = {"run_kill": 1, "broker_emptied": 1, "collector_kill": 1, "flower_kill": 1, "cancel": 1}


@pytest.mark.campaign
@pytest.mark.timeout(420)
def test_after_a_few_faults_every_order_has_ended_once_and_whole(tmp_path: Path) -> None:
    size = Size(drones=2, orders=5, step_seconds=0.15)
    plan = Plan(_seed(4), 0, size, kinds=SHORT, each_once=True, settle_seconds=240, followers=2)

    done = carry_out(plan, tmp_path / "fleet")

    assert (done.findings.broken, _errors(done)) == ([], []), report.summary(done)
    assert done.findings.statuses.get("succeeded", 0) >= size.orders - 2, done.findings.failed
    assert len(done.faults) == len(SHORT)


@pytest.mark.long
@pytest.mark.chaos
@pytest.mark.timeout(3 * 3600)
def test_after_minutes_of_faults_every_order_has_ended_once_and_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    minutes = float(os.environ.get("CHAOS_MINUTES") or 5)
    plan = Plan(_seed(random.SystemRandom().randrange(1, 10_000)), 60 * minutes, Size(orders=max(8, int(40 * minutes))))
    _say(capsys, f"\nCHAOS_SEED={plan.seed}, {minutes:g} minutes")

    done = carry_out(plan, tmp_path / "fleet")

    text = f"{report.summary(done)}\n\n{report.table(done)}"
    _say(capsys, f"\n{text}\n" + "\n".join(done.findings.broken))
    if os.environ.get("CHAOS_WRITE"):
        # Even if a guarantee was violated: it is what was measured.
        report.put_between(PAGE, "campaign", text)
    assert (done.findings.broken, _errors(done)) == ([], [])


def _seed(default: int) -> int:
    return int(os.environ.get("CHAOS_SEED") or default)


def _errors(done: Campaign) -> list[str]:
    """Faults that could not be carried out as planned, and those that were never recovered from."""
    failed = [f"{fault.kind} of {fault.part}: {fault.error}" for fault in done.faults if fault.error]
    return failed + [f"{fault.kind} of {fault.part}: no recovery" for fault in done.faults if not fault.settled]


def _say(capsys: pytest.CaptureFixture[str], text: str) -> None:
    with capsys.disabled():
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
