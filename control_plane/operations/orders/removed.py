"""What of an order is no longer stored: the retention removed it, or it was not imported."""

from __future__ import annotations

from sqlalchemy import Text, cast, or_, select
from sqlalchemy.orm import Session as Db

from control_plane.db.orders import Order
from control_plane.db.runs import Blob, Step
from control_plane.orders.conversations.run_paths import lacks_steps
from shared.errors import NotFound

_LOGS = ("log_sha256", "raw_sha256")
"""The members of a step that name a file."""


def removed_note(db: Db, order: Order) -> str | None:
    """One sentence about an order that has ended; None if all of it is stored."""
    if order.ended_at is None:
        return None
    gone = [
        *(["steps"] if lacks_steps(db, order) else []),
        *(["logs"] if _lacks_logs(db, order) else []),
        *(["patch"] if order.patch_sha256 is not None and not has_patch(db, order) else []),
        *(["bundle"] if not has_file(db, order.result_run_id, order.bundle_sha256) else []),
    ]
    if not gone:
        return None
    listed = " and ".join(part for part in (", ".join(gone[:-1]), gone[-1]) if part)
    return f"Its {listed} {'is' if gone in (['patch'], ['bundle']) else 'are'} no longer stored."


def has_patch(db: Db, order: Order) -> bool:
    """Whether the order's patch is stored."""
    return has_file(db, order.result_run_id, order.patch_sha256)


def has_file(db: Db, run_id: str | None, sha256: str | None) -> bool:
    """Whether the file of a run is stored; also if there is none to store."""
    return run_id is None or sha256 is None or db.get(Blob, (run_id, sha256)) is not None


def no_longer_stored(what: str, setting: str, order_id: str) -> NotFound:
    """The error of a reader who asks for it."""
    return NotFound(
        f"{what} is no longer stored",
        code="E-ORDER-REMOVED",
        why=f"it was kept as long as {setting} of the control plane says, or it was not imported with the order",
        next=f"fleet show {order_id}    shows what is left",
    )


def _lacks_logs(db: Db, order: Order) -> bool:
    """Whether a step names a file that is not there."""
    # Found as text: PostgreSQL cannot take a value out of a document in which any text contains a NUL.
    body = cast(Step.body, Text)
    names_one = or_(*(body.contains(f'"{name}": "', autoescape=True) for name in _LOGS))
    rows = db.execute(select(Step.run_id, Step.body).where(Step.order_id == order.id, names_one)).all()
    wanted = {(run_id, body[name]) for run_id, body in rows for name in _LOGS if body.get(name)}
    runs = {run_id for run_id, _ in wanted}
    stored = db.execute(select(Blob.run_id, Blob.sha256).where(Blob.run_id.in_(runs)))
    return not wanted <= {(run_id, sha256) for run_id, sha256 in stored}
