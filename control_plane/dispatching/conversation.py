"""The conversation of a session: the way from the root of its tree to a leaf, and what was said along it.

An entry of the kind `turn` points at an order, and the order's run has the messages, as the steps that its drone
reported: nothing is kept twice, and what the next turn sees is what the loop had, byte for byte.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from pydantic import TypeAdapter
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from control_plane.db.models import Order, SessionEntry, Step
from control_plane.db.models import Session as Chat
from shared.events import Body, CompactionStep
from shared.messages import Message
from shared.transcripts import mended, messages_of

SAID = ("reasoning", "assistant", "user", "tool_result", "compaction")
"""The kinds of steps that make up a conversation."""
_BODY: TypeAdapter[Body] = TypeAdapter(Body)


def way_to(db: Session, entry_id: str | None) -> list[SessionEntry]:
    """The turns from the root to this entry, also through the sessions that it was forked from."""
    known: dict[str, SessionEntry] = {}
    way: list[SessionEntry] = []
    while entry_id is not None:
        if entry_id not in known:
            # All turns of a session at once: a query for each entry would make long sessions slow.
            session_id = db.get_one(SessionEntry, entry_id).session_id
            turns = select(SessionEntry).where(SessionEntry.session_id == session_id, SessionEntry.kind == "turn")
            known.update({each.id: each for each in db.scalars(turns)})
        way.append(known[entry_id])
        entry_id = known[entry_id].parent_id
    return way[::-1]


def way_of(db: Session, order: Order) -> list[SessionEntry]:
    """The turns that the order's next run goes on from.

    A turn of the order itself is left out: an order that is run again begins where it began before.
    """
    leaf_id = db.get_one(Chat, order.session_id).leaf_id
    return [entry for entry in way_to(db, leaf_id) if entry.order_id != order.id]


def messages_along(db: Session, way: Sequence[SessionEntry]) -> list[Message]:
    """All that was said along the way, tool calls, results and thinking included; a valid conversation."""
    runs = [str(entry.data["run"]) for entry in way if entry.data.get("run")]
    bodies = _said(db, runs) if runs else {}
    whole: list[Message] = []
    for run_id in runs:
        whole = _after(whole, bodies[run_id])
    return whole


def last_work(db: Session, way: Sequence[SessionEntry]) -> Order | None:
    """The last order along the way that changed files."""
    ids = [entry.order_id for entry in way]
    named = select(Order).where(Order.id.in_(ids), Order.head_commit.is_not(None))
    changed = {order.id: order for order in db.scalars(named)} if ids else {}
    return next((changed[order_id] for order_id in reversed(ids) if order_id in changed), None)


def run_that_speaks(db: Session, order: Order) -> str | None:
    """The run whose steps are the order's turn: the one whose work was delivered, else the last that said anything.

    None where no run came so far as to put the prompt to the model.
    """
    steps = select(Step.run_id).where(Step.order_id == order.id, Step.kind.in_(SAID), Step.late.is_(False))
    said = list(db.scalars(steps.group_by(Step.run_id).order_by(func.max(Step.seq).desc())))
    if order.result_run_id in said:
        return order.result_run_id
    return said[0] if said else None


def compactions_of(db: Session, run_id: str) -> list[CompactionStep]:
    """The compactions that a run went through."""
    return [body for body in _said(db, [run_id])[run_id] if isinstance(body, CompactionStep)]


def _said(db: Session, run_ids: Iterable[str]) -> defaultdict[str, list[Body]]:
    """What each run said, in order. Late steps are left out: the turn had ended without them."""
    steps = select(Step.run_id, Step.body).where(
        Step.run_id.in_(list(run_ids)), Step.kind.in_(SAID), Step.late.is_(False)
    )
    found: defaultdict[str, list[Body]] = defaultdict(list)
    for run_id, body in db.execute(steps.order_by(Step.run_id, Step.run_seq)):
        found[run_id].append(_BODY.validate_python(body))
    return found


def _after(history: list[Message], bodies: Sequence[Body]) -> list[Message]:
    """The conversation after one more run, which may have been cut off anywhere. `history` is whole already."""
    messages = messages_of(bodies, history)
    if any(isinstance(body, CompactionStep) for body in bodies):
        return mended(messages)
    # Only what is new can be broken; to look through all of it again for every turn adds up.
    return [*history, *mended(messages[len(history) :])]
