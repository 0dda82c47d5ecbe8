"""Project memory: agents propose notes, users keep them, and later orders have those in their prompts (O-109)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from control_plane.contract.declarations.memory import MemoryDocument, MemoryEdit, MemoryRequest
from control_plane.core import Caller, Core
from control_plane.operations import memory
from control_plane.operations.inbox import dismissing
from control_plane.operations.inbox.listing import count_inbox, list_inbox
from control_plane.orders.memory_notes import MAX_BYTES, MOST_PROPOSED
from shared.errors import Conflict, Refused
from shared.events import RememberStep
from shared.work_order import OrderMemory
from tests.support.going_on import begin, succeed
from tests.support.made import make_project
from tests.support.planes import Plane
from tests.support.refusals import code_of
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
    for_all = RememberStep(text="Write in English.", why="all do", scope="organization")
    notes = {note.text: note for note in proposed(plane, oka, NOTE, for_all)}
    note = notes[NOTE.text]
    assert (note.state, note.why, note.project, notes[for_all.text].project) == ("proposed", NOTE.why, "app", None)
    order = begin(plane, oka)
    assert order.memory == OrderMemory()
    succeed(plane, oka, order)
    kept = [memory.accept(plane.core, plane.admin, each.id) for each in notes.values()]
    assert {(each.state, each.decided_by) for each in kept} == {("kept", plane.admin.user)}
    assert begin(plane, oka).memory == OrderMemory(project=(NOTE.text,), organization=(for_all.text,))


def test_a_proposal_waits_in_the_inbox_and_is_made_once(plane: Plane, oka: DroneStandIn) -> None:
    """Nor is one made of what is too much, empty or a secret, and its order ends."""
    (note,) = proposed(plane, oka, NOTE, NOTE)
    (item,) = list_inbox(plane.core, plane.admin, kind="memory")
    assert (item.title, item.text, item.project, item.order) == (NOTE.text, NOTE.why, "app", note.order)
    assert (item.next, item.may_answer) == (f"fleet memory accept {note.id}", True)
    assert count_inbox(plane.core, plane.admin).kinds["memory"] == 1
    for decide in (memory.accept, memory.refuse):
        decide(plane.core, plane.admin, note.id)
        assert list_inbox(plane.core, plane.admin, kind="memory") == []
        # An undo.
        dismissing.restore(plane.core, plane.admin, item.id)
        assert [each.id for each in list_inbox(plane.core, plane.admin, kind="memory")] == [item.id]
    memory.refuse(plane.core, plane.admin, note.id)
    assert count_inbox(plane.core, plane.admin).kinds["memory"] == 0

    useless = ("x" * 5_000_000, f"The token is {SECRET}", " \n ", NOTE.text)
    assert proposed(plane, oka, *(RememberStep(text=text, why="y") for text in useless)) == []
    assert [each.id for each in memory.list_(plane.core, plane.admin, state="refused")] == [note.id]
    many = (RememberStep(text=f"note {number}", why="y") for number in range(MOST_PROPOSED + 3))
    assert len(proposed(plane, oka, *many)) == MOST_PROPOSED


@pytest.mark.dialects
def test_a_note_is_kept_once_however_often_it_is_accepted_and_cannot_be_refused_then(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    note = add(core, admin, "x" * 500)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: memory.accept(core, admin, note.id), range(8)))
    assert {(each.state, each.decided_at) for each in found} == {("kept", note.decided_at)}
    assert memory.edit(core, admin, note.id, MemoryEdit(text="sec\nond")).text == "sec ond"
    assert code_of(lambda: memory.refuse(core, admin, note.id)) == "E-MEMORY-KEPT"
    dismissing.restore(core, admin, f"memory:{note.id}")
    assert memory.refuse(core, admin, note.id).state == memory.refuse(core, admin, note.id).state == "refused"
    assert code_of(lambda: memory.accept(core, admin, note.id)) == "E-MEMORY-REFUSED"


def test_beyond_the_limit_a_note_is_refused_and_none_is_dropped(core: Core, admin: Caller) -> None:
    """So is one that is too long or empty or holds a secret."""
    make_project(core, admin)
    notes = [add(core, admin, f"{number:03}" + "é" * 248) for number in range(MAX_BYTES // 499)]
    for text in (f"The token is {SECRET}", "x" * 501, " "):
        for act in (
            lambda text=text: add(core, admin, text, None),
            lambda text=text: memory.edit(core, admin, notes[0].id, MemoryEdit(text=text)),
        ):
            with pytest.raises(Refused):
                act()
    with pytest.raises(Conflict, match=r"8,\d\d\d bytes; 8,000") as refusal:
        add(core, admin, "x" * 400)
    assert "fleet memory rm" in refusal.value.next
    with pytest.raises(Conflict, match="bytes"):
        memory.edit(core, admin, notes[0].id, MemoryEdit(text="é" * 500))
    assert {(each.id, each.text) for each in memory.list_(core, admin)} == {(each.id, each.text) for each in notes}
    assert add(core, admin, "x" * 400, None).state == "kept"
    memory.remove(core, admin, notes[0].id)
    assert add(core, admin, "x" * 400).state == "kept"
