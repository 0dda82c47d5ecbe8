"""What people say to an order: kept with the order, and told to each of its runs that has not heard it."""

from __future__ import annotations

from collections import Counter

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from control_plane.core import Core
from control_plane.db.models import Order, Step, Word
from control_plane.dispatching.inbox import tell
from shared.control import Say


def tell_word(db: Session, core: Core, order: Order, word: Word, *, interrupt: bool) -> None:
    """Leave a word in the inbox of the drone that runs the order; wake the supervisor after the commit."""
    assert order.run_id is not None
    assert order.drone_id is not None
    message = Say(run_id=order.run_id, text=word.text, after=word.after, interrupt=interrupt)
    tell(db, core, order.drone_id, message, order.run_id)


def send_along(db: Session, order: Order) -> None:
    """Let all that was said to an order travel inside it; to be called as the order is dispatched.

    A run begins with the prompt and knows nothing of the run before it, so what that one heard is said again.
    """
    db.execute(update(Word).where(Word.order_id == order.id).values(run_id=order.run_id))


def words_along(db: Session, run_id: str) -> list[Word]:
    """The words that travel inside the order of this dispatch."""
    return list(db.scalars(select(Word).where(Word.run_id == run_id).order_by(Word.number)))


def tell_missing_words(db: Session, core: Core, order: Order) -> bool:
    """Tell a run that has just begun what was said after its order had left; true if there was any."""
    missing = [word for word in _words(db, order.id) if word.run_id != order.run_id]
    for word in missing:
        # Nothing has begun that a word could interrupt.
        tell_word(db, core, order, word, interrupt=False)
    return bool(missing)


def unheard(db: Session, order: Order) -> list[Word]:
    """The words that the order's current run has not taken up yet, or never took up before it ended."""
    words = _words(db, order.id)
    if not words:
        return []
    db.flush()
    bodies = db.scalars(select(Step.body).where(Step.run_id == order.run_id, Step.kind == "user"))
    # Each word becomes one step, and words of one kind are taken up in the order in which they were said.
    heard = Counter(body.get("source") for body in bodies)
    follow_ups = [word for word in words if word.after]
    others = [word for word in words if not word.after]
    left = [*others[heard["steer"] :], *follow_ups[heard["follow_up"] :]]
    return sorted(left, key=lambda word: word.number)


def _words(db: Session, order_id: str) -> list[Word]:
    return list(db.scalars(select(Word).where(Word.order_id == order_id).order_by(Word.number)))
