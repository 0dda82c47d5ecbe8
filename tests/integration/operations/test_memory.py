"""Project memory: agents propose notes, users keep them, and later orders have those in their prompts (O-109)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from pydantic import ValidationError

from control_plane.core import Caller, Core
from control_plane.declarations.memory import MemoryDocument, MemoryEdit, MemoryRequest
from control_plane.operations import memory
from control_plane.operations.inbox.listing import count_inbox, list_inbox
from control_plane.orders.memory_notes import MAX_BYTES, MOST_PROPOSED
from shared.errors import Conflict, NotFound, Refused
from shared.events import RememberStep
from shared.work_order import OrderMemory
from tests.support.going_on import begin, succeed
from tests.support.made import make_project
from tests.support.organizations import add_organization
from tests.support.planes import Plane
from tests.support.stand_in import DroneStandIn

NOTE = RememberStep(text="Run the tests with make test.", why="pytest alone misses generated files")
SECRET = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"


@pytest.fixture
def oka(plane: Plane) -> DroneStandIn:
    made = plane.drone("oka")
    plane.collector(), plane.supervisor()
    return made


def proposed(plane: Plane, oka: DroneStandIn, *steps: RememberStep) -> list[MemoryDocument]:
    """The notes after an order whose agent proposes these."""
    order = begin(plane, oka)
    oka.report(order, *steps)
    succeed(plane, oka, order)
    plane.until(lambda: plane.status(order.order_id) == "succeeded")
    return memory.list_(plane.core, plane.admin)


def add(core: Core, caller: Caller, text: str, project: str | None = "web") -> MemoryDocument:
    return memory.add(core, caller, MemoryRequest(text=text, project=project))


def test_a_proposed_note_is_in_no_prompt_until_a_user_keeps_it(plane: Plane, oka: DroneStandIn) -> None:
    (note,) = proposed(plane, oka, NOTE)
    assert (note.state, note.text, note.why, note.project) == ("proposed", NOTE.text, NOTE.why, "app")
    order = begin(plane, oka)
    assert order.memory == OrderMemory()
    succeed(plane, oka, order)
    kept = memory.accept(plane.core, plane.admin, note.id)
    assert (kept.state, kept.decided_by) == ("kept", plane.admin.user)
    assert begin(plane, oka).memory == OrderMemory(project=(NOTE.text,))


def test_a_note_for_all_projects_is_told_apart(plane: Plane, oka: DroneStandIn) -> None:
    (note,) = proposed(plane, oka, NOTE.model_copy(update={"scope": "organization"}))
    assert note.project is None
    memory.accept(plane.core, plane.admin, note.id)
    assert begin(plane, oka).memory == OrderMemory(organization=(NOTE.text,))


def test_a_proposal_waits_in_the_inbox_until_it_is_decided(plane: Plane, oka: DroneStandIn) -> None:
    (note,) = proposed(plane, oka, NOTE)
    (item,) = list_inbox(plane.core, plane.admin, kind="memory")
    assert (item.title, item.text, item.project, item.order) == (NOTE.text, NOTE.why, "app", note.order)
    assert (item.next, item.may_answer) == (f"fleet memory accept {note.id}", True)
    assert count_inbox(plane.core, plane.admin).kinds["memory"] == 1
    memory.refuse(plane.core, plane.admin, note.id)
    assert list_inbox(plane.core, plane.admin, kind="memory") == []
    assert count_inbox(plane.core, plane.admin).kinds["memory"] == 0


def test_what_was_proposed_kept_or_refused_is_not_proposed_again(plane: Plane, oka: DroneStandIn) -> None:
    (note,) = proposed(plane, oka, NOTE, NOTE)
    memory.refuse(plane.core, plane.admin, note.id)
    assert proposed(plane, oka, NOTE) == []
    assert [each.id for each in memory.list_(plane.core, plane.admin, state="refused")] == [note.id]


def test_a_drone_that_sends_too_much_or_a_secret_proposes_nothing_and_its_order_ends(
    plane: Plane, oka: DroneStandIn
) -> None:
    huge = RememberStep(text="x" * 5_000_000, why="y")
    secret = RememberStep(text=f"The token is {SECRET}", why="y")
    assert proposed(plane, oka, huge, secret, RememberStep(text=" \n ", why="y")) == []


def test_proposals_have_a_limit(plane: Plane, oka: DroneStandIn) -> None:
    many = (RememberStep(text=f"note {number}", why="y") for number in range(MOST_PROPOSED + 3))
    assert len(proposed(plane, oka, *many)) == MOST_PROPOSED


def test_a_note_is_kept_once_however_often_it_is_accepted(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    note = add(core, admin, "x" * 500)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: memory.accept(core, admin, note.id), range(8)))
    assert {(each.state, each.decided_at) for each in found} == {("kept", note.decided_at)}


def test_beyond_the_limit_a_note_is_refused_and_none_is_dropped(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    notes = [add(core, admin, f"{number:03}" + "é" * 248) for number in range(MAX_BYTES // 499)]
    with pytest.raises(Conflict, match=r"would have 8,\d\d\d bytes; 8,000 are allowed") as refusal:
        add(core, admin, "x" * 400)
    assert refusal.value.next == "fleet memory ls --project web    then: fleet memory rm ID"
    with pytest.raises(Conflict, match="bytes"):
        memory.edit(core, admin, notes[0].id, MemoryEdit(text="é" * 500))
    assert {each.id for each in memory.list_(core, admin)} == {each.id for each in notes}
    assert add(core, admin, "x" * 400, None).state == "kept"
    memory.remove(core, admin, notes[0].id)
    assert add(core, admin, "x" * 400).state == "kept"


def test_an_edited_note_keeps_its_state_and_a_kept_one_cannot_be_refused(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    note = add(core, admin, "first")
    assert memory.edit(core, admin, note.id, MemoryEdit(text="sec\nond")).text == "sec ond"
    assert memory.show(core, admin, note.id).state == "kept"
    with pytest.raises(Conflict, match="is kept already"):
        memory.refuse(core, admin, note.id)


@pytest.mark.parametrize(
    ("text", "problem"),
    [(f"The token is {SECRET}", "looks like a secret"), ("x" * 501, "501 characters"), (" ", "empty")],
)
def test_a_note_that_is_too_long_empty_or_holds_a_secret_is_refused(
    core: Core, admin: Caller, text: str, problem: str
) -> None:
    make_project(core, admin)
    note = add(core, admin, "fine")
    with pytest.raises(Refused, match=problem):
        add(core, admin, text)
    with pytest.raises(Refused, match=problem):
        memory.edit(core, admin, note.id, MemoryEdit(text=text))
    assert [each.text for each in memory.list_(core, admin)] == ["fine"]


def test_a_note_of_ten_megabytes_is_no_request() -> None:
    with pytest.raises(ValidationError):
        MemoryRequest(text="x" * 10_000_000)


def test_a_note_of_another_organization_does_not_exist(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    note = add(core, admin, "ours")
    others = add_organization(core, admin)
    for act in (memory.show, memory.accept, memory.refuse, memory.remove):
        with pytest.raises(NotFound, match="not found"):
            act(core, others, note.id)
    assert memory.list_(core, others) == []
