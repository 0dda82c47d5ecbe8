"""Drones that work for other organizations beside their own: who sees what of them, and who has the say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from control_plane.core import AuthenticatedDrone, Caller, Core
from control_plane.db.drones import Drone
from control_plane.declarations.tokens import JoinTokenRequest
from control_plane.operations.access import tokens
from control_plane.operations.drones import managing
from control_plane.operations.orders import reading
from shared.errors import Forbidden, NotFound
from tests.support.made import make_drone, make_project, run_of, start_run, submit
from tests.support.organizations import add_organization


@pytest.fixture
def other(core: Core, admin: Caller) -> Caller:
    """An admin of `other`, and of nothing else."""
    return replace(add_organization(core, admin, "other"), everywhere=False)


def doing(core: Core, drone: AuthenticatedDrone, *run_ids: str) -> None:
    """Let the drone's last beat say that it is at these runs."""
    runs: list[dict[str, Any]] = [{"run_id": run_id, "doing": f"at {run_id}", "ended": False} for run_id in run_ids]
    with core.database.write() as db:
        db.get_one(Drone, drone.drone_id).beat = {"runs": runs}


def names(core: Core, caller: Caller) -> list[str]:
    return [drone.name for drone in managing.list_drones(core, caller)]


def test_a_drone_is_seen_by_those_whom_it_serves_and_names_of_others_only_by_those_who_act_everywhere(
    core: Core, admin: Caller, other: Caller
) -> None:
    third = add_organization(core, admin, "third")
    make_drone(core, admin, "at-home")
    make_drone(core, admin, "for-some", serves=[other.organization_id, third.organization_id])
    make_drone(core, admin, "for-all", serves=["*"])
    assert names(core, admin) == ["at-home", "for-all", "for-some"]
    assert names(core, other) == ["for-all", "for-some"]
    with pytest.raises(NotFound):
        managing.show_drone(core, other, "at-home")

    everywhere, home, there = (
        managing.show_drone(core, caller, "for-some") for caller in (admin, replace(admin, everywhere=False), other)
    )
    assert (everywhere.organization, everywhere.serves) == ("default", ["other", "third"])
    assert (home.organization, home.serves) == ("default", [])
    assert (there.organization, there.serves) == (None, ["other"])


def test_an_order_goes_to_a_drone_that_serves_its_organization_and_to_no_other(
    core: Core, admin: Caller, other: Caller
) -> None:
    make_project(core, other)
    make_drone(core, admin, "at-home")
    assert submit(core, other).status == "queued"
    make_drone(core, admin, "for-all", serves=["*"])
    placed = submit(core, other)
    assert (placed.status, placed.drone) == ("assigned", "for-all")
    assert submit(core, other, drone="for-all").drone == "for-all"
    with pytest.raises(NotFound):
        submit(core, other, drone="at-home")


def test_what_a_drone_does_is_shown_to_those_for_whom_it_does_it_and_its_load_to_all(
    core: Core, admin: Caller, other: Caller
) -> None:
    make_project(core, admin)
    make_project(core, other)
    drone = make_drone(core, admin, serves=["*"], concurrency=2)
    runs = [start_run(core, submit(core, caller).id) for caller in (admin, other)]
    doing(core, drone, *runs)
    for caller, own in ((admin, runs[0]), (other, runs[1])):
        shown = managing.show_drone(core, caller, "anna")
        assert (shown.running, shown.status, [each["run_id"] for each in shown.doing]) == (2, "busy", [own])


def test_only_its_own_organization_drains_resumes_or_removes_a_drone(core: Core, admin: Caller, other: Caller) -> None:
    make_drone(core, admin, serves=["*"])
    acts = (
        lambda caller: managing.drain(core, caller, "anna"),
        lambda caller: managing.resume(core, caller, "anna"),
        lambda caller: managing.remove_drone(core, caller, "anna"),
    )
    for act in acts:
        with pytest.raises(Forbidden) as refusal:
            act(other)
        assert (refusal.value.code, "default" in str(vars(refusal.value))) == ("E-DRONE-HOME", False)
    with pytest.raises(Forbidden) as told:
        managing.remove_drone(core, replace(admin, organization="other", organization_id=other.organization_id), "anna")
    assert told.value.next == "repeat with: --org default"
    assert managing.remove_drone(core, admin, "anna").status == "removed"


def test_of_two_drones_of_one_name_its_own_is_meant(core: Core, admin: Caller, other: Caller) -> None:
    make_drone(core, admin, "anna", serves=["*"])
    own = make_drone(core, other, "anna", public_key="B" * 43 + "=")
    assert names(core, other) == ["anna", "anna"]
    assert managing.show_drone(core, other, "anna").id == own.drone_id
    assert managing.remove_drone(core, other, "anna").id == own.drone_id
    assert managing.show_drone(core, other, "anna").organization is None


def test_orders_are_found_by_the_drone_that_had_them_and_only_the_own_ones(
    core: Core, admin: Caller, other: Caller
) -> None:
    for caller in (admin, other):
        make_project(core, caller)
    make_drone(core, admin, serves=["*"])
    mine, theirs = submit(core, admin), submit(core, other)
    managing.remove_drone(core, admin, "anna")
    make_drone(core, admin, serves=["*"], public_key="C" * 43 + "=")
    later = submit(core, other)
    assert {each.id for each in reading.list_orders(core, other, drone="anna")} <= {theirs.id, later.id}
    assert mine.id not in {each.id for each in reading.list_orders(core, other)}
    with pytest.raises(NotFound):
        reading.list_orders(core, other, drone="berta")


def test_a_join_token_that_serves_names_organizations_that_exist_or_all(
    core: Core, admin: Caller, other: Caller
) -> None:
    some = tokens.create_join_token(core, admin, JoinTokenRequest(serves=["other", "other"]))
    all_of_them = tokens.create_join_token(core, admin, JoinTokenRequest(serves=["other", "*"]))
    assert (some.serves, all_of_them.serves) == (["other"], ["*"])
    with pytest.raises(NotFound):
        tokens.create_join_token(core, admin, JoinTokenRequest(serves=["nobody"]))
    for caller in (other, replace(admin, everywhere=False)):
        with pytest.raises(Forbidden) as refusal:
            tokens.create_join_token(core, caller, JoinTokenRequest(serves=["*"]))
        assert refusal.value.code == "E-EVERYWHERE"


def test_what_a_removed_drone_had_in_hand_for_others_waits_for_another_drone(
    core: Core, admin: Caller, other: Caller
) -> None:
    make_project(core, other)
    make_drone(core, admin, serves=["*"])
    order = submit(core, other)
    run_id = start_run(core, order.id)
    assert run_of(core, order.id) == run_id
    managing.remove_drone(core, admin, "anna")
    shown = reading.show_order(core, other, order.id)
    assert (shown.status, [(run.drone, run.status) for run in shown.runs]) == ("queued", [("anna", "lost")])
