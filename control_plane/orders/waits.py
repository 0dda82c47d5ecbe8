"""Requests of runs to people: written when the run asks, answered once by any route, closed when the run reports it.

A run that waits for long may be suspended: its wait stays open, and the run that continues its order gets the answer.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

from sqlalchemy import CursorResult, select, update
from sqlalchemy.orm import Session

from control_plane.core import Core
from control_plane.db.orders import Dispatch, Order
from control_plane.db.runs import Run
from control_plane.db.waits import Wait
from control_plane.drones.inbox import notify_drone
from control_plane.orders.plan_waits import APPROVE, KEPT, PLAN, SEND_BACK
from shared.control import Decide
from shared.errors import Conflict
from shared.events import ApprovalStep, DecisionStep
from shared.plan_text import plan_text
from shared.plans import AgentPlan
from shared.reasons import ForPerson

DENY = "deny"
FINISH = "finish"
"""The detail of a denied limit whose run ends with a summary."""
QUESTION = "question"
"""The kind of a wait that a text answers."""
_SAME_REQUEST = ("tool", "why", "command")
_SAME_LIMIT = ("tool", "limit")
_AT_LIMITS = ("limit", "budget")
"""Their subjects count from 1 in each run, so they tell no requests apart."""


@dataclass(frozen=True)
class WaitAnswer:
    """A person's answer to a wait: for a question its text, else `approve` or `deny`."""

    choice: str
    by: str
    comment: str = ""


def open_wait(db: Session, core: Core, run: Run, step: ApprovalStep, at: datetime) -> Wait:
    """Record that the run waits for a person; a repeated request opens the wait again.

    It already has its answer, which the run is sent, if a person decided about the same request when an earlier run was
    suspended there, or about the same plan in any earlier run. That no one decided in time counts until a user resumes
    the order. A run that declines to be suspended repeats its request: what users did about it stays. `at` is when the
    run asked by its drone's clock, which may be hours off: the deadline is as far from now as it was from then.
    """
    known = find_wait(db, run.id, step.call_id)
    wait = known or Wait(run_id=run.id, subject=step.call_id)
    before = wait.details if known is not None and known.closed_at is None else {}
    wait.organization_id, wait.order_id = run.organization_id, run.order_id
    wait.kind, wait.role = step.about, "operator"
    wait.details = {"tool": step.tool, "why": step.why, "command": step.command, "limit": step.limit}
    _set_choices(wait, step)
    wait.asked_at = core.clock.now()
    wait.deadline = wait.asked_at + (step.until - at) if step.until is not None else None
    if before and _is_same(before, wait):
        wait.details = {**wait.details, **_of_users(before)}
    else:
        wait.comment = ""
        wait.answer = wait.answered_by = wait.answered_at = wait.decided_by = wait.closed_at = None
        _carry_over(db, core, run, wait)
    db.add(wait)
    db.flush()
    return wait


def _set_choices(wait: Wait, step: ApprovalStep) -> None:
    if step.about == QUESTION:
        wait.text, wait.choices, wait.default = step.why, list(step.choices), step.default
    elif step.about == PLAN and step.plan is not None:
        wait.text, wait.choices = f"Approve the plan?\n\n{plan_text(step.plan)}", [APPROVE, SEND_BACK]
        wait.default = None
        wait.details = {**wait.details, PLAN: step.plan.model_dump(mode="json")}
    else:
        wait.text, wait.choices, wait.default = f"Approve {step.tool}? {step.why}", [APPROVE, DENY], DENY


def _is_same(before: dict[str, Any], wait: Wait) -> bool:
    """Whether a request with these details was the same."""
    compared = (PLAN,) if wait.kind == PLAN else _SAME_REQUEST
    return all(before.get(name) == wait.details.get(name) for name in compared)


def _of_users(details: dict[str, Any]) -> dict[str, Any]:
    """What of the details users wrote."""
    return {name: details[name] for name in (*KEPT, FINISH) if name in details}


def _carry_over(db: Session, core: Core, run: Run, wait: Wait) -> None:
    """Take over what users did about the same request of an earlier run: the edits of a plan, and any decision."""
    before = _earlier_wait(db, run, wait)
    if before is None:
        return
    wait.details = {**wait.details, **_of_users(before.details)}
    if before.answered_at is not None and not _timed_out_before_resume(db, before):
        wait.answer, wait.comment, wait.decided_by = before.answer, before.comment, before.decided_by
        wait.answered_by, wait.answered_at = before.answered_by, before.answered_at
        tell_run(db, core, wait, decision_of(wait))


def _timed_out_before_resume(db: Session, wait: Wait) -> bool:
    """Whether no one answered in time, and a user had the order continue since: then they are asked again."""
    resumed = db.get_one(Order, wait.order_id).renewed_generation
    return wait.decided_by == "clock" and db.get_one(Run, wait.run_id).generation <= resumed


def _earlier_wait(db: Session, run: Run, wait: Wait) -> Wait | None:
    """The wait of an earlier run whose decision counts for this one, too. Those before a retry do not.

    The earlier run of a plan need not be one that this run continues from: it may have been lost after the decision
    and before its next checkpoint. Any other wait must have been left suspended, and not been asked again since: the
    run that got its decision may have executed the call, even if it was lost before it reported that.
    """
    since = db.get_one(Order, run.order_id).fresh_generation
    runs = select(Run.id).where(Run.order_id == run.order_id, Run.generation > since, Run.generation <= run.generation)
    asked = select(Wait).where(Wait.run_id.in_(runs), Wait.kind == wait.kind).order_by(Wait.number.desc())
    if wait.kind not in _AT_LIMITS:
        asked = asked.where(Wait.subject == wait.subject)
    if wait.kind == PLAN:
        earlier = db.scalars(asked.where(Wait.run_id != run.id))
        return next((each for each in earlier if each.details.get(PLAN) == wait.details[PLAN]), None)
    newest = db.scalar(asked.limit(1))
    if newest is None or newest.suspended_at is None:
        return None
    # A denial ends the order, also if the next run reaches the limit at another amount.
    denied_limit = wait.kind in _AT_LIMITS and newest.answer == DENY
    compared = _SAME_LIMIT if denied_limit else _SAME_REQUEST
    return newest if all(newest.details.get(name) == wait.details[name] for name in compared) else None


def decision_of(wait: Wait) -> Decide:
    """The decision about the wait, for the run that waits. By how much a limit was raised is in its order's limits."""
    approved, in_time = wait.details.get("approved"), wait.answer is not None and wait.decided_by != "clock"
    named = wait.kind in {QUESTION, PLAN}
    return Decide(
        run_id=wait.run_id,
        call_id=wait.subject,
        approved=in_time if wait.kind == QUESTION else wait.answer == APPROVE,
        comment=wait.comment,
        finish=bool(wait.details.get(FINISH)),
        answer=wait.answer or "" if wait.kind == QUESTION else "",
        who=(wait.answered_by or "") if named else "",
        plan=AgentPlan.model_validate(approved) if approved else None,
        in_time=in_time,
    )


def tell_run(db: Session, core: Core, wait: Wait, decided: Decide) -> None:
    """Send the run a decision; if it was suspended, nothing: the run that continues its order asks for it."""
    dispatch = db.get_one(Dispatch, wait.run_id)
    if dispatch.closed_at is None:
        notify_drone(db, core, dispatch.drone_id, decided, wait.run_id)


def open_waits(db: Session, run_ids: Iterable[str]) -> defaultdict[str, list[Wait]]:
    """The open waits by run, oldest first; empty for a run without any. Includes answered ones that are not closed."""
    db.flush()
    wanted = select(Wait).where(Wait.run_id.in_(list(run_ids)), Wait.closed_at.is_(None))
    found: defaultdict[str, list[Wait]] = defaultdict(list)
    for wait in db.scalars(wanted.order_by(Wait.asked_at, Wait.number)):
        found[wait.run_id].append(wait)
    return found


def time_waited(db: Session, order_ids: Collection[str], now: datetime) -> dict[tuple[str, str], timedelta]:
    """How long orders have waited for people, by order and run."""
    found: defaultdict[tuple[str, str], timedelta] = defaultdict(timedelta)
    asked = select(Wait.order_id, Wait.run_id, Wait.asked_at, Wait.closed_at).where(Wait.order_id.in_(order_ids))
    for order_id, run_id, begun, closed in db.execute(asked) if order_ids else ():
        found[order_id, run_id] += (closed or now) - begun
    return found


def find_wait(db: Session, run_id: str, subject: str) -> Wait | None:
    """The run's wait for this subject, open or closed."""
    return db.scalar(select(Wait).where(Wait.run_id == run_id, Wait.subject == subject))


def digest_of(wait: Wait) -> str:
    """A digest of what a person is asked, all of it: another call, or the same one with other content, has another."""
    asked = [wait.run_id, wait.subject, wait.kind, wait.text, wait.choices, wait.default, wait.details]
    return sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]


def refuse_other(wait: Wait, digest: str | None) -> None:
    """Raise Conflict if what a person read and decided about, by its digest, is not what waits."""
    if digest is not None and digest != digest_of(wait):
        raise Conflict(
            f"order {wait.order_id} waits for something else than what you decided about",
            code="E-WAIT-CHANGED",
            why="what you read was decided, or asked again, meanwhile",
            next=f"read what waits now: fleet show {wait.order_id}",
        )


def decided_by(wait: Wait) -> str:
    """Who gave the first answer, and when, for those who come too late: ` by kim at 2026-11-25 14:02 UTC`."""
    how = {"clock": " automatically", "interruption": " by an interruption"}
    person = f" by {wait.answered_by}" if wait.answered_by else ""
    at = wait.answered_at or wait.closed_at
    return how.get(wait.decided_by or "", person) + (f" at {at.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if at else "")


def answer(db: Session, core: Core, wait: Wait, given: WaitAnswer) -> bool:
    """Record the answer; False if another answer was first, or the run no longer waits."""
    undecided = update(Wait).where(Wait.number == wait.number, Wait.answered_at.is_(None), Wait.closed_at.is_(None))
    values = {"answer": given.choice, "answered_by": given.by, "comment": given.comment, "decided_by": "person"}
    result = db.execute(undecided.values(answered_at=core.clock.now(), **values))
    return isinstance(result, CursorResult) and result.rowcount == 1


def close_decided(db: Session, core: Core, run_id: str, step: DecisionStep) -> None:
    """Close the wait for a decision that the run reports, whether or not a person made it."""
    open_one = update(Wait).where(Wait.run_id == run_id, Wait.subject == step.call_id, Wait.closed_at.is_(None))
    db.execute(open_one.values({"answer": _decided(step), "decided_by": step.by, "closed_at": core.clock.now()}))


def _decided(step: DecisionStep) -> str | None:
    """What counts as the answer; None: a question that has none."""
    if step.about == PLAN:
        return APPROVE if step.approved else SEND_BACK if step.by == "person" else None
    if step.about != QUESTION:
        return APPROVE if step.approved else DENY
    return step.answer if step.approved else None


def close_all(db: Session, core: Core, run_id: str) -> None:
    """Close all waits of a run that has ended."""
    open_ones = update(Wait).where(Wait.run_id == run_id, Wait.closed_at.is_(None))
    db.execute(open_ones.values(closed_at=core.clock.now()))


def suspend_all(db: Session, core: Core, run_id: str) -> None:
    """Leave the waits of a run that has ended to the run that continues its order."""
    open_ones = update(Wait).where(Wait.run_id == run_id, Wait.closed_at.is_(None))
    db.execute(open_ones.values(suspended_at=core.clock.now()))


def reason(wait: Wait) -> ForPerson:
    """Why the order waits."""
    return ForPerson(
        about=wait.kind,
        order=wait.order_id,
        tool=wait.details["tool"],
        why=wait.details["why"],
        limit=wait.details.get("limit", "cost"),
    )
