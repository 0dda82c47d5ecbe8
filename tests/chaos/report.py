"""The table of a campaign: per kind of fault, its count, time to detection and recovery, and cost."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import psutil

from tests.chaos.campaign import Campaign
from tests.chaos.faults import KINDS, Fault
from tests.chaos.invariants import DOUBLE, ENDED_TWICE, LOST

HEAD = (
    "| fault | times | noticed after, s: median (most) | works again after, s: median (most) | orders lost "
    "| duplicates | steps done again: in all (most of one run) | survivors |"
)
_ON_DRONES = frozenset({"worker_kill", "drone_kill", "run_kill", "freeze", "long_freeze", "restart", "drain", "cancel"})


def table(campaign: Campaign) -> str:
    """The rows, in the order of the kinds, in Markdown."""
    by_kind: dict[str, list[Fault]] = defaultdict(list)
    for fault in campaign.faults:
        by_kind[fault.kind].append(fault)
    blamed = _blamed(campaign)
    rows = [_row(campaign, kind, by_kind[kind], blamed) for kind in KINDS if by_kind[kind]]
    return "\n".join([HEAD, "|---|---|---|---|---|---|---|---|", *rows])


def summary(campaign: Campaign) -> str:
    """The parameters of the campaign, and each guarantee in one line."""
    found, plan = campaign.findings, campaign.plan
    took = campaign.faults_ended - campaign.began
    statuses = ", ".join(f"{count} {status}" for status, count in sorted(found.statuses.items()))
    lines = [
        f"Seed {plan.seed}; {len(campaign.load.accepted)} orders of 10 steps on {plan.size.drones} drones with "
        f"{plan.size.slots} slots each; {len(campaign.faults)} faults in {took:.0f} s; "
        f"all had settled {campaign.settled - campaign.faults_ended:.0f} s later. {_machine()}.",
        "",
        f"Orders: {statuses}. Runs: {found.runs}, of which {found.lost_runs} were lost and {found.resumed_runs} "
        f"resumed from a checkpoint. Orders whose branch could not be pushed: {len(found.unpushed)}. "
        f"Refs with work of late runs: {found.late_refs}.",
        "",
        "| promise | broken |",
        "|---|---|",
        *(f"| {promise} | {len(broke_it)} |" for promise, broke_it in found.promises.items()),
    ]
    if found.failed:
        lines += ["", "Orders that failed, and why:", "", *(f"- {each}: {why}" for each, why in found.failed.items())]
    return "\n".join(lines)


def put_between(page: Path, marker: str, text: str) -> None:
    """Replace the text between `<!-- marker -->` and `<!-- end of marker -->` in the page."""
    whole = page.read_text()
    begin, end = f"<!-- {marker} -->", f"<!-- end of {marker} -->"
    before, _, rest = whole.partition(begin)
    _, _, after = rest.partition(end)
    assert rest, f"{page} has no {begin}"
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}")


def _row(campaign: Campaign, kind: str, faults: Sequence[Fault], blamed: dict[str, Fault]) -> str:
    found = campaign.findings
    hit = {order for fault in faults for order in fault.hit.values()}
    runs = [run for run, fault in blamed.items() if fault.kind == kind]
    undone = [found.undone.get(run, 0) for run in runs]
    lost, *double = (found.promises[promise] for promise in (LOST, ENDED_TWICE, DOUBLE))
    lost_orders = sum(any(order in line for line in lost) for order in hit)
    doubled = sum(any(order in line for lines in double for line in lines) for order in hit)
    left = sum(found.left_by_run.get(run, 0) for run in runs)
    noticed = _times([fault.noticed_at - fault.done_at for fault in faults if fault.noticed_at])
    works = _times([fault.recovered_at - fault.done_at for fault in faults if fault.recovered_at])
    again = f"{sum(undone)} ({max(undone)})" if undone else "0"
    cells = KINDS[kind].label, len(faults), noticed, works, lost_orders, doubled, again, left
    return f"| {' | '.join(map(str, cells))} |"


def _blamed(campaign: Campaign) -> dict[str, Fault]:
    """By run, the fault that caused its repeated steps: the last one that hit its drone, otherwise the last one."""
    found: dict[str, Fault] = {}
    for fault in campaign.faults:
        for run in fault.hit:
            if run not in found or fault.kind in _ON_DRONES or found[run].kind not in _ON_DRONES:
                found[run] = fault
    return found


def _times(seconds: Sequence[float]) -> str:
    return f"{statistics.median(seconds):.1f} ({max(seconds):.1f})" if seconds else "not shown"


def _machine() -> str:
    memory = psutil.virtual_memory().total / 2**30
    return (
        f"Machine: {os.cpu_count()} processors, {memory:.0f} GB, {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}; load {os.getloadavg()[1]:.1f}; {time.strftime('%Y-%m-%d', time.gmtime())}"
    )
