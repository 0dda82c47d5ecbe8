"""What was spent, summed over the ledger."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import update

from control_plane.core import Caller, Core
from control_plane.db.drones import Drone
from control_plane.db.orders import Order
from control_plane.db.runs import Run
from control_plane.declarations.costs import CostDocument
from control_plane.declarations.users import UserRequest
from control_plane.operations import costs, organizations
from control_plane.operations.access import users
from tests.support.made import later, make_drone, make_project, start_run, submit
from tests.support.organizations import add_organization
from tests.support.refusals import code_of
from tests.support.spending import reserve, spend
from tests.support.team_rows import add_agent


@pytest.fixture
def fleet(core: Core, admin: Caller) -> Caller:
    make_project(core, admin)
    make_project(core, admin, "shop")
    make_drone(core, admin, concurrency=100)
    return admin


def run(core: Core, caller: Caller, usd: float, **submitted: Any) -> str:
    """A run that ended and cost this."""
    with core.database.write() as db:
        db.execute(update(Drone).values(last_seen_at=core.clock.now()))
    run_id = start_run(core, submit(core, caller, **submitted).id)
    spend(core, run_id, usd)
    return run_id


def listed(core: Core, caller: Caller, **filters: Any) -> list[tuple[str | None, float, float, int]]:
    found: list[CostDocument] = costs.list_(core, caller, **filters)
    return [(each.name, each.spent_usd, each.reserved_usd, each.runs) for each in found]


@pytest.mark.dialects
def test_money_counts_on_the_local_day_on_which_it_was_reserved(core: Core, fleet: Caller) -> None:
    first = start_run(core, submit(core, fleet).id)
    reserve(core, first, 0.5)
    later(core, hours=11, minutes=30)
    run(core, fleet, 0.25)
    later(core, days=2)
    reserve(core, first, 1.5, spent=0.5)
    spend(core, first, 0.75, final=False)
    assert listed(core, fleet) == [
        ("2026-11-21", 0.75, 0, 2),
        ("2026-11-23", 0.25, 0.75, 1),
    ]
    assert listed(core, fleet, zone="Europe/Berlin") == [
        ("2026-11-21", 0.5, 0, 1),
        ("2026-11-22", 0.25, 0, 1),
        ("2026-11-24", 0.25, 0.75, 1),
    ]


@pytest.mark.dialects
def test_what_is_summed_by_is_named_and_the_most_expensive_comes_first(core: Core, fleet: Caller) -> None:
    kim = users.add(core, fleet, UserRequest(email="kim@example.org", name="Kim", role="operator"))
    run(core, fleet, 0.25)
    run(core, replace(fleet, user_id=kim.id, user="Kim"), 0.5, project="shop")
    assert listed(core, fleet, by="project") == [("shop", 0.5, 0, 1), ("web", 0.25, 0, 1)]
    assert listed(core, fleet, by="user") == [("kim@example.org", 0.5, 0, 1), (None, 0.25, 0, 1)]
    for by, name in (("model", "openai/scripted"), ("drone", "anna"), ("organization", "default")):
        assert listed(core, fleet, by=by) == [(name, 0.75, 0, 2)]
    users.remove(core, fleet, "kim@example.org")
    assert listed(core, fleet, by="user")[0][0] == "not a member"


def test_runs_of_an_agent_are_summed_under_its_name(core: Core, fleet: Caller) -> None:
    run(core, fleet, 0.25)
    order = submit(core, fleet)
    agent = add_agent(core, fleet, "lead")
    with core.database.write() as db:
        db.execute(update(Order).where(Order.id == order.id).values(agent_id=agent))
    spend(core, start_run(core, order.id), 0.5)
    found = [(each.name, each.id, each.spent_usd) for each in costs.list_(core, fleet, by="agent")]
    assert found == [("lead", agent, 0.5), (None, None, 0.25)]


def test_a_time_has_a_beginning_and_an_end_of_which_a_day_is_part(core: Core, fleet: Caller) -> None:
    for _ in range(4):
        run(core, fleet, 1)
        later(core, days=1)
    days = [f"2026-11-{day}" for day in (21, 22, 23, 24)]
    assert [day for day, *_ in listed(core, fleet)] == days
    assert [day for day, *_ in listed(core, fleet, since="2026-11-22", until="2026-11-23")] == days[1:3]
    assert listed(core, fleet, until="2026-11-23T12:00:00Z", by="project") == [("web", 2, 0, 2)]
    assert listed(core, fleet, since="2026-11-23T13:00:00+01:00", by="project") == [("web", 2, 0, 2)]
    assert listed(core, fleet, since="2026-11-21T12:00:01Z", until="2026-11-21") == []
    assert listed(core, fleet, since="2027-01-01") == listed(core, fleet, until="0001-01-02") == []


def test_a_time_or_zone_that_is_none_is_refused(core: Core, fleet: Caller) -> None:
    bad: list[tuple[str, dict[str, str]]] = [
        ("E-TIME", {"since": "yesterday"}),
        ("E-TIME", {"since": "2026-02-30"}),
        ("E-TIME", {"until": "2026-11-01T12:00:00"}),
        ("E-TIME", {"until": "9999-12-31"}),
        ("E-TIME", {"since": "2026-11-02", "until": "2026-11-01"}),
        ("E-ZONE", {"zone": "Mars/Olympus"}),
        ("E-ZONE", {"zone": "../UTC"}),
    ]
    assert [(code_of(lambda given=given: costs.list_(core, fleet, **given)), given) for _, given in bad] == bad


def test_runs_of_unknown_cost_are_counted_where_they_belong(core: Core, fleet: Caller) -> None:
    run(core, fleet, 1)
    unknown = start_run(core, submit(core, fleet, project="shop").id)
    later(core, days=1)
    with core.database.write() as db:
        db.get_one(Run, unknown).cost_usd = None
    by_project = costs.list_(core, fleet, by="project")
    assert [(each.name, each.spent_usd, each.runs, each.unknown_costs) for each in by_project] == [
        ("web", 1, 1, 0),
        ("shop", 0, 0, 1),
    ]
    assert [(each.name, each.unknown_costs) for each in costs.list_(core, fleet)] == [("2026-11-21", 1)]
    assert costs.list_(core, fleet, since="2026-11-22") == []


@pytest.mark.dialects
def test_all_sums_agree_with_the_own_runs_to_the_last_digit(core: Core, fleet: Caller) -> None:
    payments = add_organization(core, fleet)
    make_project(core, payments)
    make_drone(core, payments, "berta")
    run(core, payments, 5)
    assert listed(core, payments, by="organization") == [("payments", 5, 0, 1)]
    amounts = random.Random(7)
    for _ in range(12):
        run(core, fleet, amounts.randrange(1, 10**9) / 10**9, project=amounts.choice(["web", "shop"]))
        later(core, minutes=amounts.randrange(300))
    of_runs = organizations.show(core, fleet, "default").totals.cost_usd
    kinds = ("day", "project", "agent", "model", "drone", "user", "organization")
    sums = {by: sum(round(row[1] * 10**9) for row in listed(core, fleet, by=by)) for by in kinds}
    assert set(sums.values()) == {round((of_runs or 0) * 10**9)}
