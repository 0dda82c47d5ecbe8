"""Where the next run of an order continues: at the newest checkpoint that its drone can get; else it begins anew.

A checkpoint is usable if the workspace was still identical to the base, if the bundle with its commit is stored, or on
the drone whose disk has the commit. The choice is made when the work order is built, so it is right for that drone at
that time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import takewhile

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from control_plane.db.drones import Drone
from control_plane.db.orders import Order
from control_plane.db.runs import Blob, Run, Step
from control_plane.orders.conversations.run_paths import Segment, path_to
from shared.events import CheckpointStep, Prepared, Spent
from shared.reasons import NoCheckpoint, Resumption
from shared.states import RunStatus
from shared.work_order import Resumed

GONE = "E-CHECKPOINT"
"""The error code of a run that could not get its checkpoint."""
_ENOUGH = 2
"""Consecutive runs that could not get their checkpoint; the next begins anew."""
_BEGINS_A_STEP = ("reasoning", "assistant", "tool_call", "tool_result")


@dataclass(frozen=True)
class Bundle:
    """A stored blob with the commit of a checkpoint."""

    run_id: str
    sha256: str
    stored_at: datetime


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint of one of the order's runs, and its stored bundle, if any."""

    run: Run
    step: Step
    body: CheckpointStep
    bundle: Bundle | None


def choose(db: Session, order: Order, drone: Drone) -> Checkpoint | None:
    """The checkpoint from which a run of the order resumes on this drone; None: it begins anew."""
    if order.attempt == 0:
        return None
    return _Candidates(db, order).best(drone.id)


def resumed(db: Session, order: Order, checkpoint: Checkpoint) -> Resumed:
    """The checkpoint in the form the work order carries."""
    run, body, bundle = checkpoint.run, checkpoint.body, checkpoint.bundle
    by_hand = run.generation <= order.renewed_generation
    return Resumed(
        run_id=run.id,
        seq=checkpoint.step.run_seq,
        base=_base_of(db, order, run),
        commit=body.commit,
        head=body.head,
        bundle=bundle.sha256 if bundle else None,
        bundle_run=bundle.run_id if bundle else None,
        left_out=body.left_out,
        kept_on_disk=body.kept_on_disk,
        # Each step is followed immediately by the next request to the model: a lost run may have done unreported work.
        cut_off=run.status == RunStatus.LOST or _went_further(db, order, checkpoint),
        why=run.reason,
        by_hand=by_hand,
        spent=Spent() if by_hand else body.spent,
    )


def resumption_on(db: Session, order: Order, drone: Drone) -> Resumption | None:
    """Where the order continues if this drone runs it; None if nothing has been done yet."""
    if order.attempt == 0:
        return None
    candidates = _Candidates(db, order)
    if not candidates.spoke:
        return None
    best = candidates.best(drone.id)
    return Resumption(step=best.step.seq) if best else Resumption(why_not=candidates.why_none)


def path_of_next(db: Session, order: Order, drone: Drone) -> list[Segment]:
    """The path that a run of the order on this drone continues; empty if it begins anew."""
    return _path_from(db, choose(db, order, drone))


def path_expected(db: Session, order: Order) -> list[Segment]:
    """The same for an order that is queued again, on the drone that has its workspace; without one, on any drone."""
    best = _Candidates(db, order).best(drone_with_workspace(db, order)) if order.attempt else None
    return _path_from(db, best)


def drone_with_workspace(db: Session, order: Order) -> str | None:
    """The drone whose disk has the newest checkpoint of the order, as far as known."""
    if order.attempt == 0:
        return None
    candidates = _Candidates(db, order)
    newest = next(iter(candidates), None)
    on_disk = newest is not None and candidates.is_on_disk(newest, newest.run.drone_id)
    return newest.run.drone_id if newest is not None and on_disk else None


def drone_needed(db: Session, order: Order) -> str | None:
    """The only drone that has the newest checkpoint on disk: any other would have to repeat steps."""
    if order.attempt == 0:
        return None
    candidates = _Candidates(db, order)
    newest = next(iter(candidates), None)
    if newest is None or not candidates.is_on_disk(newest, newest.run.drone_id):
        return None
    anywhere = candidates.best(None)
    return None if anywhere is not None and anywhere.step.id == newest.step.id else newest.run.drone_id


def expected_resumption(db: Session, order: Order) -> Resumption | None:
    """Where an order that is queued again will continue; None if nothing has been done yet.

    Call this while the order still names its last drone.
    """
    if order.attempt == 0:
        return None
    candidates = _Candidates(db, order)
    if not candidates.spoke:
        return None
    anywhere = candidates.best(None)
    there = candidates.best(order.drone_id) if order.drone_id else anywhere
    if there is None:
        return Resumption(why_not=candidates.why_none)
    if anywhere is not None and anywhere.step.id == there.step.id:
        return Resumption(step=there.step.seq)
    drone = db.get_one(Drone, order.drone_id)
    return Resumption(step=there.step.seq, drone=drone.name, elsewhere=anywhere.step.seq if anywhere else None)


def _path_from(db: Session, checkpoint: Checkpoint | None) -> list[Segment]:
    return path_to(db, checkpoint.run.id, checkpoint.step.run_seq) if checkpoint else []


class _Candidates:
    """The checkpoints of an order, newest run first, and within a run last one first."""

    def __init__(self, db: Session, order: Order) -> None:
        self._db = db
        self._order = order
        db.flush()

    def __iter__(self) -> Iterator[Checkpoint]:
        for run, step, body in self._steps:
            yield Checkpoint(run, step, body, self._bundles.get(body.commit))

    def best(self, drone_id: str | None) -> Checkpoint | None:
        """The first usable checkpoint; with `drone_id` None, on any drone. Also None after repeated failures."""
        if self._failed_in_a_row >= _ENOUGH:
            return None
        return next((each for each in self if self._usable(each, drone_id)), None)

    @property
    def spoke(self) -> bool:
        """Whether a run that may be resumed sent anything to the model."""
        said = select(Step.id).join(Run, Run.id == Step.run_id).where(Run.order_id == self._order.id)
        of_interest = Run.generation > self._order.fresh_generation, Step.kind.in_(("user", "assistant"))
        return self._db.scalar(said.where(*of_interest, Step.late.is_(False)).limit(1)) is not None

    @property
    def why_none(self) -> NoCheckpoint:
        if self._lost:
            return "lost"
        return "expired" if any(body.bundle_sha256 for _, _, body in self._steps) else "not_stored"

    def is_on_disk(self, checkpoint: Checkpoint, drone_id: str) -> bool:
        """Whether this drone's disk has the commit. False once a later run could not get its checkpoint."""
        same = checkpoint.run.drone_id == drone_id and checkpoint.body.commit not in self._lost
        return same and not any(run.generation > checkpoint.run.generation for run in self._failed)

    def _usable(self, checkpoint: Checkpoint, drone_id: str | None) -> bool:
        if not checkpoint.body.commit:
            return checkpoint.body.commit not in self._lost
        lost_at = self._lost.get(checkpoint.body.commit)
        if checkpoint.bundle is not None and (lost_at is None or checkpoint.bundle.stored_at > lost_at):
            return True
        return drone_id is not None and self.is_on_disk(checkpoint, drone_id)

    @cached_property
    def _steps(self) -> Sequence[tuple[Run, Step, CheckpointStep]]:
        # Late ones are left out: another run had continued from an earlier point, or the order had ended.
        wanted = (
            select(Run, Step)
            .join(Step, Step.run_id == Run.id)
            .where(Run.order_id == self._order.id, Run.generation > self._order.fresh_generation)
            .where(Step.kind == "checkpoint", Step.late.is_(False))
            .order_by(Run.generation.desc(), Step.run_seq.desc())
        )
        return [(run, step, CheckpointStep.model_validate(step.body)) for run, step in self._db.execute(wanted)]

    @cached_property
    def _bundles(self) -> Mapping[str, Bundle]:
        """The stored bundle of each commit: a run without further changes has the commit of another run's bundle."""
        runs = {run.id for run, _, _ in self._steps}
        rows = self._db.scalars(select(Blob).where(Blob.run_id.in_(runs))).all() if runs else ()
        stored = {(row.run_id, row.sha256): row.created_at for row in rows}
        found: dict[str, Bundle] = {}
        for run, _, body in self._steps:
            name = body.bundle_sha256
            if name is not None and (run.id, name) in stored:
                found.setdefault(body.commit, Bundle(run.id, name, stored[run.id, name]))
        return found

    @cached_property
    def _failed(self) -> Sequence[Run]:
        """The runs that could not get their checkpoint, by generation."""
        errors = select(Step.run_id, Step.body).where(Step.order_id == self._order.id, Step.kind == "error")
        ids = {run_id for run_id, body in self._db.execute(errors) if body.get("code") == GONE}
        failed = select(Run).where(Run.id.in_(ids)).order_by(Run.generation)
        return self._db.scalars(failed).all() if ids else ()

    @property
    def _failed_in_a_row(self) -> int:
        """How many of the last runs could not get their checkpoint: if the base is gone, no checkpoint is usable."""
        failed = {run.id for run in self._failed}
        runs = select(Run.id).where(Run.order_id == self._order.id, Run.generation > self._order.fresh_generation)
        last = self._db.scalars(runs.order_by(Run.generation.desc()).limit(_ENOUGH)).all() if failed else ()
        return sum(1 for _ in takewhile(failed.__contains__, last))

    @cached_property
    def _lost(self) -> Mapping[str, datetime]:
        """The commits that turned out to be unavailable, each with the time: only a bundle stored later helps.

        A run reports that it could not get its checkpoint, but not which: it is the one that would have been chosen.
        """
        lost: dict[str, datetime] = {}
        for failed in self._failed:
            tried = next((each for each in self._before(failed) if each.body.commit not in lost), None)
            if tried is not None:
                lost[tried.body.commit] = failed.started_at
        return lost

    def _before(self, failed: Run) -> Iterable[Checkpoint]:
        """The checkpoints from which the run could have resumed when it began."""
        for each in self:
            stored = each.bundle is not None and each.bundle.stored_at <= failed.started_at
            could = not each.body.commit or stored or each.run.drone_id == failed.drone_id
            if each.run.generation < failed.generation and could:
                yield each


def _base_of(db: Session, order: Order, run: Run) -> str | None:
    """The commit at which the run's workspace was prepared; it is the same for the whole path."""
    said = select(Step.body).where(Step.run_id == run.id, Step.kind == "prepared").order_by(Step.run_seq).limit(1)
    body = db.scalar(said)
    return Prepared.model_validate(body).base_commit if body else order.base_commit


def _went_further(db: Session, order: Order, checkpoint: Checkpoint) -> bool:
    """Whether its run or a later one began a step after the checkpoint, which will be undone."""
    run, seq = checkpoint.run, checkpoint.step.run_seq
    after = or_(Run.generation > run.generation, (Run.id == run.id) & (Step.run_seq > seq))
    begun = select(Step.id).join(Run, Run.id == Step.run_id).where(Step.order_id == order.id, after)
    return db.scalar(begun.where(Step.kind.in_(_BEGINS_A_STEP)).limit(1)) is not None
