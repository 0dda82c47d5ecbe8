"""Money of runs: budgets as people set and read them, and what was spent, summed over the ledger."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import select, update

from control_plane.contract.declarations.budgets import BudgetDocument, BudgetRequest
from control_plane.contract.declarations.projects import ProjectEdit, ProjectRequest
from control_plane.contract.declarations.users import UserRequest
from control_plane.core import Caller, Core
from control_plane.db.drones import Drone
from control_plane.db.orders import Order
from control_plane.db.runs import Run
from control_plane.db.spending import Budget, BudgetPeriod
from control_plane.money.spending.accounts import accounts_of, note_refusal
from control_plane.money.spending.setting import recount_young
from control_plane.operations import agents, budgets, costs, organizations, projects
from control_plane.operations.access import users
from tests.support.made import later, make_drone, make_project, start_run, submit
from tests.support.organizations import add_organization
from tests.support.refusals import code_of
from tests.support.spending import reserve, spend, spend_so_far
from tests.support.team_rows import add_agent

KIM = "kim@example.org"


@pytest.fixture
def fleet(core: Core, admin: Caller) -> Caller:
    """With the projects `web` and `shop`, and a drone; it is noon UTC of 21 November."""
    make_project(core, admin)
    make_project(core, admin, "shop")
    make_drone(core, admin, concurrency=100)
    return admin


@pytest.fixture
def run_id(core: Core, fleet: Caller) -> str:
    """A run on project `web` that has spent nothing yet."""
    return start_run(core, submit(core, fleet).id)


def add_kim(core: Core, caller: Caller) -> Caller:
    """The caller as the user Kim."""
    kim = users.add(core, caller, UserRequest(email=KIM, name="Kim", role="operator"))
    return replace(caller, user_id=kim.id, user="Kim", everywhere=False)


def run(core: Core, caller: Caller, usd: float, *, agent: str | None = None, **submitted: Any) -> str:
    """A run that ended and cost this."""
    with core.database.write() as db:
        db.execute(update(Drone).values(last_seen_at=core.clock.now()))
    order = submit(core, caller, **submitted)
    give(core, order.id, agent)
    run_id = start_run(core, order.id)
    spend(core, run_id, usd)
    return run_id


def give(core: Core, order_id: str, agent: str | None) -> None:
    """Let the order be one of this agent."""
    with core.database.write() as db:
        db.execute(update(Order).where(Order.id == order_id).values(agent_id=agent))


def set_budget(core: Core, caller: Caller, usd: float, *of: str, per: str = "day", **more: Any) -> BudgetDocument:
    kind, name = of or ("project", "web")
    return budgets.set_(core, caller, kind, name, BudgetRequest(usd=usd, per=per, **more))


def shown(core: Core, caller: Caller, *of: str) -> BudgetDocument:
    return budgets.show(core, caller, *(of or ("project", "web"))).budgets[0]


def test_each_kind_of_budget_counts_the_runs_of_its_target(core: Core, fleet: Caller) -> None:
    kim = add_kim(core, fleet)
    order = submit(core, kim)
    run_id = start_run(core, order.id)
    give(core, order.id, add_agent(core, fleet, "lead"))
    names = {"project": "web", "agent": "lead", "user": "Kim", "organization": "default", "session": order.session}
    made = {kind: set_budget(core, kim, 1, kind, name[:8], per="total") for kind, name in names.items()}
    spend(core, run_id, 0.25)
    assert {kind: shown(core, kim, kind, name).spent_usd for kind, name in names.items()} == dict.fromkeys(names, 0.25)
    assert {kind: each.name for kind, each in made.items()} == {**names, "user": KIM}
    assert {(each.per, each.period_ends_at, each.forecast_usd) for each in made.values()} == {("total", None, None)}


@pytest.mark.dialects
def test_setting_again_also_at_once_replaces_the_amount_and_other_periods_stay(core: Core, fleet: Caller) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda usd: set_budget(core, fleet, usd, zone="Europe/Berlin"), [1, 2, 3, 4]))
    (first,) = budgets.list_(core, fleet)
    assert first.limit_usd in {1, 2, 3, 4}
    set_budget(core, fleet, 50, per="month")
    second = set_budget(core, fleet, 5)
    assert (second.id, second.limit_usd, second.zone) == (first.id, 5, "Europe/Berlin")
    found = [(each.per, each.limit_usd) for each in budgets.show(core, fleet, "project", "web").budgets]
    assert found == [("day", 5), ("month", 50)]


def test_an_amount_that_nobody_can_spend_and_a_target_that_is_none_are_refused(core: Core, fleet: Caller) -> None:
    for usd in (0, 1e-12, -1, 1_000_000.01):
        added = ProjectRequest(slug="docs", git_url="https://h/r.git", budget_usd_day=usd)
        for act in (
            lambda usd=usd: set_budget(core, fleet, usd),
            lambda usd=usd: projects.edit(core, fleet, "web", ProjectEdit(budget_usd_day=usd)),
            lambda added=added: projects.add(core, fleet, added),
        ):
            assert code_of(act) == "E-BUDGET", usd
    assert budgets.list_(core, fleet) == []
    assert [each.slug for each in projects.list_(core, fleet)] == ["shop", "web"]
    add_kim(core, fleet)
    users.add(core, fleet, UserRequest(email="kim2@example.org", name="Kim", role="viewer"))
    for code, *target in (
        ("E-BUDGET-KIND", "projct", "web"),
        ("E-PROJECT-404", "project", "wbe"),
        ("E-AGENT-404", "agent", "lead"),
        ("E-USER-AMBIGUOUS", "user", "Kim"),
        ("E-SESSION-404", "session", "ffff"),
    ):
        assert code_of(lambda of=target: set_budget(core, fleet, 1, *of)) == code


def test_what_a_used_up_budget_refuses_is_told_until_it_is_raised(core: Core, admin: Caller, run_id: str) -> None:
    """It is used up by what is reserved or spent, by lowering it, and by a call that it was too small for."""
    set_budget(core, admin, 1, per="total")
    reserve(core, run_id, 1.0)
    assert "$1.00" in str(shown(core, admin).refuses)
    for spent, state, refuses in (
        (0.7999, "ok", "$0.2001"),
        (0.8, "warning", "$0.20"),
        (1, "exhausted", "until the budget is raised"),
    ):
        spend(core, run_id, spent)
        budget = shown(core, admin)
        assert (budget.state, refuses in str(budget.refuses)) == (state, True)

    spend(core, run_id, 3)
    made = set_budget(core, admin, 2, zone="Europe/Berlin")
    assert (made.left_usd, made.state, made.percent) == (0, "exhausted", 150)
    assert "until 2026-11-22 00:00 Europe/Berlin" in str(made.refuses)
    assert set_budget(core, admin, 4).state == "ok"
    with core.database.write() as db:
        daily = select(Budget).where(Budget.per == "day")
        note_refusal(db, accounts_of(db, db.scalars(daily).all(), core.clock.now())[0], core.clock.now())
    assert shown(core, admin).state == "exhausted"
    assert set_budget(core, admin, 5).state == "ok"


def test_a_forecast_is_for_the_period_in_the_zone_of_the_budget(core: Core, admin: Caller, run_id: str) -> None:
    spend(core, run_id, 20.5)
    berlin = set_budget(core, admin, 50, zone="Europe/Berlin")
    assert berlin.period_begins_at == datetime(2026, 11, 20, 23, tzinfo=UTC)
    assert berlin.forecast_usd == pytest.approx(20.5 * 24 / 13)
    assert set_budget(core, admin, 100, per="month").forecast_usd == pytest.approx(30)
    later(core, hours=11, minutes=20)
    tomorrow = shown(core, admin)
    assert (tomorrow.spent_usd, tomorrow.forecast_usd) == (0, None)
    assert tomorrow.period_begins_at == berlin.period_ends_at


def test_a_budget_belongs_to_one_organization(core: Core, fleet: Caller) -> None:
    """That of an organization to its admins, and one of a user of two organizations to one of them."""
    payments = replace(add_organization(core, fleet), everywhere=False)
    set_budget(core, payments, 1, "organization", "payments")
    set_budget(core, fleet, 2, "organization", "payments", per="month")
    assert [each.limit_usd for each in budgets.list_(core, payments)] == [1, 2]
    budgets.remove(core, payments, "organization", "payments")

    make_project(core, payments)
    make_drone(core, payments, "berta")
    add_kim(core, fleet)
    kim = add_kim(core, payments)
    for caller, usd in ((fleet, 1), (payments, 2)):
        set_budget(core, caller, usd, "user", KIM)
    run_id = start_run(core, submit(core, kim).id)
    assert not reserve(core, run_id, 1.5).short
    spend(core, run_id, 1.5)
    assert [budgets.list_(core, each)[0].spent_usd for each in (fleet, payments)] == [0, 1.5]
    recount_young(core)
    assert [budgets.list_(core, each)[0].spent_usd for each in (fleet, payments)] == [0, 1.5]


def test_a_removed_budget_limits_nothing_and_can_be_set_anew(core: Core, admin: Caller, run_id: str) -> None:
    set_budget(core, admin, 1)
    set_budget(core, admin, 9, per="month")
    assert reserve(core, run_id, 5).short
    removed = budgets.remove(core, admin, "project", "web", per="day")
    assert [(each.per, each.limit_usd) for each in removed.budgets] == [("day", 1)]
    assert not reserve(core, run_id, 5).short
    assert [each.per for each in budgets.list_(core, admin)] == ["month"]
    assert code_of(lambda: budgets.remove(core, admin, "project", "web", per="day")) == "E-BUDGET-404"
    assert code_of(lambda: budgets.show(core, admin, "organization", "default")) == "E-BUDGET-404"
    assert budgets.remove(core, admin, "project", "web").budgets[0].per == "month"
    assert budgets.list_(core, admin) == []
    assert set_budget(core, admin, 1).reserved_usd == 5


def test_budgets_end_with_what_they_are_for(core: Core, fleet: Caller) -> None:
    add_agent(core, fleet, "lead")
    add_kim(core, fleet)
    for target in (("project", "web"), ("agent", "lead"), ("user", KIM), ("organization", "default")):
        set_budget(core, fleet, 1, *target)
    payments = add_organization(core, fleet)
    set_budget(core, payments, 1, "organization", "payments")
    projects.remove(core, fleet, "web")
    agents.remove(core, fleet, "lead")
    users.remove(core, fleet, KIM)
    assert [each.kind for each in budgets.list_(core, fleet)] == ["organization"]
    organizations.remove(core, fleet, "payments")
    with core.database.read() as db:
        assert sorted(each.kind for each in db.scalars(select(Budget)) if each.removed_at is None) == ["organization"]
        assert len(db.scalars(select(Budget)).all()) == len(db.scalars(select(BudgetPeriod)).all()) == 4


def test_a_projects_daily_budget_is_the_same_through_each_way_to_set_it(core: Core, admin: Caller) -> None:
    make_project(core, admin, budget_usd_day=2.5)
    assert (shown(core, admin).limit_usd, shown(core, admin).per) == (2.5, "day")
    projects.edit(core, admin, "web", ProjectEdit(budget_usd_day=4))
    assert shown(core, admin).limit_usd == 4
    set_budget(core, admin, 5)
    set_budget(core, admin, 50, per="month")
    assert projects.show(core, admin, "web").budget_usd_day == projects.list_(core, admin)[0].budget_usd_day == 5
    projects.edit(core, admin, "web", ProjectEdit(budget_usd_day=None))
    assert [each.per for each in budgets.list_(core, admin)] == ["month"]
    assert projects.show(core, admin, "web").budget_usd_day is None


def listed(core: Core, caller: Caller, **filters: Any) -> list[tuple[str | None, float, float, int]]:
    return [(each.name, each.spent_usd, each.reserved_usd, each.runs) for each in costs.list_(core, caller, **filters)]


def test_money_counts_on_the_local_day_on_which_it_was_reserved(core: Core, fleet: Caller, run_id: str) -> None:
    reserve(core, run_id, 0.5)
    later(core, hours=11, minutes=30)
    run(core, fleet, 0.25)
    later(core, days=2)
    reserve(core, run_id, 1.5, spent=0.5)
    spend_so_far(core, run_id, 0.75)
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
def test_costs_are_summed_by_name_the_highest_first_and_unknown_ones_are_counted(core: Core, fleet: Caller) -> None:
    kim = add_kim(core, fleet)
    agent = add_agent(core, fleet, "lead")
    run(core, fleet, 0.1)
    run(core, kim, 0.2, project="shop", agent=agent)
    for by, first, second in (("project", "shop", "web"), ("user", KIM, None), ("agent", "lead", None)):
        assert listed(core, fleet, by=by) == [(first, 0.2, 0, 1), (second, 0.1, 0, 1)]
    # To the last digit: as floating-point numbers they would be 0.30000000000000004.
    for by, name in (
        ("day", "2026-11-21"),
        ("model", "openai/scripted"),
        ("drone", "anna"),
        ("organization", "default"),
    ):
        assert listed(core, fleet, by=by) == [(name, 0.3, 0, 2)]
    assert organizations.show(core, fleet, "default").totals.cost_usd == pytest.approx(0.3)
    assert listed(core, add_organization(core, fleet), by="organization") == []
    users.remove(core, fleet, KIM)
    assert listed(core, fleet, by="user")[0][0] == "not a member"

    unknown = start_run(core, submit(core, fleet, project="shop").id)
    with core.database.write() as db:
        db.get_one(Run, unknown).cost_usd = None
    later(core, days=1)
    by_project = costs.list_(core, fleet, by="project")
    assert [(each.name, each.runs, each.unknown_costs) for each in by_project] == [("shop", 1, 1), ("web", 1, 0)]
    assert [(each.name, each.unknown_costs) for each in costs.list_(core, fleet)] == [("2026-11-21", 1)]
    assert costs.list_(core, fleet, since="2026-11-22") == []


def test_a_time_has_a_beginning_and_an_end_of_which_a_day_is_part(core: Core, fleet: Caller) -> None:
    for _ in range(3):
        run(core, fleet, 1)
        later(core, days=1)
    days = ["2026-11-21", "2026-11-22", "2026-11-23"]
    assert [day for day, *_ in listed(core, fleet)] == days
    assert [day for day, *_ in listed(core, fleet, since="2026-11-22", until="2026-11-22")] == days[1:2]
    assert listed(core, fleet, until="2026-11-22T12:00:00Z", by="project") == [("web", 1, 0, 1)]
    assert listed(core, fleet, since="2026-11-22T13:00:00+01:00", by="project") == [("web", 2, 0, 2)]
    assert listed(core, fleet, since="2026-11-21T12:00:01Z", until="2026-11-21") == []
    assert listed(core, fleet, since="2027-01-01") == listed(core, fleet, until="0001-01-02") == []


def test_a_time_or_zone_that_is_none_is_refused(core: Core, admin: Caller) -> None:
    bad: list[tuple[str, dict[str, str]]] = [
        ("E-TIME", {"since": "yesterday"}),
        ("E-TIME", {"since": "2026-02-30"}),
        ("E-TIME", {"until": "2026-11-01T12:00:00"}),
        ("E-TIME", {"until": "9999-12-31"}),
        ("E-TIME", {"since": "2026-11-02", "until": "2026-11-01"}),
        ("E-ZONE", {"zone": "../UTC"}),
    ]
    assert [(code_of(lambda given=given: costs.list_(core, admin, **given)), given) for _, given in bad] == bad
