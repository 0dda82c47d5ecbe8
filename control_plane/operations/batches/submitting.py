"""Submit batches: check all rows, and store them. The supervisor makes orders of them, a few at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session as Db

from control_plane.contract.declarations import batches as declared
from control_plane.contract.declarations.batches import (
    BatchDocument,
    BatchRequest,
    BatchRowRequest,
    RowsRequest,
    fingerprint,
)
from control_plane.contract.declarations.orders import SubmitRequest
from control_plane.contract.validation.checks import check_text, shown
from control_plane.core import Caller, Core
from control_plane.core.lookups.groups import find_batch
from control_plane.core.lookups.modes import find_mode
from control_plane.core.lookups.providers import find_provider_or_model
from control_plane.db.batches import BatchRow
from control_plane.db.groups import OrderGroup
from control_plane.operations.batches.reading import show
from control_plane.operations.gateway import performs
from control_plane.operations.orders.submitting import check_request, draft_of
from control_plane.orders.draft import Draft
from control_plane.orders.numbers import lock_numbers
from shared.errors import Conflict, FleetError, Invalid, TooLarge
from shared.names import new_id


@performs(declared.SUBMIT)
def submit(core: Core, caller: Caller, request: BatchRequest) -> BatchDocument:
    """Store a batch with all of its rows, or none of them; they are durable when this returns.

    With `more`, no order starts before the last rows are added; until then, submitting the batch again replaces it.
    The same name with the same rows returns the same batch. Raises Conflict for another batch of this name, Invalid or
    NotFound for a row, which the message names.
    """
    check_text("the name", request.name, limit=128)
    _check_rows(request.rows)

    def write(db: Db) -> str:
        lock_numbers(db)
        batch = _named(db, caller, request.name)
        if batch is not None and (batch.begun_at is not None or batch.canceled_at is not None):
            _refuse_other_rows(db, batch, request)
            return batch.id
        if batch is not None:
            db.execute(delete(BatchRow).where(BatchRow.batch_id == batch.id))
            batch.parallel = request.parallel
        else:
            batch = _created(db, core, caller, request)
        _add(db, core, caller, batch, request)
        return batch.id

    batch_id = core.database.transact(write)
    core.broker.wake()
    return show(core, caller, batch_id)


@performs(declared.ADD_ROWS)
def add_rows(core: Core, caller: Caller, batch_id: str, request: RowsRequest) -> BatchDocument:
    """Add rows; one that is there already has no effect.

    Raises Conflict for a row that differs from the one with its id, and for a canceled batch, TooLarge for more than
    10,000 rows, and as `submit` for the rows.
    """
    _check_rows(request.rows)

    def write(db: Db) -> str:
        lock_numbers(db)
        batch = find_batch(db, caller, batch_id, lock=True)
        if batch.canceled_at is not None:
            raise Conflict(
                f"batch {batch.name} was canceled, so it takes no further rows",
                code="E-BATCH-STATE",
                next=f"fleet batch retry {batch.id} --which canceled    continues it",
            )
        _add(db, core, caller, batch, request)
        return batch.id

    found = core.database.transact(write)
    core.broker.wake()
    return show(core, caller, found)


def draft_of_row(db: Db, core: Core, caller: Caller, row: BatchRowRequest) -> Draft:
    """What the row's order is made of. Raises as for an order that is submitted alone."""
    fields = row.model_dump(exclude={"id"})
    if row.provider is not None:
        fields["provider"] = find_provider_or_model(db, caller.organization_id, row.provider).name
    return draft_of(db, core, caller, SubmitRequest(**fields))


def _check_rows(rows: Sequence[BatchRowRequest]) -> None:
    """Check everything that needs no database. Raises Invalid or TooLarge."""
    seen: set[str] = set()
    for row in rows:
        if row.id in seen:
            raise Invalid(
                f"two rows have the id {shown(row.id)}", code="E-BATCH-ID", next="give each row an id of its own"
            )
        seen.add(row.id)
        with _row_named(row.id):
            check_text("the id", row.id, limit=declared.MAX_ROW_ID)
            if row.session is not None or row.after:
                raise Invalid(
                    "a row of a batch has a session of its own, and starts after no other order",
                    code="E-BATCH-ROW",
                    next="remove session and after; orders that build on each other: fleet graph run FILE",
                )
            check_request(SubmitRequest(**row.model_dump(exclude={"id"})), None)


def _named(db: Db, caller: Caller, name: str) -> OrderGroup | None:
    own = (OrderGroup.organization_id == caller.organization_id, OrderGroup.kind == "batch")
    return db.scalar(select(OrderGroup).where(*own, OrderGroup.name == name).with_for_update())


def _refuse_other_rows(db: Db, batch: OrderGroup, request: BatchRequest) -> None:
    digests = db.scalars(select(BatchRow.digest).where(BatchRow.batch_id == batch.id).order_by(BatchRow.number))
    if request.more or fingerprint(digests) != fingerprint(row.digest for row in request.rows):
        raise Conflict(
            f"batch {batch.name} exists already, with other rows",
            code="E-BATCH-CHANGED",
            why="the results of a batch belong to the rows that it was submitted with",
            next="use another name, or add only new rows: fleet batch run FILE --extend",
        )


def _created(db: Db, core: Core, caller: Caller, request: BatchRequest) -> OrderGroup:
    batch = OrderGroup(
        id=new_id(),
        organization_id=caller.organization_id,
        kind="batch",
        name=request.name,
        user=caller.user,
        user_id=caller.user_id,
        parallel=request.parallel,
        created_at=core.clock.now(),
    )
    db.add(batch)
    db.flush()
    return batch


def _add(db: Db, core: Core, caller: Caller, batch: OrderGroup, request: BatchRequest | RowsRequest) -> None:
    """Append the rows that are not there yet; without `more`, the batch begins. Raises Conflict and TooLarge."""
    own = BatchRow.batch_id == batch.id
    keys = [row.id for row in request.rows]
    known = {
        key: digest
        for key, digest in db.execute(select(BatchRow.key, BatchRow.digest).where(own, BatchRow.key.in_(keys)))
    }
    for row in request.rows:
        if known.get(row.id, row.digest) != row.digest:
            raise Conflict(
                f"row {shown(row.id)} differs from the one that batch {batch.name} has",
                code="E-BATCH-CHANGED",
                why="its result belongs to the row that it was submitted with",
                next="give the changed row another id, or the batch another name",
            )
    new = [row for row in request.rows if row.id not in known]
    last = db.scalar(select(func.max(BatchRow.number)).where(own)) or 0
    if last + len(new) > declared.MOST_ROWS:
        raise TooLarge(
            f"batch {batch.name} would have {last + len(new):,} rows; {declared.MOST_ROWS:,} are allowed",
            code="E-BATCH-SIZE",
            next="divide it into several batches",
        )
    _check_names(db, core, caller, new)
    db.add_all(_row(batch, number, row) for number, row in enumerate(new, last + 1))
    if not request.more and (new or batch.begun_at is None):
        batch.begun_at = core.clock.now()


def _check_names(db: Db, core: Core, caller: Caller, rows: Sequence[BatchRowRequest]) -> None:
    """Raise as `draft_of_row` for the first row whose order could not be created."""
    seen = set()
    for row in rows:
        names = (row.project, row.provider, row.drone, row.profile, row.reviewer)
        checked = (*names, row.mode, row.plan_first, tuple(row.verify or ()))
        if checked not in seen:
            seen.add(checked)
            with _row_named(row.id):
                draft = draft_of_row(db, core, caller, row)
                find_mode(db, draft.project, draft.mode)


def _row(batch: OrderGroup, number: int, row: BatchRowRequest) -> BatchRow:
    return BatchRow(
        batch_id=batch.id,
        organization_id=batch.organization_id,
        number=number,
        key=row.id,
        digest=row.digest,
        request=row.model_dump(mode="json", exclude_defaults=True),
        state="waiting",
    )


@contextmanager
def _row_named(id: str) -> Iterator[None]:
    """Add the row's id to an error about it."""
    try:
        yield
    except FleetError as error:
        error.what = f"row {shown(id)}: {error.what}"
        error.args = (error.what,)
        raise
