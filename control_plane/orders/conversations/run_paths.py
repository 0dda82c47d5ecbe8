"""The path of a run: the steps that led to its current state, through the runs that it resumed from.

The path of a run that resumes from a checkpoint of an earlier run begins with that run's path up to the checkpoint.
The earlier run's steps after its checkpoint are undone: stored, but not part of any conversation.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import TypeAdapter
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from control_plane.db.orders import Order
from control_plane.db.runs import Run, Step
from shared.events import Body
from shared.states import ENDED

SAID = ("reasoning", "assistant", "user", "tool_result", "compaction")
"""The kinds of steps that make up a conversation."""
_BEGAN = (*SAID, "resumed")
_BODY: TypeAdapter[Body] = TypeAdapter(Body)


@dataclass(frozen=True)
class Segment:
    """One run's part of a path."""

    run_id: str
    upto: int | None = None
    """The `run_seq` of the last step on the path; None: all steps of the run."""

    def holds(self, run_seq: int) -> bool:
        return self.upto is None or run_seq <= self.upto


@dataclass(frozen=True)
class Path:
    """The steps that make up an order's current conversation."""

    segments: Mapping[str, Segment] = field(default_factory=dict)
    """By run."""
    spoke: frozenset[str] = frozenset()
    """The runs that sent anything to the model."""

    def undone(self, run_id: str, run_seq: int) -> bool:
        """Whether a later run resumed from before this step, even if the step arrived only afterwards."""
        segment = self.segments.get(run_id)
        return not segment.holds(run_seq) if segment else run_id in self.spoke


def lacks_steps(db: Session, order: Order) -> bool:
    """Whether steps of an order that has ended are no longer stored."""
    stored = select(func.count()).select_from(Step).where(Step.order_id == order.id)
    return order.ended_at is not None and order.step_count > (db.scalar(stored) or 0)


def path_to(db: Session, run_id: str, upto: int | None = None) -> list[Segment]:
    """The path of one run, oldest part first; `upto` ends it at a step of that run."""
    return paths_to(db, [Segment(run_id, upto)])[run_id]


def paths_to(db: Session, ends: Sequence[Segment]) -> dict[str, list[Segment]]:
    """The paths to these ends, by the run of the end; one query per level of resumption, for any number of ends."""
    paths = {end.run_id: [end] for end in ends}
    growing = {end.run_id: [end.run_id] for end in ends}
    while growing:
        # A run resumes only from one of an older generation (the collector ensures this), so the loop ends.
        rows = select(Run.id, Run.resumed_run_id, Run.resumed_seq)
        went_on = rows.where(Run.id.in_(list(growing)), Run.resumed_run_id.is_not(None))
        further: defaultdict[str, list[str]] = defaultdict(list)
        for run_id, before, seq in db.execute(went_on):
            for end in growing[run_id]:
                paths[end].insert(0, Segment(str(before), seq))
                further[str(before)].append(end)
        growing = dict(further)
    return paths


def order_path(db: Session, order: Order) -> Path:
    """The order's path: that of `run_that_speaks` or, while the order has not ended, of the newest run that spoke."""
    if order.attempt <= 1:
        return Path()
    spoke = _spoke(db, order, late=False)
    if not spoke:
        return Path()
    speaks = _speaker(order, spoke) if order.status in ENDED else spoke[0]
    segments = {segment.run_id: segment for segment in path_to(db, speaks)}
    return Path(segments, frozenset(_spoke(db, order, late=True)))


def run_that_speaks(db: Session, order: Order) -> str | None:
    """The run whose path is the order's turn: the one whose work was delivered, else the last that spoke.

    None if no run got as far as sending the prompt to the model.
    """
    spoke = _spoke(db, order, late=False)
    return _speaker(order, spoke) if spoke else None


def said_along(db: Session, path: Iterable[Segment]) -> dict[Segment, list[Body]]:
    """The messages of each segment, in order. Late steps are left out: the turn ended, or continued, without them."""
    segments = list(path)
    found: defaultdict[str, list[tuple[int, Body]]] = defaultdict(list)
    steps = select(Step.run_id, Step.run_seq, Step.body).where(
        Step.run_id.in_({segment.run_id for segment in segments}), Step.kind.in_(SAID), Step.late.is_(False)
    )
    for run_id, run_seq, body in db.execute(steps.order_by(Step.run_id, Step.run_seq)):
        found[run_id].append((run_seq, _BODY.validate_python(body)))
    return {each: [body for seq, body in found[each.run_id] if each.holds(seq)] for each in segments}


def _spoke(db: Session, order: Order, *, late: bool) -> list[str]:
    """The runs that sent anything to the model, last one first; with `late`, also those with only late steps."""
    steps = select(Step.run_id).where(Step.order_id == order.id, Step.kind.in_(_BEGAN))
    if not late:
        steps = steps.where(Step.late.is_(False))
    return list(db.scalars(steps.group_by(Step.run_id).order_by(func.max(Step.seq).desc())))


def _speaker(order: Order, spoke: Sequence[str]) -> str:
    delivered = order.result_run_id
    return delivered if delivered is not None and delivered in spoke else spoke[0]
