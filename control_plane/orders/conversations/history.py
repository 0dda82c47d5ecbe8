"""The conversation of a session: the way from the root of its tree to a leaf, and the messages along it.

An entry of the kind `turn` refers to an order, and the order's run has the messages, as the steps that its drone
reported. Nothing is stored twice, and the next turn sees exactly what the loop had, byte for byte.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.db.orders import Order
from control_plane.db.sessions import ChatSession as Chat
from control_plane.db.sessions import SessionEntry
from control_plane.orders.conversations.run_paths import Segment, path_to, paths_to, said_along
from shared.events import Body, CompactionStep
from shared.messages import Message
from shared.transcripts import messages_of, repaired


def way_to(db: Session, entry_id: str | None) -> list[SessionEntry]:
    """The turns from the root to this entry, including those of sessions that it was forked from."""
    known: dict[str, SessionEntry] = {}
    way: list[SessionEntry] = []
    while entry_id is not None:
        if entry_id not in known:
            # All turns of a session at once: one query per entry would make long sessions slow.
            session_id = db.get_one(SessionEntry, entry_id).session_id
            turns = select(SessionEntry).where(SessionEntry.session_id == session_id, SessionEntry.kind == "turn")
            known.update({each.id: each for each in db.scalars(turns)})
        way.append(known[entry_id])
        entry_id = known[entry_id].parent_id
    return way[::-1]


def way_of(db: Session, order: Order) -> list[SessionEntry]:
    """The turns that the order's next run continues from.

    An order that is run again begins where it began before, even if its session has moved since.
    """
    turns = select(SessionEntry).where(SessionEntry.order_id == order.id, SessionEntry.kind == "turn")
    own = db.scalar(turns.order_by(SessionEntry.number.desc()).limit(1))
    return way_to(db, own.parent_id if own is not None else db.get_one(Chat, order.session_id).leaf_id)


def messages_along(db: Session, way: Sequence[SessionEntry], path: Sequence[Segment] = ()) -> list[Message]:
    """All messages along the way and then along `path`: a valid conversation, with calls and thinking.

    Only at the end of `path` may calls have no result: a run was suspended there, and the next one runs them.
    """
    runs = [str(entry.data["run"]) for entry in way if entry.data.get("run")]
    of_runs = paths_to(db, [Segment(run_id) for run_id in runs]) if runs else {}
    paths = [*(of_runs[run_id] for run_id in runs), path]
    segments = [segment for each in paths for segment in each]
    said = said_along(db, segments) if segments else {}
    whole: list[Message] = []
    for each in paths:
        # Repaired only at its end: a run may begin with the results of calls of the run that it continues.
        bodies = [body for segment in each for body in said[segment]]
        whole = _after(whole, bodies, open_end=each is path)
    return whole


def last_work(db: Session, way: Sequence[SessionEntry]) -> Order | None:
    """The last order along the way that changed files."""
    ids = [entry.order_id for entry in way]
    named = select(Order).where(Order.id.in_(ids), Order.head_commit.is_not(None))
    changed = {order.id: order for order in db.scalars(named)} if ids else {}
    return next((changed[order_id] for order_id in reversed(ids) if order_id in changed), None)


def compactions_of(db: Session, run_id: str) -> list[CompactionStep]:
    """The compactions on the path of a run."""
    path = path_to(db, run_id)
    bodies = said_along(db, path)
    return [body for segment in path for body in bodies[segment] if isinstance(body, CompactionStep)]


def _after(history: list[Message], bodies: Sequence[Body], *, open_end: bool) -> list[Message]:
    """The conversation after one more turn, which may have been cut off anywhere. `history` is already valid."""
    messages = messages_of(bodies, history)
    if any(isinstance(body, CompactionStep) for body in bodies):
        return repaired(messages, open_end=open_end)
    # Only the new part can be broken; checking all of it again for every turn would add up.
    return [*history, *repaired(messages[len(history) :], open_end=open_end)]
