"""The summary of a branch that was left by a switch: asked for, written once, and kept where the paths part."""

from __future__ import annotations

from control_plane.conversations.left_branches import MAX_EACH, MAX_LEFT, summarized
from control_plane.core import Caller, Core
from control_plane.db.orders import Order
from control_plane.db.sessions import ChatSession
from control_plane.declarations.sessions import SwitchRequest
from control_plane.operations.sessions import changing, reading
from shared.events import CommentStep
from shared.work_order import OrderSession
from tests.support.made import make_drone, make_project, start_run, submit
from tests.support.turns import end, lose, order_as_sent, play, report, said


def two_turns(core: Core, admin: Caller) -> tuple[str, str, str]:
    """A session with two turns; its id and those of the orders."""
    make_project(core, admin)
    make_drone(core, admin)
    first = play(core, admin, "one")
    with core.database.read() as db:
        session = db.get_one(Order, first).session_id
    return session, first, play(core, admin, "two", session)


def switch(core: Core, admin: Caller, session: str, entry: str, *, summarize: bool = True) -> str | None:
    return changing.switch(core, admin, session, SwitchRequest(entry=entry, summarize=summarize)).left


def of_next(core: Core, admin: Caller, session: str) -> tuple[str, OrderSession]:
    """The next order of the session, and what its drone is told of the session."""
    order = submit(core, admin, "three", session=session)
    return order.id, order_as_sent(core, order.id).session


def test_the_next_turn_gets_the_turns_that_were_left_and_no_others(core: Core, admin: Caller) -> None:
    session, first, _ = two_turns(core, admin)
    left = switch(core, admin, session, first)
    _, told = of_next(core, admin, session)
    assert told.left_leaf == left
    assert [message.content for message in told.left] == ["two", "I look.", "what two found", "done"]


def test_without_the_wish_or_without_a_branch_nothing_is_summarized(core: Core, admin: Caller) -> None:
    session, first, second = two_turns(core, admin)
    assert switch(core, admin, session, second) is None
    assert switch(core, admin, session, first, summarize=False) is None
    assert switch(core, admin, session, second) is None
    assert switch(core, admin, session, first) is not None
    assert switch(core, admin, session, second) is None


def test_the_summary_stands_where_the_paths_part_and_is_written_once(core: Core, admin: Caller) -> None:
    session, first, _ = two_turns(core, admin)
    left = switch(core, admin, session, first) or ""
    order_id, told = of_next(core, admin, session)
    for text in ("A cache was tried.", "Again."):
        with core.database.write() as db:
            summarized(db, core, db.get_one(Order, order_id), CommentStep(text=text, left_leaf=told.left_leaf))
    shown = reading.show(core, admin, session)
    (entry,) = [each for each in shown.entries if each.kind == "branch_summary"]
    (place,) = [each for each in shown.entries if each.kind == "turn" and each.turn and each.turn.order == first]
    assert (entry.parent, entry.data["text"], entry.data["from"]) == (place.id, "A cache was tried.", left)
    assert shown.left is None
    end(core, order_id, steps=said("three"))
    _, later = of_next(core, admin, session)
    assert (later.left, later.left_summary) == ((), "")


def test_a_run_after_a_lost_one_gets_the_summary_that_was_written(core: Core, admin: Caller) -> None:
    session, first, _ = two_turns(core, admin)
    switch(core, admin, session, first)
    order_id, told = of_next(core, admin, session)
    report(core, start_run(core, order_id), said("three")[:1])
    with core.database.write() as db:
        summarized(db, core, db.get_one(Order, order_id), CommentStep(text="A cache.", left_leaf=told.left_leaf))
    lose(core, order_id)
    again = order_as_sent(core, order_id).session
    assert (again.left_summary, again.left) == ("A cache.", ())


def test_what_is_summarized_is_bounded(core: Core, admin: Caller) -> None:
    session, first, _ = two_turns(core, admin)
    play(core, admin, "long", session, steps=[*said("x" * 5_000) * 30])
    switch(core, admin, session, first)
    _, told = of_next(core, admin, session)
    assert max(len(message.content) for message in told.left) == MAX_EACH
    assert sum(len(message.content) for message in told.left) <= MAX_LEFT
    with core.database.read() as db:
        assert db.get_one(ChatSession, session).left_leaf_id is not None
