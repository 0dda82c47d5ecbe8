"""What a turn leaves in its session's tree, and what the next one is given."""

from __future__ import annotations

from typing import Any

import pytest

from control_plane.core import Caller, Core
from control_plane.db.orders import Order, Turn
from control_plane.db.projects import Provider
from control_plane.db.sessions import ChatSession as Chat
from control_plane.db.sessions import SessionEntry
from control_plane.declarations.providers import ProviderRequest
from control_plane.declarations.sessions import CompactRequest, ForkRequest, SwitchRequest
from control_plane.operations import providers, sessions
from control_plane.orders.status_changes import move_order, move_turn
from shared.events import AssistantStep, CompactionStep, ReasoningStep, ToolResultStep, UserStep
from shared.messages import ToolCall
from shared.states import OrderStatus, TurnStatus
from shared.work_order import Base
from tests.support.made import make_drone, make_project, start_run, submit
from tests.support.turns import (
    CANCELED,
    FAILED,
    context,
    context_of,
    end,
    lose,
    order_as_sent,
    place,
    play,
    report,
    said,
    texts,
)


@pytest.fixture(autouse=True)
def fleet(core: Core, admin: Caller) -> None:
    """A project and a drone with room."""
    make_project(core, admin)
    make_drone(core, admin, concurrency=100)


def session_of(core: Core, order_id: str) -> str:
    with core.database.read() as db:
        return db.get_one(Order, order_id).session_id


def begun(core: Core, admin: Caller, prompt: str = "first", **how: Any) -> str:
    """The session of one turn that was played."""
    return session_of(core, play(core, admin, prompt, **how))


def leaf(core: Core, admin: Caller, session_id: str) -> str | None:
    """The order whose turn the session goes on from."""
    entries = sessions.show(core, admin, session_id).entries
    return next((entry.turn.order for entry in entries if entry.is_leaf and entry.turn), None)


def test_the_next_turn_is_given_all_that_was_said_with_calls_results_and_thinking(core: Core, admin: Caller) -> None:
    call = ToolCall(id="c1", name="shell", arguments='{"command":  "ls"}')
    steps = [
        UserStep(text="first", source="prompt"),
        ReasoningStep(text="hm", blocks=({"type": "thinking", "signature": "s"},)),
        AssistantStep(text="I look.", tool_calls=(call,)),
        ToolResultStep(call_id="c1", output="a\nb"),
        AssistantStep(text="Two files."),
    ]
    order = submit(core, admin, "second", session=begun(core, admin, steps=steps)).id
    given = order_as_sent(core, order).context
    assert texts(given) == ["first", "I look.", "a\nb", "Two files."]
    assert (given[1].tool_calls, given[1].thinking) == ((call,), "hm")
    assert given[1].thinking_blocks == ({"type": "thinking", "signature": "s"},)
    assert given[2].tool_call_id == "c1"


def test_a_turn_becomes_the_leaf_and_points_at_the_run_that_speaks_for_it(core: Core, admin: Caller) -> None:
    first = play(core, admin, "first")
    session = session_of(core, first)
    second = play(core, admin, "second", session)
    one, two = sessions.show(core, admin, session).entries
    assert (one.parent, two.parent, two.is_leaf, one.on_path) == (None, one.id, True, True)
    with core.database.read() as db:
        assert two.data["run"] == db.get_one(Order, second).run_id
    assert order_as_sent_leaf(core, admin, session) == two.id


def order_as_sent_leaf(core: Core, admin: Caller, session: str) -> str | None:
    return order_as_sent(core, submit(core, admin, "more", session=session).id).session.leaf


def test_a_turn_whose_model_could_not_be_asked_stays_marked_and_unseen(core: Core, admin: Caller) -> None:
    first = play(core, admin, "first")
    session = session_of(core, first)
    play(core, admin, "in vain", session, to=FAILED, exit_status="model_error", head_commit="b" * 40)
    marked = sessions.show(core, admin, session).entries[-1]
    assert (marked.error, marked.on_path, marked.turn and marked.turn.prompt) == (True, False, "in vain")
    assert leaf(core, admin, session) == first
    assert texts(context(core, session)) == ["first", "I look.", "what first found", "done"]
    assert order_as_sent(core, submit(core, admin, "again", session=session).id).base.commit is None


def test_the_run_whose_work_was_delivered_speaks(core: Core, admin: Caller) -> None:
    order = submit(core, admin, "first").id
    delivered = start_run(core, order)
    report(core, delivered, said("delivered"))
    lose(core, order)
    end(core, order, steps=said("gave up")[:1], to=CANCELED, exit_status="canceled", result_run_id=delivered)
    assert texts(context(core, session_of(core, order)))[0] == "delivered"


def test_what_a_late_run_still_reports_does_not_change_what_was_said(core: Core, admin: Caller) -> None:
    session = begun(core, admin)
    before = context(core, session)
    with core.database.read() as db:
        run_id = db.query(Order.run_id).filter(Order.session_id == session).scalar()
    report(core, run_id, said("late"), late=True)
    assert context(core, session) == before


def test_an_order_that_never_began_leaves_a_turn_and_no_word(core: Core, admin: Caller) -> None:
    session = begun(core, admin)
    never = play(core, admin, "never mind", session, steps=[], to=CANCELED, exit_status="canceled")
    assert leaf(core, admin, session) == never
    assert "never mind" not in texts(context(core, session))


def test_compactions_count_over_the_whole_conversation_and_the_originals_stay(core: Core, admin: Caller) -> None:
    session = begun(core, admin)
    compaction = CompactionStep(summary="We looked.", kept=2, tokens_before=900, tokens_after=90)
    steps = [*said("second")[:1], compaction, AssistantStep(text="Then this.")]
    play(core, admin, "second", session, steps=steps)
    assert texts(context(core, session)) == ["<summary>\nWe looked.\n</summary>", "done", "second", "Then this."]
    note = sessions.show(core, admin, session).entries[-1]
    assert (note.kind, note.data["tokens_before"], note.data["summary"]) == ("compaction", 900, "We looked.")


def test_a_switch_and_a_fork_leave_turns_behind_and_the_work_with_them(core: Core, admin: Caller) -> None:
    first = play(core, admin, "first", head_commit="a" * 40, branch="fleet/1", pushed=True)
    session = session_of(core, first)
    play(core, admin, "second", session, head_commit="b" * 40)
    new = sessions.fork(core, admin, session, ForkRequest(at=first)).id
    sessions.switch(core, admin, session, SwitchRequest(entry=first))
    for each in (session, new):
        sent = order_as_sent(core, submit(core, admin, "other way", session=each).id)
        assert (sent.session.id, texts(sent.context)[0], "second" in texts(sent.context)) == (each, "first", False)
        assert (sent.base.commit, sent.base.branch) == ("a" * 40, "fleet/1")


def test_the_second_try_of_an_order_hangs_where_the_first_did_and_does_not_see_it(core: Core, admin: Caller) -> None:
    session = begun(core, admin)
    order = play(core, admin, "second", session, to=FAILED, exit_status="time_limit")
    assert "second" in texts(context(core, session))
    assert "second" not in texts(context_of(core, order))
    queue_again(core, order)
    end(core, order, steps=said("second try"))
    first, one, two = sessions.show(core, admin, session).entries
    assert (one.parent, two.parent, two.is_leaf) == (first.id, first.id, True)
    assert "second" not in texts(context(core, session))


def queue_again(core: Core, order_id: str) -> None:
    """As a retry does: the order and its turn go back to where they waited, and the order is placed."""
    with core.database.write() as db:
        order = db.get_one(Order, order_id)
        move_order(db, order, OrderStatus.QUEUED, run_id=None)
        move_turn(db, db.query(Turn).filter(Turn.order_id == order_id).one(), TurnStatus.PROCESSING)
    place(core, order_id)


def test_the_model_that_answered_is_noted_where_it_changes(core: Core, admin: Caller) -> None:
    session = begun(core, admin)
    providers.add(core, admin, ProviderRequest(name="other", model="openai/other"))
    play(core, admin, "second", session, fields={"provider": "other"})
    play(core, admin, "third", session, fields={"provider": "other"})
    changes = [e.data for e in sessions.show(core, admin, session).entries if e.kind == "model_change"]
    assert changes == [{"from": "openai/scripted", "to": "openai/other"}]


# --- compaction that is asked for -------------------------------------------------------


def asked(core: Core, session_id: str) -> str | None:
    with core.database.read() as db:
        return db.get_one(Chat, session_id).compact


def test_a_compaction_asked_of_an_idle_session_goes_with_the_next_order_until_it_is_done(
    core: Core, admin: Caller
) -> None:
    session = begun(core, admin)
    sessions.compact(core, admin, session, CompactRequest())
    play(core, admin, "never began", session, steps=[], to=CANCELED, exit_status="canceled")
    assert asked(core, session) == ""
    answer = sessions.compact(core, admin, session, CompactRequest(instructions="Keep the names."))
    assert (answer.order, "next turn" in answer.told) == (None, True)
    order = submit(core, admin, "second", session=session).id
    assert order_as_sent(core, order).session.compact == "Keep the names."
    end(core, order, steps=said("second"))
    assert asked(core, session) is None


# --- providers -------------------------------------------------------------------------------


def test_window_and_protocol_of_the_provider_travel_with_the_order(core: Core, admin: Caller) -> None:
    order = submit(core, admin, "first").id
    with core.database.write() as db:
        provider = db.query(Provider).one()
        provider.context_window, provider.protocol = 16_000, "text"
    sent = order_as_sent(core, order).provider
    assert (sent.context_window, sent.protocol) == (16_000, "text")


def test_entries_are_written_once_per_turn_and_never_changed(core: Core, admin: Caller) -> None:
    session = begun(core, admin)
    with core.database.read() as db:
        before = [(e.id, e.parent_id, e.kind, e.data) for e in db.query(SessionEntry).order_by(SessionEntry.number)]
    play(core, admin, "second", session)
    sessions.switch(core, admin, session, SwitchRequest(entry="root"))
    with core.database.read() as db:
        after = [(e.id, e.parent_id, e.kind, e.data) for e in db.query(SessionEntry).order_by(SessionEntry.number)]
    assert after[: len(before)] == before
    assert [kind for _, _, kind, _ in after] == ["turn", "turn", "leaf"]


# --- where it starts ---------------------------------------------------------------------------


def next_base(core: Core, caller: Caller, session: str) -> Base:
    return order_as_sent(core, submit(core, caller, "go on", session=session).id).base


def test_the_branch_of_the_last_work_is_named_whether_or_not_it_was_pushed(core: Core, admin: Caller) -> None:
    named = {}
    for pushed in (True, False):
        one = play(core, admin, "one", head_commit="c" * 40, branch="fleet/one", pushed=pushed)
        base = next_base(core, admin, session_of(core, one))
        assert (base.commit, base.seen) == ("c" * 40, None)
        named[pushed] = (base.branch, base.unpushed_branch)
    assert named == {True: ("fleet/one", None), False: (None, "fleet/one")}


def test_what_a_turn_without_work_started_from_is_known_to_the_next_one(core: Core, admin: Caller) -> None:
    one = play(core, admin, "one", head_commit="c" * 40, branch="fleet/one", pushed=True)
    session = session_of(core, one)
    play(core, admin, "two", session=session, base_commit="d" * 40)
    base = next_base(core, admin, session)
    assert (base.commit, base.branch, base.seen) == ("c" * 40, "fleet/one", "d" * 40)
