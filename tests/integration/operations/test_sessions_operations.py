"""Sessions as people handle them: begin, list, show, switch, fork, rename, label; on each kind of database."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import select, update

from control_plane.core import Caller, Core
from control_plane.db.orders import Dispatch, Order
from control_plane.db.runs import Run
from control_plane.declarations.sessions import (
    CompactRequest,
    ForkRequest,
    LabelRequest,
    SessionDocument,
    SessionEdit,
    SessionRequest,
    SwitchRequest,
)
from control_plane.operations import sessions
from shared.errors import Conflict, FleetError, Forbidden, Invalid, NotFound
from tests.support.made import later, make_drone, make_project, submit
from tests.support.turns import play

VIEWER = Caller("", "default", "viewer", "u")


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


def test_a_session_may_be_begun_before_its_first_order_and_sets_what_its_orders_do(core: Core, admin: Caller) -> None:
    made = begin(core, admin, name="The parser", mode="test", approve="risky", allow=["git status*"])
    order = submit(core, admin, session=made.id)
    assert (made.name, made.turns, made.leaf, made.entries) == ("The parser", 0, None, [])
    with core.database.read() as db:
        row = db.get_one(Order, order.id)
        assert (row.mode, row.approve, row.allow) == ("test", "risky", ["git status*"])


def test_sessions_are_listed_by_their_newest_turn_with_what_runs_in_them(core: Core, admin: Caller) -> None:
    quiet = begin(core, admin, project="shop")
    later(core, seconds=5)
    first = submit(core, admin)
    later(core, seconds=5)
    submit(core, admin, session=first.session)
    later(core, seconds=5)
    busy, idle = sessions.list_(core, admin)
    assert (busy.id, idle.id) == (first.session, quiet.id)
    assert (busy.turns, busy.running, idle.turns, idle.running) == (2, first.id, 0, None)
    assert busy.last_activity_at > idle.last_activity_at == quiet.created_at
    assert [each.id for each in sessions.list_(core, admin, "shop")] == [quiet.id]
    assert len(sessions.list_(core, admin, limit=1)) == 1


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
    assert begin(core, admin, name="Types").title == "Types"
    assert begin(core, admin).title == ""


def test_a_session_is_shown_with_its_turns_their_figures_and_what_has_not_ended(core: Core, admin: Caller) -> None:
    session = submit(core, admin, "first").session
    waiting = submit(core, admin, "second", session=session)
    shown = sessions.show(core, admin, session)
    one, two = shown.unfinished
    assert (one.prompt, one.status, two.order) == ("first", "processing", waiting.id)
    assert (one.stats.duration_label, one.stats.tool_calls, one.ended_at) == ("pending", 0, None)
    assert (one.user, one.provider, one.model, one.mode) == ("system", "local", "openai/scripted", "build")


def test_an_ended_turn_keeps_its_figures(core: Core, admin: Caller) -> None:
    session = session_of(core, play(core, admin, "first"))
    turn = sessions.show(core, admin, session).entries[0].turn
    assert turn is not None
    assert (turn.status, turn.stats.duration_label, turn.stats.cost_usd) == ("finished", "0 ms", 0)
    assert turn.ended_at is not None


def test_the_cost_of_an_ended_turn_follows_what_the_drone_of_a_lost_run_reports_later(
    core: Core, admin: Caller
) -> None:
    order_id = play(core, admin, "first")
    with core.database.write() as db:
        db.scalars(select(Run).where(Run.order_id == order_id)).one().assumed_usd = 0.5
    turn = sessions.show(core, admin, session_of(core, order_id)).entries[0].turn
    assert turn is not None
    assert turn.stats.cost_usd == 0.5


def session_of(core: Core, order_id: str) -> str:
    with core.database.read() as db:
        return db.get_one(Order, order_id).session_id


# --- where it goes on ------------------------------------------------------------------------


def test_a_busy_session_is_neither_switched_nor_forked_and_names_the_order_in_the_way(
    core: Core, admin: Caller
) -> None:
    session = session_of(core, play(core, admin, "first"))
    order = submit(core, admin, "second", session=session)
    refusals = [
        code_of(sessions.switch, core, admin, session, SwitchRequest(entry="root")),
        code_of(sessions.fork, core, admin, session, ForkRequest()),
    ]
    assert refusals == [("E-SESSION-BUSY", True), ("E-SESSION-BUSY", True)]
    assert order.id in refusal_of(sessions.fork, core, admin, session, ForkRequest()).what


def refusal_of(operation: Any, *given: Any) -> Conflict:
    with pytest.raises(Conflict) as refusal:
        operation(*given)
    return refusal.value


def code_of(operation: Any, *given: Any) -> tuple[str, bool]:
    refusal = refusal_of(operation, *given)
    return refusal.code, refusal.next.startswith("fleet follow")


@pytest.mark.parametrize("status", ["queued", "assigned", "running", "awaiting_approval", "canceling"])
def test_a_session_is_busy_in_every_state_of_an_order_but_the_last_ones(core: Core, admin: Caller, status: str) -> None:
    order = submit(core, admin, "first")
    with core.database.write() as db:
        db.execute(update(Order).where(Order.id == order.id).values(status=status))
    assert status in refusal_of(sessions.switch, core, admin, order.session, SwitchRequest(entry="root")).what


def test_a_place_is_named_by_entry_order_label_or_note(core: Core, admin: Caller) -> None:
    first = play(core, admin, "first")
    session = session_of(core, first)
    play(core, admin, "second", session)
    sessions.label(core, admin, session, LabelRequest(entry=first, text="good"))
    entries = sessions.show(core, admin, session).entries
    note = next(entry for entry in entries if entry.kind == "label")
    leaves = [switched(core, admin, session, name) for name in (entries[0].id, first, "good", note.id)]
    assert leaves == [entries[0].id] * 4
    assert switched(core, admin, session, "root") is None


def switched(core: Core, admin: Caller, session: str, name: str) -> str | None:
    return sessions.switch(core, admin, session, SwitchRequest(entry=name)).leaf


def test_switches_and_submissions_at_once_come_one_after_the_other(core: Core, admin: Caller) -> None:
    session = session_of(core, play(core, admin, "first"))

    def move(number: int) -> str:
        """Switch, or submit; what came of it."""
        if number % 2:
            return submit(core, admin, f"turn {number}", session=session).id
        return moved(core, admin, session)

    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(move, range(12)))
    shown = sessions.show(core, admin, session)
    assert len(shown.unfinished) == 6
    assert done.count("moved") == len(notes(core, admin, session, "leaf"))
    assert set(done) <= {"moved", "E-SESSION-BUSY", *(turn.order for turn in shown.unfinished)}


def moved(core: Core, admin: Caller, session: str) -> str:
    """Whether a switch was made, else the code that it was refused with."""
    try:
        switched(core, admin, session, "root")
    except Conflict as refusal:
        return refusal.code
    return "moved"


def test_every_switch_is_noted_where_it_led(core: Core, admin: Caller) -> None:
    session = session_of(core, play(core, admin, "first"))
    leaf = sessions.show(core, admin, session).leaf
    switched(core, admin, session, "root")
    assert notes(core, admin, session, "leaf") == [{"from": leaf, "to": None}]


def test_an_entry_of_another_session_is_not_one_of_this(core: Core, admin: Caller) -> None:
    other = play(core, admin, "first")
    session = begin(core, admin).id
    with pytest.raises(NotFound) as refusal:
        sessions.switch(core, admin, session, SwitchRequest(entry=other))
    assert refusal.value.code == "E-SESSION-ENTRY"


def test_a_fork_has_the_turns_before_it_the_settings_and_a_name_of_its_own(core: Core, admin: Caller) -> None:
    old = begin(core, admin, name="Parser", mode="plan", approve="all", allow=["ls*"])
    first = play(core, admin, "first", old.id)
    play(core, admin, "second", old.id)
    new = sessions.fork(core, admin, old.id, ForkRequest(at=first, name="Other way"))
    assert (new.name, new.mode, new.approve, new.allow) == ("Other way", "plan", "all", ["ls*"])
    assert (new.forked_from, new.turns) == (old.id, 0)
    assert [(e.kind, e.session == new.id, e.on_path) for e in new.entries] == [
        ("turn", False, True),
        ("leaf", True, False),
    ]
    assert sessions.fork(core, admin, old.id, ForkRequest()).name == "Parser"


def test_a_fork_can_be_switched_back_to_what_it_has_from_the_old_session(core: Core, admin: Caller) -> None:
    first = play(core, admin, "first")
    old = session_of(core, first)
    second = play(core, admin, "second", old)
    new = sessions.fork(core, admin, old, ForkRequest()).id
    play(core, admin, "third", new)
    shown = sessions.switch(core, admin, new, SwitchRequest(entry=first))
    assert [e.turn.order for e in shown.entries if e.on_path and e.turn] == [first]
    assert [e.turn.order for e in shown.entries if e.turn][:2] == [first, second]


# --- names, labels, modes -------------------------------------------------------------------


def test_renaming_and_changing_the_mode_are_noted_and_hold_from_then_on(core: Core, admin: Caller) -> None:
    session = begin(core, admin, name="one").id
    shown = sessions.edit(core, admin, session, SessionEdit(name="two", mode="plan", approve="risky", allow=["ls"]))
    assert (shown.name, shown.mode, shown.approve, shown.allow) == ("two", "plan", "risky", ["ls"])
    assert notes(core, admin, session, "name") == [{"from": "one", "to": "two"}]
    assert notes(core, admin, session, "mode_change") == [{"from": "build", "to": "plan"}]
    assert submit(core, admin, session=session).mode == "plan"
    assert submit(core, admin, session=session, mode="test").mode == "test"


def test_a_change_that_changes_nothing_is_not_noted(core: Core, admin: Caller) -> None:
    session = begin(core, admin, name="one").id
    assert sessions.edit(core, admin, session, SessionEdit(name="one", mode="build")).entries == []


def test_the_last_label_counts_and_an_empty_one_takes_it_away(core: Core, admin: Caller) -> None:
    order = play(core, admin, "first")
    session = session_of(core, order)
    sessions.label(core, admin, session, LabelRequest(entry=order, text="good"))
    assert labeled(core, admin, session, order, "better") == "better"
    with pytest.raises(NotFound):
        sessions.switch(core, admin, session, SwitchRequest(entry="good"))
    assert labeled(core, admin, session, order, "") is None


def labeled(core: Core, admin: Caller, session: str, order: str, text: str) -> str | None:
    return sessions.label(core, admin, session, LabelRequest(entry=order, text=text)).entries[0].label


def test_the_root_takes_no_label(core: Core, admin: Caller) -> None:
    with pytest.raises(Invalid):
        sessions.label(core, admin, begin(core, admin).id, LabelRequest(entry="root", text="x"))


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"name": "x" * 256}, "E-TOO-LONG"),
        ({"name": "a\0b"}, "E-TEXT"),
        ({"allow": ["x"] * 101}, "E-ORDER-ALLOW"),
        ({"allow": [""]}, "E-EMPTY"),
        ({"project": "nowhere"}, "E-PROJECT-404"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_made(
    core: Core, admin: Caller, fields: dict[str, Any], code: str
) -> None:
    with pytest.raises(FleetError) as refusal:
        begin(core, admin, **fields)
    assert refusal.value.code == code
    assert sessions.list_(core, admin) == []


# --- the last work -----------------------------------------------------------------------------


def test_the_head_is_the_last_work_on_the_way_to_the_leaf(core: Core, admin: Caller) -> None:
    work = {"branch": "fleet/x", "head_commit": "a" * 40, "pushed": True}
    first = play(core, admin, "first", **work)
    session = session_of(core, first)
    play(core, admin, "second", session)
    head = sessions.head_of(core, admin, session)
    assert (head.order, head.branch, head.commit) == (first, "fleet/x", "a" * 40)
    assert (head.pushed, head.bundle, head.project) == (True, False, "web")
    with pytest.raises(NotFound, match="has no bundle"):
        sessions.bundle_of(core, admin, session)


def test_a_session_that_changed_nothing_has_no_head(core: Core, admin: Caller) -> None:
    with pytest.raises(NotFound) as refusal:
        sessions.head_of(core, admin, begin(core, admin).id)
    assert refusal.value.code == "E-SESSION-HEAD"


# --- who may -------------------------------------------------------------------------------------


def test_another_organization_finds_no_session_by_any_door(core: Core, admin: Caller) -> None:
    session = begin(core, admin).id
    stranger = Caller("000000000000", "other", "admin", "u")
    doors: list[tuple[Any, ...]] = [
        (sessions.show,),
        (sessions.head_of,),
        (sessions.bundle_of,),
        (sessions.edit, SessionEdit(name="x")),
        (sessions.switch, SwitchRequest(entry="root")),
        (sessions.fork, ForkRequest()),
        (sessions.label, LabelRequest(entry="root", text="x")),
        (sessions.compact, CompactRequest()),
    ]
    refusals = [not_found(door, core, stranger, session, *rest) for door, *rest in doors]
    assert refusals == ["E-SESSION-404"] * len(doors)
    assert sessions.list_(core, stranger) == []


def not_found(door: Any, *given: Any) -> str:
    with pytest.raises(NotFound) as refusal:
        door(*given)
    return refusal.value.code


@pytest.mark.parametrize(
    ("operation", "request_"),
    [
        (sessions.create, (SessionRequest(project="web"),)),
        (sessions.edit, ("x", SessionEdit())),
        (sessions.switch, ("x", SwitchRequest(entry="root"))),
        (sessions.fork, ("x", ForkRequest())),
        (sessions.label, ("x", LabelRequest(entry="root", text=""))),
        (sessions.compact, ("x", CompactRequest())),
    ],
    ids=lambda given: getattr(given, "__name__", ""),
)
def test_a_viewer_changes_nothing(core: Core, operation: Any, request_: tuple[Any, ...]) -> None:
    with pytest.raises(Forbidden):
        operation(core, VIEWER, *request_)


def test_orders_of_a_session_stay_in_line_while_it_is_idle_between_them(core: Core, admin: Caller) -> None:
    first = play(core, admin, "first")
    session = session_of(core, first)
    second = submit(core, admin, "second", session=session)
    third = submit(core, admin, "third", session=session)
    with core.database.read() as db:
        assert db.query(Dispatch).filter(Dispatch.order_id == second.id).count() == 1
        assert db.query(Dispatch).filter(Dispatch.order_id == third.id).count() == 0
