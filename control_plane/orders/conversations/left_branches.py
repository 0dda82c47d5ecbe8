"""The branch that a person left by switching a session: its summary stands where the paths part (O-032, O-034).

The next turn's run writes the summary before it begins, on the turn's own budget. It stays in the session's tree, so
that the turn can be run again with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.core import Core
from control_plane.db.orders import Order
from control_plane.db.sessions import ChatSession, SessionEntry
from control_plane.orders.conversations.entries import locked, write_entry
from control_plane.orders.conversations.history import messages_along, way_to
from shared.events import CommentStep
from shared.messages import Message

MAX_LEFT = 40_000
"""Characters of the branch that are summarized, the newest."""
MAX_EACH = 2_000
"""Characters of one message of it."""


def left_by(db: Session, leaf_id: str | None, place_id: str | None) -> str | None:
    """The leaf of the branch that a switch from `leaf_id` to `place_id` leaves; None if it leaves no turn."""
    remaining = {entry.id for entry in way_to(db, place_id)}
    return leaf_id if leaf_id is not None and leaf_id not in remaining else None


def left_branch(db: Session, chat: ChatSession, order: Order, way: Sequence[SessionEntry]) -> dict[str, Any]:
    """What the order's run gets of the branch that was left: its summary, or what is to be summarized."""
    if order.purpose != "work" or order.task_id is not None:
        return {}
    if summary := _summary_for(db, chat, order):
        return {"left_summary": summary}
    if chat.left_leaf_id is None:
        return {}
    kept = {entry.id for entry in way}
    branch = [entry for entry in way_to(db, chat.left_leaf_id) if entry.id not in kept]
    return {"left": _shortened(messages_along(db, branch)), "left_leaf": chat.left_leaf_id}


def summarized(db: Session, core: Core, order: Order, step: CommentStep) -> None:
    """A run of the order wrote the summary; it is written once."""
    chat = locked(db, order.session_id)
    if chat.left_leaf_id == step.left_leaf:
        data = {"from": step.left_leaf, "text": step.text, "by": order.id}
        write_entry(db, core, chat, "branch_summary", parent_id=chat.leaf_id, data=data)
        chat.left_leaf_id = None


def _summary_for(db: Session, chat: ChatSession, order: Order) -> str:
    wanted = select(SessionEntry.data).where(SessionEntry.session_id == chat.id, SessionEntry.kind == "branch_summary")
    return next((str(data["text"]) for data in db.scalars(wanted) if data.get("by") == order.id), "")


def _shortened(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The newest messages, each cut; without thinking, which only its provider could read."""
    kept: list[Message] = []
    room = MAX_LEFT
    for message in reversed(messages):
        calls = tuple(call.model_copy(update={"arguments": call.arguments[:MAX_EACH]}) for call in message.tool_calls)
        short = message.model_copy(
            update={"content": message.content[:MAX_EACH], "thinking": "", "thinking_blocks": (), "tool_calls": calls}
        )
        room -= len(short.content) + sum(len(call.arguments) for call in calls)
        if room < 0:
            break
        kept.append(short)
    return tuple(kept[::-1])
