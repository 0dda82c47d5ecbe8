"""The invariants after a campaign, checked in the database, git remote, followers and process table."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import select

from control_plane.db.orders import Order
from control_plane.db.runs import Run, Step
from drone.reporting import journal
from drone.runs.directory import all_runs
from shared import names
from shared.errors import FleetError
from shared.events import Body
from shared.states import ENDED, OrderStatus, RunStatus
from shared.transcripts import messages_of
from tests.chaos.fleet_under_load import NUMBERS, STEPS, FleetUnderLoad
from tests.chaos.load import Load
from tests.chaos.money import wrong_money
from tests.chaos.witness import Change
from tests.support.repositories import git
from tests.support.transcripts import problems

_BODY: TypeAdapter[Any] = TypeAdapter(Body)
_NO_COMMIT = "0" * 40
LOST = "accepted orders that did not end"
ENDED_TWICE = "orders that ended twice"
DOUBLE = "double or missing effects inside the workspace"
_ALL = [str(number) for number in range(1, STEPS + 1)]
_CLOCK = timedelta(seconds=2)
"""Tolerance: a reflog has a resolution of one second."""


@dataclass
class Findings:
    """For each promise, what broke it: all lists are empty if every promise was kept."""

    promises: dict[str, list[str]]
    # Figures, not promises.
    statuses: dict[str, int] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    """Orders that failed, each with its cause."""
    unpushed: dict[str, str] = field(default_factory=dict)
    runs: int = 0
    lost_runs: int = 0
    resumed_runs: int = 0
    late_refs: int = 0
    undone: dict[str, int] = field(default_factory=dict)
    """Number of complete steps that are on no path and had to be repeated, by run, for orders that succeeded."""
    left_by_run: dict[str, int] = field(default_factory=dict)
    """Number of command processes that outlived their run, by run."""

    @property
    def broken(self) -> list[str]:
        """Every violation, one line each."""
        return [f"{promise}: {each}" for promise, broke_it in self.promises.items() for each in broke_it]


@dataclass
class Stored:
    """All data of the campaign in the database."""

    orders: dict[str, Order]
    runs: dict[str, list[Run]]
    """By order, in order of generation."""
    steps: dict[str, list[Step]]
    """By run, in order of run_seq."""
    changes: Mapping[str, Sequence[Change]]

    @classmethod
    def read(cls, fleet: FleetUnderLoad) -> Stored:
        with fleet.database.read() as db:
            orders = {order.id: order for order in db.scalars(select(Order))}
            runs: dict[str, list[Run]] = defaultdict(list)
            for run in db.scalars(select(Run).order_by(Run.generation)):
                runs[run.order_id].append(run)
            steps: dict[str, list[Step]] = defaultdict(list)
            for step in db.scalars(select(Step).order_by(Step.run_id, Step.run_seq)):
                steps[step.run_id].append(step)
        return cls(orders, runs, steps, fleet.witness.changes())

    def run(self, run_id: str) -> Run:
        return next(run for runs in self.runs.values() for run in runs if run.id == run_id)

    def path(self, run: Run) -> list[Step]:
        """The steps that the run resumed from, followed by its own, without undone steps."""
        before: list[Step] = []
        if run.resumed_run_id:
            earlier = self.path(self.run(run.resumed_run_id))
            before = [s for s in earlier if s.run_id != run.resumed_run_id or s.run_seq <= run.resumed_seq]
        return [*before, *self.steps[run.id]]


def examine(fleet: FleetUnderLoad, load: Load, *, late_followers: Sequence[str]) -> Findings:
    """Check everything that can be checked while the control plane and the drones are still running."""
    stored = Stored.read(fleet)
    orders = [stored.orders[order_id] for order_id in load.accepted if order_id in stored.orders]
    ends = [order for order in orders if OrderStatus(order.status) in ENDED]
    runs = [run for of_order in stored.runs.values() for run in of_order]
    promises = {
        LOST: [*(each for each in load.accepted if each not in stored.orders), *_not_ended(orders)],
        ENDED_TWICE: list(_ended_twice(stored)),
        "gaps in transcripts": [*_transcript_gaps(stored), *unsent(fleet, stored)],
        "conversations that break the rule": list(_invalid(stored)),
        DOUBLE: [each for order in ends for each in _effects(fleet, stored, order)],
        "refs moved by late runs": list(_wrong_refs(fleet, stored)),
        "canceled orders without a receipt of 0 survivors": [
            f"order {order.id}: {order.receipt}" for order in ends if not _has_receipt(order)
        ],
        "followers who missed a step or saw one twice, or another end": [
            *(f"{each}: no end came" for each in late_followers),
            *_followers(load, stored),
        ],
        "runs, reservations and budgets that do not agree to the cent": list(wrong_money(fleet)),
    }
    return Findings(
        promises,
        statuses=dict(Counter(order.status for order in orders)),
        failed={o.id: f"{o.exit_status}: {o.reason}" for o in orders if o.status == OrderStatus.FAILED},
        unpushed={order.id: str(order.push_error) for order in ends if order.head_commit and not order.pushed},
        runs=len(runs),
        lost_runs=sum(run.status == RunStatus.LOST for run in runs),
        resumed_runs=sum(run.resumed_run_id is not None for run in runs),
        late_refs=sum(len(order.late_refs) for order in orders),
        undone=_undone(stored),
        left_by_run=_left_by_run(fleet, runs),
    )


def after_the_stop(fleet: FleetUnderLoad, findings: Findings) -> None:
    """Add the processes that are left once all drones were stopped."""
    with fleet.database.read() as db:
        boots = tuple(boot for boot in db.scalars(select(Run.boot_id).distinct()) if boot)
    left = [f"process {pid}" for pid in fleet.survivors(boots)]
    left += [f"{count} of run {run}" for run, count in findings.left_by_run.items()]
    findings.promises["processes left after the stop"] = left


def unsent(fleet: FleetUnderLoad, stored: Stored | None = None) -> list[str]:
    """Runs whose journal on a drone's disk has more events than the database; empty once everything has arrived."""
    try:
        with fleet.database.read() as db:
            known = {run_id: last for run_id, last in db.execute(select(Run.id, Run.last_seq))}
    except FleetError as error:
        return [str(error)]
    found = []
    for drone in fleet.drones.values():
        for directory in all_runs(drone.home.runs_dir):
            last = journal.tail(directory.journal)
            if last is not None and last.event.seq > known.get(directory.run_id, 0):
                stored_up_to = known.get(directory.run_id, 0)
                found.append(f"run {directory.run_id}: {last.event.seq} on {drone.name}, {stored_up_to} stored")
    return found


# --- one guarantee after another ----------------------------------------------------------------


def _not_ended(orders: Sequence[Order]) -> list[str]:
    return [f"order {each.id} is {each.status}: {each.reason}" for each in orders if each.status not in set(ENDED)]


def _ended_twice(stored: Stored) -> Iterator[str]:
    for order_id, changes in stored.changes.items():
        ends = [change.status for change in changes if change.ends]
        left = [c for c in changes if OrderStatus(c.status_before) in ENDED and c.status != c.status_before]
        if len(ends) > 1 or left:
            yield f"order {order_id}: {' and '.join(ends)}"


def _transcript_gaps(stored: Stored) -> Iterator[str]:
    for run_id, steps in stored.steps.items():
        seqs = [step.run_seq for step in steps]
        if seqs != list(range(1, len(seqs) + 1)):
            yield f"run {run_id}: {seqs}"
        yield from (f"run {run_id}: a gap of {s.body['missing']} at {s.run_seq}" for s in steps if s.kind == "gap")
        run = stored.run(run_id)
        if run.status not in {RunStatus.RUNNING, RunStatus.LOST} and steps[-1].kind != "run_ended":
            yield f"run {run_id} is {run.status} and ends with {steps[-1].kind}"


def _invalid(stored: Stored) -> Iterator[str]:
    """Problems in the whole conversation, resumed steps included, of every run that succeeded or failed."""
    for order_id, runs in stored.runs.items():
        for run in runs:
            if run.status in {RunStatus.SUCCESS, RunStatus.FAILED}:
                bodies = [_BODY.validate_python(step.body) for step in stored.path(run)]
                yield from (f"order {order_id}, run {run.id}: {wrong}" for wrong in problems(messages_of(bodies)))


def _effects(fleet: FleetUnderLoad, stored: Stored, order: Order) -> Iterator[str]:
    """For a succeeded order: patch, branch and path must each contain exactly 1 to 10."""
    if order.status != OrderStatus.SUCCEEDED:
        return
    with fleet.client(timeout_s=30) as client:
        patch = client.patch(order.id).decode()
    added = [line[1:] for line in patch.splitlines() if line.startswith("+") and not line.startswith("+++")]
    if added != _ALL:
        yield f"order {order.id}: its patch adds {added}"
    if order.pushed:
        on_branch = fleet.git("show", f"refs/heads/{names.branch(order.id)}:{NUMBERS}").split()
        if on_branch != _ALL:
            yield f"order {order.id}: its branch has {on_branch}"
    run = stored.run(order.result_run_id or order.run_id or "")
    done = [
        step.body["arguments"]["command"] for step in stored.path(run) if step.kind == "tool_call" and _is_shell(step)
    ]
    if done != [f"echo {number} >> {NUMBERS}" for number in _ALL]:
        yield f"order {order.id}: the path of its run has the commands {done}"


def _is_shell(step: Step) -> bool:
    return bool(step.body["tool"] == "shell")


def _has_receipt(order: Order) -> bool:
    """A canceled order must have a receipt with no survivors, or one that says that its drone was unreachable."""
    if order.status != OrderStatus.CANCELED:
        return True
    receipt = order.receipt or {}
    return bool(receipt) and (receipt.get("survivors") == 0 or receipt.get("unreachable_since") is not None)


def _followers(load: Load, stored: Stored) -> Iterator[str]:
    """Every follower must see each step once, in order, and one end."""
    for follower in load.followers:
        order = stored.orders[follower.order_id]
        if follower.error:
            yield f"{follower.order_id}: {follower.error}"
        if follower.ends != [order.status]:
            yield f"{follower.order_id}: the ends were {follower.ends}, the order is {order.status}"
        if follower.seqs != list(range(1, len(follower.seqs) + 1)):
            yield f"{follower.order_id}: the steps were {follower.seqs}"


# --- refs ---------------------------------------------------------------------------------------


def _wrong_refs(fleet: FleetUnderLoad, stored: Stored) -> Iterator[str]:
    """Moves of `fleet/<order>` by a run that did not hold the order, and branch heads that differ from the order's."""
    for order in stored.orders.values():
        ref = f"refs/heads/{names.branch(order.id)}"
        moves = _moves(fleet, ref)
        for at, commit in moves:
            if not _may_move(fleet, stored, order, at, commit):
                yield f"order {order.id}: {commit} at {at}, which no run that held the order delivered"
        head = moves[-1][1] if moves else None
        if order.pushed and head != order.head_commit:
            yield f"order {order.id}: its branch is at {head}, its head is {order.head_commit}"


def _moves(fleet: FleetUnderLoad, ref: str) -> list[tuple[int, str]]:
    """Each move of the ref in the remote's reflog: seconds since the epoch, and the commit."""
    log = fleet.remote / "logs" / ref
    lines = log.read_text().splitlines() if log.exists() else []
    heads = [line.partition("\t")[0].split() for line in lines]
    return [(int(words[-2]), words[1]) for words in heads if words[1] != _NO_COMMIT]


def _may_move(fleet: FleetUnderLoad, stored: Stored, order: Order, at: int, commit: str) -> bool:
    """True if a run that was not late reported this delivery, or the drone that held a grant then has the commit.

    The second case covers a run that is killed between its push and its report, which is no violation.
    """
    for run in stored.runs[order.id]:
        delivered = [step for step in stored.steps[run.id] if step.kind == "delivered"]
        if any(step.body["head_commit"] == commit for step in delivered):
            return any(not step.late for step in delivered) or _held(stored, order, at, run.drone_id)
    owners = [drone for drone in fleet.drones.values() if _has_commit(drone.config.workspace, order, commit)]
    return any(_held(stored, order, at, drone.id) for drone in owners)


def _held(stored: Stored, order: Order, at: int, drone_id: str) -> bool:
    """Whether a run on this drone held a push grant at that time."""
    changes = stored.changes[order.id]
    return any(
        change.drone_id == drone_id
        and change.grant_until is not None
        and change.at - _CLOCK <= _instant(at, change) <= change.grant_until + _CLOCK
        for change in changes
    )


def _instant(seconds: int, change: Change) -> datetime:
    return datetime.fromtimestamp(seconds, change.at.tzinfo)


def _has_commit(workspace: str, order: Order, commit: str) -> bool:
    directory = Path(workspace) / "sessions" / order.session_id / "git"
    try:
        return directory.is_dir() and git(directory, "cat-file", "-t", commit) == "commit"
    except AssertionError:
        return False


# --- figures -------------------------------------------------------------------------------------


def _undone(stored: Stored) -> dict[str, int]:
    found: dict[str, int] = {}
    for order_id, runs in stored.runs.items():
        order = stored.orders[order_id]
        if order.status != OrderStatus.SUCCEEDED or order.run_id is None:
            continue
        kept = {step.id for step in stored.path(stored.run(order.run_id))}
        for run in runs:
            if undone := sum(step.kind == "tool_result" and step.id not in kept for step in stored.steps[run.id]):
                found[run.id] = undone
    return found


def _left_by_run(fleet: FleetUnderLoad, runs: Sequence[Run]) -> dict[str, int]:
    over = {run.id for run in runs if run.status != RunStatus.RUNNING}
    return {run_id: len(pids) for run_id, pids in fleet.commands_by_run().items() if run_id in over}
