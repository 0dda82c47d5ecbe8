"""Project memory: agents propose notes, users keep them, and later orders have those in their prompts (O-109)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from control_plane.contract.declarations.memory import MemoryDocument, MemoryEdit, MemoryRequest
from control_plane.core import Caller, Core
from control_plane.db.orders import Order
from control_plane.operations import memory
from control_plane.operations.inbox import dismissing
from control_plane.operations.inbox.listing import count_inbox, list_inbox
from control_plane.orders import memory_notes
from control_plane.orders.memory_notes import MAX_BYTES, propose
from shared.errors import Conflict
from shared.events import RememberStep
from shared.work_order import OrderMemory
from tests.support.going_on import begin, succeed
from tests.support.made import make_project, submit
from tests.support.planes import Plane
from tests.support.refusals import code_of
from tests.support.stand_in import DroneStandIn

NOTE = RememberStep(text="Run the tests with make test.", why="pytest alone misses generated files")
SECRET = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"


@pytest.fixture
def web(core: Core, admin: Caller) -> Core:
    """With a project `web`."""
    make_project(core, admin)
    return core


def proposed(core: Core, caller: Caller, *steps: RememberStep) -> list[bool]:
    """Of each note that the agent of an order proposes, whether it is new."""
    order_id = submit(core, caller).id
    with core.database.write() as db:
        return [propose(db, core, db.get_one(Order, order_id), step) for step in steps]


def add(core: Core, caller: Caller, text: str, project: str | None = "web") -> MemoryDocument:
    return memory.add(core, caller, MemoryRequest(text=text, project=project))


def test_a_proposed_note_is_in_no_prompt_until_a_user_keeps_it(running: Plane, oka: DroneStandIn) -> None:
    core, admin = running.core, running.admin
    for_all = RememberStep(text="Write in English.", why="all do", scope="organization")
    order = begin(running, oka)
    oka.report(order, NOTE, for_all)
    succeed(running, oka, order)
    notes = {note.text: note for note in memory.list_(core, admin)}
    note = notes[NOTE.text]
    assert (note.state, note.why, note.project, notes[for_all.text].project) == ("proposed", NOTE.why, "app", None)
    order = begin(running, oka)
    assert order.memory == OrderMemory()
    succeed(running, oka, order)
    kept = [memory.accept(core, admin, each.id) for each in notes.values()]
    assert {(each.state, each.decided_by) for each in kept} == {("kept", admin.user)}
    assert begin(running, oka).memory == OrderMemory(project=(NOTE.text,), organization=(for_all.text,))


def test_a_proposal_waits_in_the_inbox_until_it_is_decided_and_again_after_an_undo(web: Core, admin: Caller) -> None:
    proposed(web, admin, NOTE)
    (note,) = memory.list_(web, admin)
    (item,) = list_inbox(web, admin, kind="memory")
    assert (item.title, item.text, item.project, item.order) == (NOTE.text, NOTE.why, "web", note.order)
    assert (item.next, item.may_answer) == (f"fleet memory accept {note.id}", True)
    assert count_inbox(web, admin).kinds["memory"] == 1
    for decide in (memory.accept, memory.refuse):
        decide(web, admin, note.id)
        assert list_inbox(web, admin, kind="memory") == []
        assert count_inbox(web, admin).kinds["memory"] == 0
        dismissing.restore(web, admin, item.id)
        assert [each.id for each in list_inbox(web, admin, kind="memory")] == [item.id]


def test_what_is_empty_too_much_a_secret_or_known_is_not_proposed(
    web: Core, admin: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_notes, "MOST_PROPOSED", 2)
    assert proposed(web, admin, NOTE, NOTE) == [True, False]
    (note,) = memory.list_(web, admin)
    memory.refuse(web, admin, note.id)
    useless = ("x" * 501, f"The token is {SECRET}", " \n ", NOTE.text)
    assert not any(proposed(web, admin, *(RememberStep(text=text, why="y") for text in useless)))
    assert [each.id for each in memory.list_(web, admin, state="refused")] == [note.id]
    many = (RememberStep(text=f"note {number}", why="y") for number in range(3))
    assert proposed(web, admin, *many) == [True, True, False]


@pytest.mark.dialects
def test_a_note_is_kept_once_however_often_it_is_accepted_and_cannot_be_refused_then(web: Core, admin: Caller) -> None:
    note = add(web, admin, "x" * 500)
    dismissing.restore(web, admin, f"memory:{note.id}")
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: memory.accept(web, admin, note.id), range(4)))
    assert {each.state for each in found} == {"kept"}
    assert memory.edit(web, admin, note.id, MemoryEdit(text="sec\nond")).text == "sec ond"
    assert code_of(lambda: memory.refuse(web, admin, note.id)) == "E-MEMORY-KEPT"
    dismissing.restore(web, admin, f"memory:{note.id}")
    assert memory.refuse(web, admin, note.id).state == memory.refuse(web, admin, note.id).state == "refused"
    assert code_of(lambda: memory.accept(web, admin, note.id)) == "E-MEMORY-REFUSED"


def test_beyond_the_limit_a_note_is_refused_and_none_is_dropped(web: Core, admin: Caller) -> None:
    """So is one that is too long or empty or holds a secret."""
    notes = [add(web, admin, f"{number:03}" + "é" * 248) for number in range(MAX_BYTES // 499)]
    for text, code in (
        (f"The token is {SECRET}", "E-MEMORY-SECRET"),
        ("x" * 501, "E-TOO-LONG"),
        (" ", "E-EMPTY"),
    ):
        assert code_of(lambda text=text: add(web, admin, text, None)) == code
        assert code_of(lambda text=text: memory.edit(web, admin, notes[0].id, MemoryEdit(text=text))) == code
    with pytest.raises(Conflict) as refusal:
        add(web, admin, "x" * 400)
    assert (refusal.value.code, "fleet memory rm" in str(refusal.value.next)) == ("E-MEMORY-FULL", True)
    assert code_of(lambda: memory.edit(web, admin, notes[0].id, MemoryEdit(text="é" * 500))) == "E-MEMORY-FULL"
    assert {(each.id, each.text) for each in memory.list_(web, admin)} == {(each.id, each.text) for each in notes}
    assert add(web, admin, "x" * 400, None).state == "kept"
    memory.remove(web, admin, notes[0].id)
    assert add(web, admin, "x" * 400).state == "kept"
