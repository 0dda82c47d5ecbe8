"""The places in a session's tree, found by the names that people use."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session as Db

from control_plane.contract.validation.checks import shown
from control_plane.db.sessions import ChatSession, SessionEntry
from control_plane.orders.conversations.history import way_to
from shared.errors import NotFound

ROOT = "root"
"""The name of the place before the first turn."""


def tree_of(db: Db, chat: ChatSession) -> list[SessionEntry]:
    """The session's entries in the order of their writing, preceded by the turns that it has from other sessions."""
    own = select(SessionEntry).where(SessionEntry.session_id == chat.id).order_by(SessionEntry.number)
    entries = list(db.scalars(own))
    # The first entry of a fork is attached to the turn at which it was forked.
    first = entries[0].parent_id if entries else chat.leaf_id
    return [*way_to(db, first), *entries]


def find_place(db: Db, chat: ChatSession, name: str) -> SessionEntry | None:
    """The turn that `name` stands for, None for the root. Raises NotFound.

    It may be an entry's id (a note's id stands for the turn that the note is attached to), an order's id or a label.
    """
    if name == ROOT:
        return None
    entries = tree_of(db, chat)
    by_id = {entry.id: entry for entry in entries}
    labels = labels_of(entries)
    for entry in reversed(entries):
        if name in {entry.id, entry.order_id} or (entry.kind == "turn" and labels.get(entry.id) == name):
            return entry if entry.kind == "turn" else by_id.get(entry.parent_id or "")
    raise NotFound(
        f"session {chat.id} has no entry {shown(name)}",
        code="E-SESSION-ENTRY",
        next=f"fleet session show {chat.id}    lists the entries; `{ROOT}` is the position before the first turn",
    )


def labels_of(entries: Sequence[SessionEntry]) -> dict[str | None, str]:
    """The label of each place that has one; the latest one counts."""
    return {entry.parent_id: str(entry.data["text"]) for entry in entries if entry.kind == "label"}
