"""What an order changed: in its own turn, or everything on its branch, as far as drones have reported it.

While an order runs, its drone reports the changes so far with each checkpoint that has any.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from sqlalchemy import select
from sqlalchemy.orm import Session as Db

from control_plane.contract.validation.checks import shown
from control_plane.core import Caller, Core
from control_plane.db.orders import Dispatch, Order
from control_plane.db.runs import Blob, Step
from control_plane.operations.orders.removed import no_longer_stored
from control_plane.operations.orders.step_reading import own_order
from control_plane.orders.conversations.history import way_of
from control_plane.orders.conversations.run_paths import order_path
from shared.errors import NotFound
from shared.events import CheckpointStep

Scope = Literal["turn", "branch"]
"""The changes of one turn against what it started from, or those of its branch against the project's."""
CHECKPOINTS = 20
"""The last ones, of which one has its patch stored, if the drone reports patches."""


@dataclass(frozen=True)
class Moment:
    """The step of a running order after which its changes were reported."""

    step: int
    at: datetime


@dataclass(frozen=True)
class Report:
    """Where the changes are stored, and of when they are."""

    order_id: str
    """An earlier turn of the conversation, if the branch has nothing newer."""
    run_id: str
    sha256: str | None
    """None: nothing changed."""
    sealed: bool = False
    moment: Moment | None = None
    """None: as delivered."""
    withheld: str = ""
    """Why later changes are not reported (`shared.events.CheckpointStep.patch_withheld`)."""
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reports:
    """What is known of an order's changes, without their content."""

    turn: Report | None
    branch: Report | None
    """The same as `turn` if no earlier turn has work."""
    earlier: tuple[str, ...] = ()
    """The turns before it that have work, first one first."""

    def of(self, scope: Scope | None) -> tuple[Scope, Report | None]:
        """The report of a scope; of the whole branch, if none is asked for and there is more than this turn."""
        chosen = scope if self.earlier and scope else "branch" if self.earlier else "turn"
        return chosen, self.branch if chosen == "branch" else self.turn


def reports_of(core: Core, caller: Caller, order_id: str) -> Reports:
    """What drones have reported of an order's changes. Raises NotFound for the order."""
    with core.database.read() as db:
        return _reports(db, own_order(db, caller, order_id))


def patch_in(core: Core, report: Report) -> bytes:
    """The patch of a report. Raises NotFound if it is no longer stored."""
    if report.sha256 is None:
        return b""
    _require_stored(core, report, report.sha256)
    return _content(core, report, report.sha256)


def files_in(core: Core, report: Report) -> int:
    """How many files a report's patch changes. Raises NotFound if it is no longer stored.

    Each step of an open page asks for it, so a patch is read once for all, and not parsed.
    """
    if report.sha256 is None:
        return 0
    _require_stored(core, report, report.sha256)
    count = _FILES.get(report.sha256)
    if count is None:
        if len(_FILES) >= _MOST_COUNTED:
            _FILES.clear()
        # Only the head of a file begins a line like this.
        count = _FILES[report.sha256] = (b"\n" + _content(core, report, report.sha256)).count(b"\ndiff --git ")
    return count


_MOST_COUNTED = 10_000
_FILES: dict[str, int] = {}
"""By the SHA-256 of a patch, how many files it changes."""


def _require_stored(core: Core, report: Report, sha256: str) -> None:
    with core.database.read() as db:
        if db.get(Blob, (report.run_id, sha256)) is None:
            raise no_longer_stored(f"the patch of order {report.order_id}", "FLEET_KEEP_WORK_DAYS", report.order_id)


def _content(core: Core, report: Report, sha256: str) -> bytes:
    return core.blobs.read_sealed(sha256, core.vault.open_content) if report.sealed else core.blobs.read(sha256)


def patch_named(core: Core, caller: Caller, order_id: str, sha256: str) -> bytes:
    """A patch that a run of the order, or of a turn before it, stored. Raises NotFound."""
    with core.database.read() as db:
        order = own_order(db, caller, order_id)
        orders = [order.id, *(each.id for each in _earlier(db, order))]
        found = select(Blob).join(Dispatch, Dispatch.id == Blob.run_id)
        blob = db.scalar(found.where(Blob.sha256 == sha256, Dispatch.order_id.in_(orders)).limit(1))
    if blob is None:
        raise NotFound(
            f"order {order_id} has no patch {shown(sha256[:12])}", code="E-BLOB-404", next="reload the changes"
        )
    return patch_in(core, Report(order_id, blob.run_id, blob.sha256, sealed=blob.sealed))


def patch_since(core: Core, caller: Caller, order_id: str, order_ids: Sequence[str]) -> list[tuple[str, bytes]]:
    """The patches of these turns and of the order itself, each against what that turn started from, as far as stored.

    Raises NotFound for the order.
    """
    with core.database.read() as db:
        order = own_order(db, caller, order_id)
        turns = [*(each for each in _earlier(db, order) if each.id in order_ids), order]
        reports = [report for each in turns if (report := _newest(db, each, "turn")) is not None]
    found = []
    for report in reports:
        try:
            found.append((report.order_id, patch_in(core, report)))
        except NotFound:
            continue
    return found


def _reports(db: Db, order: Order) -> Reports:
    earlier = _earlier(db, order)
    turn = _newest(db, order, "turn")
    if not earlier:
        return Reports(turn, turn)
    return Reports(turn, _of_branch(db, order, earlier, turn), tuple(each.id for each in earlier))


def _earlier(db: Db, order: Order) -> list[Order]:
    ids = [entry.order_id for entry in way_of(db, order) if entry.order_id is not None]
    named = select(Order).where(Order.id.in_(ids), Order.head_commit.is_not(None))
    known = {each.id: each for each in db.scalars(named)} if ids else {}
    return [known[each] for each in ids if each in known]


def _of_branch(db: Db, order: Order, earlier: Sequence[Order], turn: Report | None) -> Report | None:
    own = _newest(db, order, "branch")
    if own is not None and own.sha256 is not None:
        return own
    if turn is not None and turn.sha256 is not None:
        return None  # it has none, or what was on the branch before is withheld
    last = earlier[-1]
    if last.branch_patch_sha256 is not None:
        return _newest(db, last, "branch")
    return _newest(db, last, "turn") if len(earlier) == 1 else None


def _newest(db: Db, order: Order, scope: Scope) -> Report | None:
    """What was delivered; while a run works that has not delivered, what it reported so far."""
    reported = _reported(db, order, scope)
    run_id = order.result_run_id
    if run_id is None or (order.ended_at is None and reported is not None and reported.run_id != run_id):
        return reported
    name = order.patch_sha256 if scope == "turn" else order.branch_patch_sha256
    return Report(order.id, run_id, name)


def _reported(db: Db, order: Order, scope: Scope) -> Report | None:
    last = select(Step).where(Step.order_id == order.id, Step.kind == "checkpoint", Step.late.is_(False))
    steps = db.scalars(last.order_by(Step.seq.desc()).limit(CHECKPOINTS)).all()
    if not steps:
        return None
    path = order_path(db, order)
    runs = {step.run_id for step in steps}
    bodies = [(step, CheckpointStep.model_validate(step.body)) for step in steps]
    names = {name for _, body in bodies if (name := _patch(body, scope)) is not None}
    blobs = db.scalars(select(Blob).where(Blob.run_id.in_(runs), Blob.sha256.in_(names)))
    stored = {(blob.run_id, blob.sha256): blob.sealed for blob in blobs}
    withheld = next((body.patch_withheld for _, body in bodies), "")
    for step, body in bodies:
        name = _patch(body, scope)
        # A patch is stored a moment after its checkpoint was reported: until then, the one before it is the newest.
        if name is not None and (step.run_id, name) in stored and not path.undone(step.run_id, step.run_seq):
            since = Moment(step.seq, step.at)
            return Report(order.id, step.run_id, name, stored[step.run_id, name], since, withheld, body.left_out)
    return Report(order.id, steps[0].run_id, None, withheld=withheld) if withheld else None


def _patch(body: CheckpointStep, scope: Scope) -> str | None:
    return body.patch_sha256 if scope == "turn" else body.branch_patch_sha256
