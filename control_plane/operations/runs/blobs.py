"""Files of a run: requests of a drone over HTTP, with its own credential."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import BinaryIO, Literal

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.contract.validation.checks import shown
from control_plane.core import AuthenticatedDrone, Core
from control_plane.core.blob_store import place_of
from control_plane.db.engine import pause
from control_plane.db.orders import Dispatch, Order
from control_plane.db.runs import Blob
from control_plane.orders.conversations.history import way_of
from control_plane.orders.conversations.upstream import foundation_of
from shared.errors import NotFound

BlobKind = Literal["", "checkpoint"]
_CHUNK = 1 << 18


def put_blob(  # noqa: PLR0913, PLR0917 - the parts of one request
    core: Core, identity: AuthenticatedDrone, run_id: str, sha256: str, stream: BinaryIO, kind: BlobKind = ""
) -> int:
    """Store a file of the drone's own run and return its size; a repeated call changes nothing.

    A checkpoint is sealed on disk, which happens in memory and limits its size. A late run may store files too: its
    work is kept, under its own name. Raises NotFound for a run that is not the drone's, Invalid if the content does
    not match its SHA-256, TooLarge over 512 MB, or 64 MB for a checkpoint.
    """
    with core.database.read() as db:
        dispatch = own_dispatch(db, identity, run_id)
    sealed = kind == "checkpoint"
    if sealed:
        size = core.blobs.store_sealed(sha256, stream, core.vault.seal_content)
    else:
        size = core.blobs.store(sha256, stream)
    # The row after the file: a row guarantees that the file exists; a file without a row only uses disk space.
    with core.database.write() as db:
        _give(db, core, dispatch, sha256, size, sealed=sealed)
    if sealed:
        # The step of the checkpoint was announced before its files were stored.
        core.broker.stepped([dispatch.order_id])
    return size


def lend_blobs(core: Core, named: Iterable[tuple[Dispatch, str]]) -> None:
    """Let the drones of these dispatches read blobs that the control plane itself stored for them."""
    sizes = [(dispatch, sha256, core.blobs.size(sha256)) for dispatch, sha256 in named]
    with core.database.write() as db:
        for dispatch, sha256, size in sizes:
            _give(db, core, dispatch, sha256, size)


@dataclass(frozen=True)
class BlobContent:
    """The content of a blob, to be sent."""

    size: int
    chunks: Iterator[bytes]


def get_blob(core: Core, identity: AuthenticatedDrone, run_id: str, sha256: str) -> BlobContent:
    """The content of the file, unsealed.

    A drone may read the files of its own runs, of other runs of its current orders, and of the turns that those orders
    continue from. Raises NotFound for everything else, so that the answer does not reveal what exists.
    """
    place_of(sha256, sealed=False)
    with core.database.read() as db:
        row = db.get(Blob, (run_id, sha256))
        found = row is not None and _may_read(db, identity, run_id)
    if not found or row is None:
        raise NotFound(f"run {shown(run_id)} has no blob {sha256[:12]}", code="E-BLOB-404")
    if row.sealed:
        content = core.blobs.read_sealed(sha256, core.vault.open_content)
        return BlobContent(len(content), iter([content]))
    stack = ExitStack()
    file = stack.enter_context(core.blobs.stored(sha256, sealed=False))
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    return BlobContent(size, _chunks(file, stack))


def _chunks(file: BinaryIO, stack: ExitStack) -> Iterator[bytes]:
    with stack:
        while chunk := file.read(_CHUNK):
            yield chunk


def blob_of_run(db: Session, core: Core, run_id: str, sha256: str) -> bytes:
    """The content of a file that the run stored. Raises NotFound for any other, which its report may name, too."""
    if db.get(Blob, (run_id, sha256)) is None:
        raise NotFound(f"run {run_id} has no blob {sha256[:12]}", code="E-BLOB-404")
    pause(db)
    return core.blobs.read(sha256)


def _give(  # noqa: PLR0913 - one argument per column
    db: Session, core: Core, dispatch: Dispatch, sha256: str, size: int, *, sealed: bool = False
) -> None:
    """Write the row that assigns a stored file to the run.

    If a checkpoint had the same content, the row now is about the file that is not sealed: it is kept for longer. A
    checkpoint that is the same as an earlier one counts as new, so it outlives those in between.
    """
    row = db.get(Blob, (dispatch.id, sha256))
    if row is not None:
        row.sealed = row.sealed and sealed
        if row.sealed:
            row.created_at = core.clock.now()
    else:
        db.add(
            Blob(
                organization_id=dispatch.organization_id,
                run_id=dispatch.id,
                sha256=sha256,
                size=size,
                sealed=sealed,
                created_at=core.clock.now(),
            )
        )


def own_dispatch(db: Session, identity: AuthenticatedDrone, run_id: str) -> Dispatch:
    """The dispatch of a run of this drone. Raises NotFound for every other run."""
    dispatch = db.get(Dispatch, run_id)
    if dispatch is None or dispatch.drone_id != identity.drone_id:
        raise NotFound(f"drone {identity.name} has no run {shown(run_id)}", code="E-RUN-404")
    return dispatch


def _may_read(db: Session, identity: AuthenticatedDrone, run_id: str) -> bool:
    dispatch = db.get_one(Dispatch, run_id)
    if dispatch.drone_id == identity.drone_id:
        return True
    in_hand = (
        select(Order)
        .join(Dispatch, Order.id == Dispatch.order_id)
        .where(Dispatch.drone_id == identity.drone_id, Dispatch.closed_at.is_(None))
    )
    orders = db.scalars(in_hand).all()
    if any(order.id == dispatch.order_id for order in orders):
        return True
    return any(dispatch.order_id in _builds_on(db, order) for order in orders)


def _builds_on(db: Session, order: Order) -> set[str | None]:
    """The orders of the preceding turns, those whose work it starts from, and the one whose work it pushes."""
    if order.purpose == "push":
        return {(order.asked or {}).get("order")}
    # The turns, not the session: a fork builds on the work of its original session.
    way = way_of(db, order)
    return {entry.order_id for entry in way} | {each.id for each in foundation_of(db, order, way).orders}
