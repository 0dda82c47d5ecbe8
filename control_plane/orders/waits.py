"""The calls of a run that wait for a person, read off its steps: asked for, and not decided yet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.db.runs import Step
from shared.events import ApprovalStep
from shared.reasons import ForPerson

_KINDS = ("approval", "decision")


def waiting_calls(db: Session, run_ids: Iterable[str]) -> defaultdict[str, list[ApprovalStep]]:
    """By run, its calls that wait, in the order in which they were asked for; none for a run without any."""
    db.flush()
    asked: defaultdict[str, dict[str, ApprovalStep]] = defaultdict(dict)
    columns = select(Step.run_id, Step.kind, Step.body).where(Step.run_id.in_(list(run_ids)), Step.kind.in_(_KINDS))
    for run_id, kind, body in db.execute(columns.order_by(Step.run_id, Step.run_seq)):
        if kind == "approval":
            asked[run_id][body["call_id"]] = ApprovalStep.model_validate(body)
        else:
            asked[run_id].pop(body["call_id"], None)
    found: defaultdict[str, list[ApprovalStep]] = defaultdict(list)
    found.update({run_id: list(calls.values()) for run_id, calls in asked.items() if calls})
    return found


def waits_for_person(order_id: str, call: ApprovalStep) -> ForPerson:
    return ForPerson(order=order_id, tool=call.tool, why=call.why)
