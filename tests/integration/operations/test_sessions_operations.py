"""Sessions as people handle them: begin, list, show, switch, fork, rename, label."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import select

from control_plane.contract.declarations.sessions import (
    ForkRequest,
    LabelRequest,
    SessionDocument,
    SessionEdit,
    SessionRequest,
    SwitchRequest,
)
from control_plane.core import Caller, Core
from control_plane.db.orders import Dispatch, Order
from control_plane.db.runs import Run
from control_plane.operations import sessions
from shared.errors import Conflict
from tests.support.made import later, make_drone, make_project, submit
from tests.support.refusals import code_of
from tests.support.turns import play, session_of


@pytest.fixture(autouse=True)
def fleet(core: Core, admin: Caller) -> None:
    """Two projects and a drone with room."""
    make_project(core, admin)
    make_project(core, admin, slug="shop")
    make_drone(core, admin, concurrency=100)


def begin(core: Core, admin: Caller, **fields: Any) -> SessionDocument:
    return sessions.create(core, admin, SessionRequest(**{"project": "web", **fields}))


def notes(core: Core, admin: Caller, session_id: str, kind: str) -> list[dict[str, Any]]:
    return [e.data for e in sessions.show(core, admin, session_id).entries if e.kind == kind]


def switched(core: Core, admin: Caller, session: str, name: str) -> str | None:
    return sessions.switch(core, admin, session, SwitchRequest(entry=name)).leaf


def test_sessions_are_listed_by_their_newest_turn_with_what_runs_in_them(core: Core, admin: Caller) -> None:
    quiet = begin(core, admin, project="shop")
    later(core, seconds=5)
    first = submit(core, admin)
    later(core, seconds=5)
    waiting = submit(core, admin, session=first.session)
    busy, idle = sessions.list_(core, admin)
    assert (busy.id, idle.id) == (first.session, quiet.id)
    assert (busy.turns, busy.running, idle.turns, idle.running) == (2, first.id, 0, None)
    assert busy.last_activity_at > idle.last_activity_at == quiet.created_at
    assert [each.id for each in sessions.list_(core, admin, "shop")] == [quiet.id]
    assert len(sessions.list_(core, admin, limit=1)) == 1
    # Orders of a session stay in line: the second is not sent before the first has ended.
    with core.database.read() as db:
        assert list(db.scalars(select(Dispatch.order_id))) == [first.id]
    assert sessions.show(core, admin, first.session).unfinished[-1].order == waiting.id


def test_a_session_without_a_name_is_titled_by_its_first_prompt_and_a_fork_by_its_original(
    core: Core, admin: Caller
) -> None:
    old = begin(core, admin).id
    play(core, admin, "\nFix the parser\nIt fails on empty files.", old)
    play(core, admin, "And the lexer", old)
    fork = sessions.fork(core, admin, old, ForkRequest()).id
    assert [sessions.show(core, admin, each).title for each in (old, fork)] == ["Fix the parser"] * 2
    play(core, admin, "Try a table instead", fork)
    assert sessions.show(core, admin, fork).title == "Try a table instead"
    assert (begin(core, admin, name="Types").title, begin(core, admin).title) == ("Types", "")


def test_a_session_is_shown_with_its_turns_their_figures_and_what_has_not_ended(core: Core, admin: Caller) -> None:
    order_id = play(core, admin, "first")
    session = session_of(core, order_id)
    submit(core, admin, "second", session=session)
    waiting = submit(core, admin, "third", session=session)
    with core.database.write() as db:
        # The drone of a lost run reports later what it cost.
        db.scalars(select(Run).where(Run.order_id == order_id)).one().assumed_usd = 0.5
    shown = sessions.show(core, admin, session)
    one, two = shown.unfinished
    assert (one.prompt, one.status, two.order) == ("second", "processing", waiting.id)
    assert (one.stats.duration_label, one.stats.tool_calls, one.ended_at) == ("pending", 0, None)
    assert (one.user, one.provider, one.model, one.mode) == ("system", "local", "openai/scripted", "build")
    turn = shown.entries[0].turn
    assert turn is not None
    assert (turn.status, turn.stats.duration_label, turn.stats.cost_usd) == ("finished", "0 ms", 0.5)
    assert turn.ended_at is not None


def test_a_busy_session_is_neither_switched_nor_forked_and_names_the_order_in_the_way(
    core: Core, admin: Caller
) -> None:
    """It is busy in every state of an order but the last ones."""
    session = session_of(core, play(core, admin, "first"))
    order = submit(core, admin, "second", session=session)
    for status in ("queued", "assigned", "running", "awaiting_approval", "canceling"):
        with core.database.write() as db:
            db.get_one(Order, order.id).status = status
        with pytest.raises(Conflict, match=order.id) as refusal:
            switched(core, admin, session, "root")
        forking = code_of(lambda: sessions.fork(core, admin, session, ForkRequest()))
        assert (refusal.value.code, forking) == ("E-SESSION-BUSY", "E-SESSION-BUSY"), status


def test_a_place_is_named_by_entry_order_label_or_note_and_every_switch_is_noted(core: Core, admin: Caller) -> None:
    first = play(core, admin, "first")
    session = session_of(core, first)
    play(core, admin, "second", session)
    sessions.label(core, admin, session, LabelRequest(entry=first, text="good"))
    shown = sessions.show(core, admin, session)
    entries = shown.entries
    note = next(entry for entry in entries if entry.kind == "label")
    leaves = [switched(core, admin, session, name) for name in (entries[0].id, first, "good", note.id)]
    assert leaves == [entries[0].id] * 4
    assert switched(core, admin, session, "root") is None
    moves = notes(core, admin, session, "leaf")
    assert [moves[0], moves[-1]] == [{"from": shown.leaf, "to": entries[0].id}, {"from": entries[0].id, "to": None}]
    elsewhere = play(core, admin, "in another session")
    assert code_of(lambda: switched(core, admin, session, elsewhere)) == "E-SESSION-ENTRY"
    # The last label counts, and an empty one takes it away.
    for text, label in (("better", "better"), ("", None)):
        labelled = sessions.label(core, admin, session, LabelRequest(entry=first, text=text))
        assert labelled.entries[0].label == label
        assert code_of(lambda: switched(core, admin, session, "good")) == "E-SESSION-ENTRY"
    assert code_of(lambda: sessions.label(core, admin, session, LabelRequest(entry="root", text="x"))) != ""


@pytest.mark.dialects
def test_switches_and_submissions_at_once_come_one_after_the_other(core: Core, admin: Caller) -> None:
    session = session_of(core, play(core, admin, "first"))

    def move(number: int) -> str:
        """Switch, or submit; what came of it."""
        if number % 2:
            return submit(core, admin, f"turn {number}", session=session).id
        return code_of(lambda: switched(core, admin, session, "root"))

    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(move, range(12)))
    shown = sessions.show(core, admin, session)
    assert len(shown.unfinished) == 6
    assert done.count("") == len(notes(core, admin, session, "leaf"))
    assert set(done) <= {"", "E-SESSION-BUSY", *(turn.order for turn in shown.unfinished)}


def test_a_fork_has_the_turns_before_it_the_settings_and_a_name_of_its_own(core: Core, admin: Caller) -> None:
    old = begin(core, admin, name="Parser", mode="plan", approve="all", allow=["ls*"])
    first = play(core, admin, "first", old.id)
    play(core, admin, "second", old.id)
    new = sessions.fork(core, admin, old.id, ForkRequest(at=first, name="Other way"))
    assert (new.name, new.mode, new.approve, new.allow) == ("Other way", "plan", "all", ["ls*"])
    assert (new.forked_from, new.turns) == (old.id, 0)
    entries = [(each.kind, each.session == new.id, each.on_path) for each in new.entries]
    assert entries == [("turn", False, True), ("leaf", True, False)]
    assert sessions.fork(core, admin, old.id, ForkRequest()).name == "Parser"


def test_a_session_sets_what_its_orders_do_and_its_changes_are_noted(core: Core, admin: Caller) -> None:
    made = begin(core, admin, name="one", allow=["git status*"])
    session = made.id
    assert sessions.edit(core, admin, session, SessionEdit(name="one", mode="build")).entries == made.entries == []
    shown = sessions.edit(core, admin, session, SessionEdit(name="two", mode="plan", approve="risky", allow=["ls"]))
    assert (shown.name, shown.mode, shown.approve, shown.allow) == ("two", "plan", "risky", ["ls"])
    assert notes(core, admin, session, "name") == [{"from": "one", "to": "two"}]
    assert notes(core, admin, session, "mode_change") == [{"from": "build", "to": "plan"}]
    order = submit(core, admin, session=session)
    assert (order.mode, order.approve, order.allow) == ("plan", "risky", ["ls"])
    assert submit(core, admin, session=session, mode="test").mode == "test"


def test_what_cannot_be_is_refused_and_nothing_is_made(core: Core, admin: Caller) -> None:
    refused: dict[str, dict[str, Any]] = {
        "E-TOO-LONG": {"name": "x" * 256},
        "E-TEXT": {"name": "a\0b"},
        "E-ORDER-ALLOW": {"allow": ["x"] * 101},
        "E-EMPTY": {"allow": [""]},
        "E-PROJECT-404": {"project": "nowhere"},
    }
    for code, fields in refused.items():
        assert code_of(lambda fields=fields: begin(core, admin, **fields)) == code
    assert sessions.list_(core, admin) == []


def test_the_head_is_the_last_work_on_the_way_to_the_leaf(core: Core, admin: Caller) -> None:
    first = play(core, admin, "first", branch="fleet/x", head_commit="a" * 40, pushed=True)
    session = session_of(core, first)
    play(core, admin, "second", session)
    head = sessions.head_of(core, admin, session)
    assert (head.order, head.branch, head.commit) == (first, "fleet/x", "a" * 40)
    assert (head.pushed, head.bundle, head.project) == (True, False, "web")
    assert code_of(lambda: sessions.bundle_of(core, admin, session)) != ""
    empty = begin(core, admin).id
    assert code_of(lambda: sessions.head_of(core, admin, empty)) == "E-SESSION-HEAD"
