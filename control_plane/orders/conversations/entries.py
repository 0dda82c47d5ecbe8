"""Writes the entries of a session's tree, including the turn of an order that has ended.

Turns are the nodes of the tree; every other entry is a note attached to a node and moves nothing. Entries are only
ever added.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from control_plane.core import Core
from control_plane.db.orders import Dispatch, Order
from control_plane.db.sessions import ChatSession as Chat
from control_plane.db.sessions import SessionEntry
from control_plane.orders.conversations.history import compactions_of, way_of
from control_plane.orders.conversations.run_paths import run_that_speaks
from shared.control import Compact
from shared.events import CompactionStep
from shared.names import new_id
from shared.outcome import ExitStatus
from shared.states import OrderStatus

EntryKind = Literal["turn", "compaction", "leaf", "label", "model_change", "mode_change", "name", "branch_summary"]


def locked(db: Session, session_id: str) -> Chat:
    """The session, locked against other changes until the transaction ends."""
    db.flush()
    return db.get_one(Chat, session_id, with_for_update=True, populate_existing=True)


def write_entry(  # noqa: PLR0913 - one argument per column that differs
    db: Session,
    core: Core,
    chat: Chat,
    kind: EntryKind,
    *,
    parent_id: str | None,
    data: dict[str, Any],
    order_id: str | None = None,
) -> SessionEntry:
    """Add an entry to the tree of a session that is `locked`."""
    db.flush()
    entry = SessionEntry(
        id=new_id(),
        organization_id=chat.organization_id,
        # No separate counter: a session's entries are written under its lock, and numbers of other sessions may tie.
        number=(db.scalar(select(func.max(SessionEntry.number))) or 0) + 1,
        session_id=chat.id,
        parent_id=parent_id,
        kind=kind,
        order_id=order_id,
        data=data,
        at=core.clock.now(),
    )
    db.add(entry)
    db.flush()
    return entry


def turn_ended(db: Session, core: Core, order: Order) -> None:
    """Add the turn of an order that has just ended to its session's tree.

    It becomes the leaf, unless the model could not be reached in the end: then the message is kept, marked as error,
    and the leaf stays before it, so that the next turn does not see it (O-011, O-023 with the message kept).
    """
    chat = locked(db, order.session_id)
    way = way_of(db, order)
    before = way[-1] if way else None
    run_id = run_that_speaks(db, order)
    failed = is_left_out(order)
    _note_change_of_model(db, core, chat, before, order)
    data = {"run": run_id, "status": order.status, "exit_status": order.exit_status, "error": failed}
    parent_id = before.id if before is not None else None
    turn = write_entry(db, core, chat, "turn", parent_id=parent_id, data=data, order_id=order.id)
    chat.leaf_id = parent_id if failed else turn.id
    if run_id is not None:
        sealed_at = select(Dispatch.published_at).where(Dispatch.id == run_id)
        if chat.compact is not None and not _was_asked_after(db, chat, db.scalar(sealed_at)):
            # The run had the request from its beginning, and ended before it could do it.
            chat.compact = None
        for step in compactions_of(db, run_id):
            write_entry(db, core, chat, "compaction", parent_id=turn.id, data=_of_compaction(step))


def is_left_out(order: Order) -> bool:
    """Whether the ended order's turn is in no conversation, because its model could not be reached in the end."""
    # After a task's turn, the next one sees none of its messages, only the files that it left.
    said = order.task_id is None
    return said and order.status == OrderStatus.FAILED and order.exit_status == ExitStatus.MODEL_ERROR


def compacted(db: Session, order: Order, step: CompactionStep) -> None:
    """Clear the requested compaction after a run of the order has done it."""
    if step.cause == "asked":
        locked(db, order.session_id).compact = None


def asked_meanwhile(db: Session, order: Order, published_at: datetime | None) -> Compact | None:
    """The message to a run that has begun, if a compaction was requested after its work order was sealed."""
    chat = db.get_one(Chat, order.session_id)
    if chat.compact is None or order.run_id is None or not _was_asked_after(db, chat, published_at):
        return None
    return Compact(run_id=order.run_id, instructions=chat.compact)


def _was_asked_after(db: Session, chat: Chat, published_at: datetime | None) -> bool:
    """Whether the last request for a compaction is not in the work order that was sealed then."""
    if published_at is None:
        return False
    asked = select(func.max(SessionEntry.at)).where(
        SessionEntry.session_id == chat.id, SessionEntry.kind == "compaction"
    )
    return (db.scalar(asked) or published_at) > published_at


def _note_change_of_model(db: Session, core: Core, chat: Chat, before: SessionEntry | None, order: Order) -> None:
    last = db.get(Order, before.order_id) if before is not None else None
    if last is not None and last.model != order.model:
        data = {"from": last.model, "to": order.model}
        write_entry(db, core, chat, "model_change", parent_id=before.id if before else None, data=data)


def _of_compaction(step: CompactionStep) -> dict[str, Any]:
    return {
        "cause": step.cause,
        "summary": step.summary,
        "tokens_before": step.tokens_before,
        "tokens_after": step.tokens_after,
        "kept": step.kept,
    }
