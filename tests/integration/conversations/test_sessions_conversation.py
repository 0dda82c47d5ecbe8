"""What a turn leaves in its session's tree, and what the next one is given."""

from __future__ import annotations

from typing import Any

import pytest

from control_plane.contract.declarations.providers import ProviderRequest
from control_plane.contract.declarations.sessions import CompactRequest, ForkRequest, SwitchRequest
from control_plane.core import Caller, Core
from control_plane.db.orders import Order
from control_plane.db.projects import Provider
from control_plane.db.sessions import ChatSession as Chat
from control_plane.operations import providers, sessions
from control_plane.orders.conversations.left_branches import MAX_EACH, MAX_LEFT, summarized
from shared.events import AssistantStep, CommentStep, CompactionStep, ReasoningStep, ToolResultStep, UserStep
from shared.messages import ToolCall
from shared.work_order import OrderSession
from tests.support.made import make_drone, make_project, start_run, submit
from tests.support.turns import (
    CANCELED,
    FAILED,
    context,
    end,
    lose,
    order_as_sent,
    play,
    report,
    said,
    session_of,
    texts,
)


@pytest.fixture(autouse=True)
def fleet(core: Core, admin: Caller) -> None:
    """A project and a drone with room."""
    make_project(core, admin)
    make_drone(core, admin, concurrency=100)


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


def test_a_turn_whose_model_could_not_be_asked_stays_marked_and_unseen(core: Core, admin: Caller) -> None:
    first = play(core, admin, "first")
    session = session_of(core, first)
    play(core, admin, "in vain", session, to=FAILED, exit_status="model_error", head_commit="b" * 40)
    marked = sessions.show(core, admin, session).entries[-1]
    assert (marked.error, marked.on_path, marked.turn and marked.turn.prompt) == (True, False, "in vain")
    assert leaf(core, admin, session) == first
    assert texts(context(core, session)) == ["first", "I look.", "what first found", "done"]
    assert order_as_sent(core, submit(core, admin, "again", session=session).id).base.commit is None


def test_the_run_whose_work_was_delivered_speaks_whatever_another_one_still_reports(core: Core, admin: Caller) -> None:
    order = submit(core, admin, "first").id
    delivered = start_run(core, order)
    report(core, delivered, said("delivered"))
    lose(core, order)
    end(core, order, steps=said("gave up")[:1], to=CANCELED, exit_status="canceled", result_run_id=delivered)
    session = session_of(core, order)
    report(core, delivered, said("late"), late=True)
    assert texts(context(core, session)) == ["delivered", "I look.", "what delivered found", "done"]
    never = play(core, admin, "never mind", session, steps=[], to=CANCELED, exit_status="canceled")
    one, two = sessions.show(core, admin, session).entries
    assert (one.parent, two.parent, two.is_leaf, one.on_path) == (None, one.id, True, True)
    assert (one.data["run"], leaf(core, admin, session)) == (delivered, never)
    assert "never mind" not in texts(context(core, session))
    sent = order_as_sent(core, submit(core, admin, "more", session=session).id)
    assert sent.session.leaf == two.id


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


def test_the_next_turn_starts_from_the_last_work_and_knows_what_the_one_without_work_started_from(
    core: Core, admin: Caller
) -> None:
    named = {}
    for pushed in (True, False):
        one = play(core, admin, "one", head_commit="c" * 40, branch="fleet/one", pushed=pushed)
        session = session_of(core, one)
        play(core, admin, "two", session=session, base_commit="d" * 40)
        base = order_as_sent(core, submit(core, admin, "go on", session=session).id).base
        assert (base.commit, base.seen) == ("c" * 40, "d" * 40)
        named[pushed] = (base.branch, base.unpushed_branch)
    assert named == {True: ("fleet/one", None), False: (None, "fleet/one")}


def test_the_model_that_answered_is_noted_where_it_changes(core: Core, admin: Caller) -> None:
    session = begun(core, admin)
    providers.add(core, admin, ProviderRequest(name="other", model="openai/other"))
    for prompt in ("second", "third"):
        play(core, admin, prompt, session, fields={"provider": "other"})
    changes = [e.data for e in sessions.show(core, admin, session).entries if e.kind == "model_change"]
    assert changes == [{"from": "openai/scripted", "to": "openai/other"}]


def test_a_compaction_asked_of_an_idle_session_goes_with_the_next_order_until_it_is_done(
    core: Core, admin: Caller
) -> None:
    session = begun(core, admin)
    sessions.compact(core, admin, session, CompactRequest())
    play(core, admin, "never began", session, steps=[], to=CANCELED, exit_status="canceled")
    answer = sessions.compact(core, admin, session, CompactRequest(instructions="Keep the names."))
    assert (answer.order, "next turn" in answer.told) == (None, True)
    order = submit(core, admin, "second", session=session).id
    assert order_as_sent(core, order).session.compact == "Keep the names."
    end(core, order, steps=said("second"))
    with core.database.read() as db:
        assert db.get_one(Chat, session).compact is None


def test_window_and_protocol_of_the_provider_travel_with_the_order(core: Core, admin: Caller) -> None:
    order = submit(core, admin, "first").id
    with core.database.write() as db:
        provider = db.query(Provider).one()
        provider.context_window, provider.protocol = 16_000, "text"
    sent = order_as_sent(core, order).provider
    assert (sent.context_window, sent.protocol) == (16_000, "text")


def two_turns(core: Core, admin: Caller) -> tuple[str, str, str]:
    """A session with two turns; its id and those of the orders."""
    first = play(core, admin, "one")
    session = session_of(core, first)
    return session, first, play(core, admin, "two", session)


def switch(core: Core, admin: Caller, session: str, entry: str, *, summarize: bool = True) -> str | None:
    return sessions.switch(core, admin, session, SwitchRequest(entry=entry, summarize=summarize)).left


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
    shown = sessions.show(core, admin, session)
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
        assert db.get_one(Chat, session).left_leaf_id is not None
