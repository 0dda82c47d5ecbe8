"""The table of a campaign: per kind of fault, its count, time to detection and recovery, and cost."""

from __future__ import annotations

import os
import platform
import statistics
import textwrap
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

from tests.chaos.campaign import Campaign
from tests.chaos.faults import LABELS, WEIGHTS, Fault

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
    rows = [_row(campaign, kind, by_kind[kind], blamed) for kind in WEIGHTS if by_kind[kind]]
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
        f"| accepted orders that did not end | {len(found.lost)} |",
        f"| orders that ended twice | {len(found.ended_twice)} |",
        f"| gaps in transcripts | {len(found.transcript_gaps)} |",
        f"| conversations that break the rule | {len(found.invalid_conversations)} |",
        f"| double or missing effects inside the workspace | {len(found.double_effects)} |",
        f"| refs moved by late runs | {len(found.refs_moved_late)} |",
        f"| canceled orders without a receipt of 0 survivors | {len(found.no_receipt)} |",
        f"| followers who missed a step or saw one twice, or another end | {len(found.followers_wrong)} |",
        f"| runs, reservations and budgets that do not agree to the cent | {len(found.money_wrong)} |",
        f"| metrics that differ from the database, or counters that fell | {len(found.metrics_wrong)} |",
        f"| processes left after the stop | {len(found.survivors)} |",
    ]
    if found.failed:
        lines += [
            "",
            "Orders that failed, and why:",
            "",
            *(f"- {_causes(found.failed, c)}" for c in _kinds(found.failed)),
        ]
    return "\n".join(lines)


def document(campaign: Campaign) -> dict[str, Any]:
    """The same in machine-readable form."""
    return {
        "seed": campaign.plan.seed,
        "seconds": campaign.plan.seconds,
        "orders": len(campaign.load.accepted),
        "statuses": campaign.findings.statuses,
        "broken": campaign.findings.broken,
        "failed": campaign.findings.failed,
        "undone": campaign.findings.undone,
        "faults": [
            {
                "kind": fault.kind,
                "part": fault.part,
                "seconds": round(fault.seconds, 1),
                "at": round(fault.done_at - campaign.began, 1),
                "noticed_after": _after(fault, fault.noticed_at),
                "works_after": _after(fault, fault.recovered_at),
                "hit": fault.hit,
                "error": fault.error,
            }
            for fault in campaign.faults
        ],
    }


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
    lost = sum(any(order in line for line in found.lost) for order in hit)
    double = sum(any(order in line for line in [*found.ended_twice, *found.double_effects]) for order in hit)
    left = sum(found.left_by_run.get(run, 0) for run in runs)
    noticed = _times([fault.noticed_at - fault.done_at for fault in faults if fault.noticed_at])
    works = _times([fault.recovered_at - fault.done_at for fault in faults if fault.recovered_at])
    again = f"{sum(undone)} ({max(undone)})" if undone else "0"
    return f"| {LABELS[kind]} | {len(faults)} | {noticed} | {works} | {lost} | {double} | {again} | {left} |"


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


def _after(fault: Fault, at: float) -> float | None:
    return round(at - fault.done_at, 2) if at else None


def _kinds(failed: dict[str, str]) -> list[str]:
    return [cause for cause, _ in Counter(_cause(each) for each in failed.values()).most_common()]


def _cause(sentence: str) -> str:
    return sentence.partition(":")[0]


def _causes(failed: dict[str, str], cause: str) -> str:
    of_it = {order: why for order, why in failed.items() if _cause(why) == cause}
    told = textwrap.shorten(next(iter(of_it.values())), 160, placeholder=" …")
    return f"{len(of_it)} {told} ({', '.join(of_it)})"


def _machine() -> str:
    memory = psutil.virtual_memory().total / 2**30
    return (
        f"Machine: {os.cpu_count()} processors, {memory:.0f} GB, {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}; load {os.getloadavg()[1]:.1f}; {time.strftime('%Y-%m-%d', time.gmtime())}"
    )
