"""Drones: who sees what of them, who has the say over them, and for whom they work, also in other organizations."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy import event, select

from control_plane.contract.declarations.drones import DroneEdit
from control_plane.contract.declarations.sessions import ForkRequest, SessionRequest
from control_plane.contract.declarations.task_documents import TaskRequest
from control_plane.contract.declarations.tokens import JoinTokenRequest
from control_plane.contract.declarations.users import UserRequest
from control_plane.core import Caller, Core
from control_plane.core.lookups.organizations import system_caller
from control_plane.db.drones import Drone, InboxMessage
from control_plane.db.orders import Order
from control_plane.db.runs import Run
from control_plane.operations import sessions, tasks
from control_plane.operations.access import tokens, users
from control_plane.operations.drones import managing, rotation
from control_plane.operations.orders import reading
from shared.errors import Forbidden, NotFound
from shared.reasons import TakenBack
from tests.support import wait_until
from tests.support.database import is_waiting
from tests.support.made import make_drone, make_project, start_run, start_run_within, submit
from tests.support.organizations import add_organization
from tests.support.refusals import code_of
from tests.support.team_rows import add_agent

KIM, JO = "kim@example.org", "jo@example.org"


@pytest.fixture
def other(core: Core, admin: Caller) -> Caller:
    """An admin of `other`, and of nothing else."""
    return replace(add_organization(core, admin, "other"), everywhere=False)


def user(core: Core, caller: Caller, email: str = KIM, role: str = "operator") -> Caller:
    """A new user of the caller's organization."""
    made = users.add(core, caller, UserRequest(email=email, name=email, role=role))
    return replace(caller, user_id=made.id, user=email, role=role, everywhere=False)


def names(core: Core, caller: Caller, **filters: bool) -> list[str]:
    return [drone.name for drone in managing.list_drones(core, caller, **filters)]


def edit(core: Core, caller: Caller, name: str, **fields: str | None) -> str | None:
    """Edit the drone; its owner then."""
    return managing.edit_drone(core, caller, name, DroneEdit(**fields)).owner


def test_what_a_drone_does_is_shown_to_those_for_whom_it_does_it(core: Core, admin: Caller, other: Caller) -> None:
    """It is busy without a free slot, and at what has not ended."""
    drone = make_drone(core, admin, serves=["*"], concurrency=2)
    for caller in (admin, other):
        make_project(core, caller)
    one, another = (submit(core, caller).id for caller in (admin, other))
    run_id = start_run(core, one)
    shown = managing.show_drone(core, admin, "anna")
    assert (shown.running, shown.queued, shown.status) == (1, 1, "online")
    doing = {run_id: "cloning", start_run(core, another): "testing", "gone": "delivering"}
    with core.database.write() as db:
        beat = [{"run_id": run_id, "doing": text, "ended": False} for run_id, text in doing.items()]
        db.get_one(Drone, drone.drone_id).beat = {"runs": [*beat, {"run_id": "s", "doing": "", "ended": True}]}
    for caller, text in ((admin, "cloning"), (other, "testing")):
        for shown in (managing.show_drone(core, caller, "anna"), managing.list_drones(core, caller)[0]):
            assert (shown.running, shown.queued, shown.status) == (2, 0, "busy")
            assert [each["doing"] for each in shown.doing] == [text]


def test_the_number_of_queries_does_not_grow_with_the_fleet_and_the_orders(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    make_drone(core, admin)
    start_run(core, submit(core, admin).id)
    few = [queries(core, lists) for lists in (managing.list_drones, reading.list_orders)]
    for number in range(3):
        name = make_drone(core, admin, f"drone-{number}", public_key=f"{number:044}").name
        start_run(core, submit(core, admin, drone=name).id)
    assert [queries(core, lists) for lists in (managing.list_drones, reading.list_orders)] == few
    assert len(reading.list_orders(core, admin)) == 4


def queries(core: Core, lists: Callable[[Core, Caller], object]) -> int:
    """How many statements this takes."""
    seen: list[str] = []
    event.listen(core.database.engine, "before_cursor_execute", lambda *given: seen.append(given[2]))
    lists(core, system_caller(core))
    return len(seen)


def test_a_drone_is_seen_by_those_whom_it_serves(core: Core, admin: Caller, other: Caller) -> None:
    third = add_organization(core, admin, "third")
    kim = user(core, other, role="admin")
    make_drone(core, admin, "at-home")
    serves = [other.organization_id, third.organization_id]
    make_drone(core, admin, "for-some", serves=serves, user_id=kim.user_id)
    make_drone(core, admin, "for-all", serves=["*"])
    assert names(core, admin) == ["at-home", "for-all", "for-some"]
    assert names(core, other) == ["for-all", "for-some"]
    assert code_of(lambda: managing.show_drone(core, other, "at-home")) == "E-DRONE-404"

    everywhere, home, there = (
        managing.show_drone(core, caller, "for-some") for caller in (admin, replace(admin, everywhere=False), other)
    )
    assert (everywhere.organization, everywhere.serves) == ("default", ["other", "third"])
    assert (home.organization, home.serves) == ("default", [])
    assert (there.organization, there.serves, there.owner) == (None, ["other"], None)
    assert names(core, kim, mine=True) == []


def test_of_two_drones_of_one_name_its_own_is_meant(core: Core, admin: Caller, other: Caller) -> None:
    make_drone(core, admin, "anna", serves=["*"])
    own = make_drone(core, other, "anna", public_key="B" * 43 + "=")
    assert names(core, other) == ["anna", "anna"]
    assert managing.show_drone(core, other, "anna").id == own.drone_id
    assert managing.remove_drone(core, other, "anna").id == own.drone_id
    assert managing.show_drone(core, other, "anna").organization is None


def test_a_user_owns_and_lists_their_own_drones_orders_and_sessions(core: Core, admin: Caller) -> None:
    """A session is of the user who started or forked it or whose task it is, and a script has nothing of its own."""
    kim, jo = user(core, admin), user(core, admin, JO)
    make_project(core, admin)
    for each in (kim, jo):
        make_drone(core, admin, f"of-{each.user}", user_id=each.user_id)
    order = submit(core, kim)
    submit(core, jo, session=order.session)
    submit(core, admin)
    assert names(core, kim, mine=True) == [f"of-{KIM}"]
    assert [each.id for each in reading.list_orders(core, kim, mine=True)] == [order.id]
    assert [each.id for each in sessions.list_(core, kim, mine=True)] == [order.session]
    assert sessions.list_(core, jo, mine=True) == []
    for list_own in (managing.list_drones, reading.list_orders, sessions.list_):
        assert code_of(lambda list_own=list_own: list_own(core, admin, mine=True)) == "E-USER-NONE"

    begun = sessions.create(core, kim, SessionRequest(project="web"))
    fork = sessions.fork(core, jo, begun.id, ForkRequest())
    assert [each.owner for each in (begun, fork)] == [KIM, JO]
    assert sessions.create(core, admin, SessionRequest(project="web")).owner is None
    add_agent(core, admin, "lead")
    task = tasks.create(core, jo, TaskRequest(title="Refunds"))
    (of_task,) = [each for each in sessions.list_(core, admin, every=True) if each.title == f"{task.id} Refunds"]
    assert of_task.owner == JO
    users.remove(core, admin, KIM)
    assert sessions.show(core, admin, begun.id).owner == "not a member"


def test_only_its_own_organization_has_the_say_over_a_drone(core: Core, admin: Caller, other: Caller) -> None:
    make_drone(core, admin, serves=["*"])
    acts = (
        lambda caller: managing.drain(core, caller, "anna"),
        lambda caller: managing.resume(core, caller, "anna"),
        lambda caller: managing.remove_drone(core, caller, "anna"),
        lambda caller: edit(core, caller, "anna", owner=None),
    )
    for act in acts:
        with pytest.raises(Forbidden) as refusal:
            act(other)
        assert (refusal.value.code, "default" in str(vars(refusal.value))) == ("E-DRONE-HOME", False)
    with pytest.raises(Forbidden) as told:
        managing.remove_drone(core, replace(admin, organization="other", organization_id=other.organization_id), "anna")
    assert told.value.next == "repeat with: --org default"
    assert managing.remove_drone(core, admin, "anna").status == "removed"


def test_an_operator_removes_own_drones_and_an_admin_removes_and_gives_all(core: Core, admin: Caller) -> None:
    kim, jo = user(core, admin), user(core, admin, JO)
    for name, owner in (("kims", kim.user_id), ("jos", jo.user_id), ("nobodys", None)):
        make_drone(core, admin, name, user_id=owner)
    for caller, name in ((kim, "jos"), (kim, "nobodys"), (replace(kim, user_id=None), "nobodys")):
        assert code_of(lambda caller=caller, name=name: managing.remove_drone(core, caller, name)) == "E-ROLE"
    assert code_of(lambda: edit(core, kim, "jos", owner=KIM)) == "E-ROLE"
    assert managing.remove_drone(core, kim, "kims").status == "removed"

    assert edit(core, admin, "nobodys", owner=JO) == edit(core, admin, "nobodys") == JO
    assert names(core, jo, mine=True) == ["jos", "nobodys"]
    assert edit(core, admin, "nobodys", owner=None) is None
    assert code_of(lambda: edit(core, admin, "nobodys", owner="who@example.org")) == "E-USER-404"
    assert managing.remove_drone(core, admin, "jos").status == "removed"


def test_a_join_token_serves_organizations_that_exist_or_all(core: Core, admin: Caller, other: Caller) -> None:
    def serving(caller: Caller, *names: str) -> list[str] | None:
        return tokens.create_join_token(core, caller, JoinTokenRequest(serves=names)).serves

    assert (serving(admin, "other", "other"), serving(admin, "other", "*")) == (["other"], ["*"])
    with pytest.raises(NotFound):
        serving(admin, "nobody")
    for caller in (other, replace(admin, everywhere=False)):
        assert code_of(lambda caller=caller: serving(caller, "*")) == "E-EVERYWHERE"


def test_draining_leaves_word_for_the_drone_once(core: Core, admin: Caller) -> None:
    make_drone(core, admin)
    assert managing.drain(core, admin, "anna").status == "draining"
    managing.drain(core, admin, "anna")
    with core.database.read() as db:
        assert [row.body for row in db.scalars(select(InboxMessage))] == [{"kind": "drain", "on": True}]
    assert managing.resume(core, admin, "anna").status == "online"


def test_a_renamed_drone_is_found_by_its_new_name_alone(core: Core, admin: Caller) -> None:
    """Celery or the broker could misread some names."""
    anna, _ = make_drone(core, admin, "anna"), make_drone(core, admin, "mila")
    assert code_of(lambda: edit(core, admin, "anna", new_name="mila")) == "E-DRONE-NAME"
    for name in ("a b", "West", "a@b", "%h", "a" * 65):
        assert code_of(lambda name=name: edit(core, admin, "anna", new_name=name)) == "E-NAME", name
    for name in ("anna", "west.7"):
        edit(core, admin, "anna", new_name=name)
    assert managing.show_drone(core, admin, "west.7").id == anna.drone_id
    assert names(core, admin) == ["mila", "west.7"]


def test_an_order_goes_to_a_drone_that_serves_its_organization_and_waits_again_when_that_is_removed(
    core: Core, admin: Caller, other: Caller
) -> None:
    for caller in (admin, other):
        make_project(core, caller)
    make_drone(core, admin, "at-home")
    assert submit(core, other).status == "queued"
    make_drone(core, admin, "for-all", serves=["*"], concurrency=3)
    begun, waiting, named = submit(core, other), submit(core, other), submit(core, other, drone="for-all")
    assert [(each.status, each.drone) for each in (begun, waiting, named)] == [("assigned", "for-all")] * 3
    assert code_of(lambda: submit(core, other, drone="at-home")) == "E-DRONE-404"

    foreign, run_id = submit(core, admin), start_run(core, begun.id)
    managing.remove_drone(core, admin, "for-all")
    shown = reading.show_order(core, other, begun.id)
    assert (shown.status, [(run.drone, run.status) for run in shown.runs]) == ("queued", [("for-all", "lost")])
    shown = reading.show_order(core, other, waiting.id)
    assert (shown.status, shown.drone) == ("queued", None)
    with core.database.read() as db:
        assert db.get_one(Run, run_id).ended_at is not None
        row = db.get_one(Order, waiting.id)
    assert isinstance(row.facts.returned, TakenBack)
    assert (row.facts.returned.state.code, row.facts.returned.state.drone, row.lost_runs) == ("removed", "for-all", 0)

    make_drone(core, admin, "for-all", serves=["*"], public_key="C" * 43 + "=")
    assert {each.id for each in reading.list_orders(core, other, drone="for-all")} <= {begun.id, waiting.id, named.id}
    assert foreign.id not in {each.id for each in reading.list_orders(core, other)}
    assert code_of(lambda: reading.list_orders(core, other, drone="berta")) == "E-DRONE-404"


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
@pytest.mark.parametrize("act", [managing.remove_drone, rotation.revoke_keys])
def test_a_drone_that_begins_an_order_at_this_moment_can_be_removed_and_its_keys_revoked(
    core: Core, admin: Caller, act: Callable[[Core, Caller, str], object]
) -> None:
    make_project(core, admin)
    make_drone(core, admin)
    order_id = submit(core, admin).id
    with ThreadPoolExecutor(1) as pool:
        with core.database.write() as db:
            db.get_one(Order, order_id, with_for_update=True)
            acting = pool.submit(act, core, admin, "anna")
            wait_until(lambda: is_waiting(core.database))
            start_run_within(db, core, order_id)
        acting.result()
    shown = reading.show_order(core, admin, order_id)
    assert (shown.status, [run.status for run in shown.runs]) == ("queued", ["lost"])
