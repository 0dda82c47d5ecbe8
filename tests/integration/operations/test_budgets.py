"""Budgets as people set and read them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import select, update

from control_plane.core import Caller, Core
from control_plane.db.orders import Order
from control_plane.db.projects import Project
from control_plane.db.spending import Budget, BudgetPeriod
from control_plane.declarations.budgets import BudgetDocument, BudgetRequest
from control_plane.declarations.projects import ProjectEdit, ProjectRequest
from control_plane.declarations.users import UserRequest
from control_plane.operations import agents, budgets, organizations, projects
from control_plane.operations.access import users
from control_plane.spending.accounts import accounts_of, note_refusal
from control_plane.spending.setting import recount_young
from shared.errors import Refused
from tests.support.made import later, make_drone, make_project, start_run, submit
from tests.support.organizations import add_organization
from tests.support.refusals import code_of
from tests.support.spending import reserve, spend
from tests.support.team_rows import add_agent


@pytest.fixture
def run_id(core: Core, admin: Caller) -> str:
    """A run on project `web` that has spent nothing yet, at noon UTC of 21 November."""
    make_project(core, admin)
    make_drone(core, admin)
    return start_run(core, submit(core, admin).id)


def set_budget(core: Core, caller: Caller, usd: float, *of: str, per: str = "day", **more: Any) -> BudgetDocument:
    kind, name = of or ("project", "web")
    return budgets.set_(core, caller, kind, name, BudgetRequest(usd=usd, per=per, **more))


def shown(core: Core, caller: Caller, *of: str) -> BudgetDocument:
    return budgets.show(core, caller, *(of or ("project", "web"))).budgets[0]


def refused(core: Core, caller: Caller, *values: Any, **more: Any) -> Refused:
    with pytest.raises(Refused) as refusal:
        set_budget(core, caller, *values, **more)
    return refusal.value


# --- setting ---------------------------------------------------------------------------------


def test_a_budget_counts_what_was_already_spent_and_reserved_in_its_period(
    core: Core, admin: Caller, run_id: str
) -> None:
    reserve(core, run_id, 1.0)
    spend(core, run_id, 0.25, final=False)
    made = set_budget(core, admin, 2)
    assert (made.limit_usd, made.spent_usd, made.reserved_usd, made.left_usd) == (2, 0.25, 0.75, 1)
    assert (made.kind, made.name, made.per, made.zone, made.set_by) == ("project", "web", "day", "UTC", "system")
    assert (made.percent, made.state, made.forecast_usd) == (12.5, "ok", 0.5)
    assert made.refuses == "model calls that may cost more than $1.00"
    assert made == shown(core, admin) == budgets.list_(core, admin)[0]


@pytest.mark.dialects
def test_each_kind_of_budget_counts_the_runs_of_its_target(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    make_drone(core, admin)
    kim = users.add(core, admin, UserRequest(email="kim@example.org", name="Kim Lee", role="admin"))
    own = replace(admin, user_id=kim.id, user="Kim Lee", everywhere=False)
    order = submit(core, own)
    agent = add_agent(core, admin, "lead")
    run = start_run(core, order.id)
    with core.database.write() as db:
        db.execute(update(Order).where(Order.id == order.id).values(agent_id=agent))
    names = {"project": "web", "agent": "lead", "user": "Kim Lee", "organization": "default", "session": order.session}
    made = {kind: set_budget(core, own, 1, kind, name[:8], per="total") for kind, name in names.items()}
    spend(core, run, 0.25)
    assert {kind: shown(core, own, kind, name).spent_usd for kind, name in names.items()} == dict.fromkeys(names, 0.25)
    assert {kind: each.name for kind, each in made.items()} == {**names, "user": "kim@example.org"}
    assert {(each.per, each.period_ends_at, each.forecast_usd) for each in made.values()} == {("total", None, None)}


@pytest.mark.dialects
def test_setting_again_also_at_once_replaces_the_amount_and_other_periods_stay(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda usd: set_budget(core, admin, usd, zone="Europe/Berlin"), [1, 2, 3, 4]))
    (first,) = budgets.list_(core, admin)
    assert first.limit_usd in {1, 2, 3, 4}
    set_budget(core, admin, 50, per="month")
    second = set_budget(core, admin, 5)
    assert (second.id, second.limit_usd, second.zone) == (first.id, 5, "Europe/Berlin")
    found = [(each.per, each.limit_usd) for each in budgets.show(core, admin, "project", "web").budgets]
    assert found == [("day", 5), ("month", 50)]


def test_an_amount_that_nobody_can_spend_is_refused_alike_for_each_way_to_set_it(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    for usd in (0, 1e-12, -1, 1_000_000.01):
        added = ProjectRequest(slug="shop", git_url="https://h/r.git", budget_usd_day=usd)
        for act in (
            lambda usd=usd: set_budget(core, admin, usd),
            lambda usd=usd: projects.edit(core, admin, "web", ProjectEdit(budget_usd_day=usd)),
            lambda added=added: projects.add(core, admin, added),
        ):
            assert code_of(act) == "E-BUDGET", usd
    assert budgets.list_(core, admin) == []
    assert [each.slug for each in projects.list_(core, admin)] == ["web"]
    ways = refused(core, admin, 0).next
    assert ("fleet budget rm" in ways, "fleet organization pause" in ways) == (True, True)


def test_what_does_not_exist_is_answered_with_what_is_near(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    for number in range(2):
        users.add(core, admin, UserRequest(email=f"kim{number}@example.org", name="Kim", role="viewer"))
    assert "project" in refused(core, admin, 1, "projct", "web").next
    assert "web" in refused(core, admin, 1, "project", "wbe").next
    assert "Europe/Berlin" in refused(core, admin, 1, zone="Europe/Berln").next
    assert refused(core, admin, 1, "agent", "lead").code == "E-AGENT-404"
    assert refused(core, admin, 1, "user", "jo").code == "E-USER-404"
    assert refused(core, admin, 1, "session", "ffff").code == "E-SESSION-404"
    ambiguous = refused(core, admin, 1, "user", "Kim")
    assert (ambiguous.code, "kim0@example.org, kim1@example.org" in ambiguous.next) == ("E-USER-AMBIGUOUS", True)


# --- reading ---------------------------------------------------------------------------------


def test_a_budget_is_exhausted_that_was_lowered_below_what_is_spent_or_lacked_a_call_until_it_is_raised(
    core: Core, admin: Caller, run_id: str
) -> None:
    spend(core, run_id, 3)
    made = set_budget(core, admin, 2, zone="Europe/Berlin")
    assert (made.left_usd, made.state, made.percent) == (0, "exhausted", 150)
    assert "until 2026-11-22 00:00 Europe/Berlin" in str(made.refuses)
    assert "$3.00 of $2.00" in str(made.refuses)
    assert set_budget(core, admin, 4).state == "ok"
    with core.database.write() as db:
        account = accounts_of(db, db.scalars(select(Budget)).all(), core.clock.now())[0]
        note_refusal(db, account, core.clock.now())
    assert shown(core, admin).state == "exhausted"
    assert set_budget(core, admin, 5).state == "ok"


def test_what_is_refused_is_told_for_each_way_in_which_a_budget_can_be_used_up(
    core: Core, admin: Caller, run_id: str
) -> None:
    set_budget(core, admin, 1, per="total")
    reserve(core, run_id, 1.0)
    assert "every further model call until runs return a part of the reserved $1.00" in str(shown(core, admin).refuses)
    found = {}
    for spent in (0.7999, 0.8, 1):
        spend(core, run_id, spent)
        budget = shown(core, admin)
        found[spent] = budget.state, str(budget.refuses)
    assert [state for state, _ in found.values()] == ["ok", "warning", "exhausted"]
    assert "$0.2001" in found[0.7999][1]
    assert "until the budget is raised" in found[1][1]


def test_periods_begin_in_the_zone_of_the_budget_and_the_forecast_waits_for_the_first_half_hour(
    core: Core, admin: Caller, run_id: str
) -> None:
    spend(core, run_id, 20.5)
    berlin = set_budget(core, admin, 50, zone="Europe/Berlin")
    assert berlin.period_begins_at == datetime(2026, 11, 20, 23, tzinfo=UTC)
    assert berlin.period_ends_at == datetime(2026, 11, 21, 23, tzinfo=UTC)
    assert berlin.forecast_usd == pytest.approx(20.5 * 24 / 13)
    assert set_budget(core, admin, 100, per="month").forecast_usd == pytest.approx(30)
    later(core, hours=11, minutes=20)
    tomorrow = shown(core, admin)
    assert (tomorrow.spent_usd, tomorrow.forecast_usd) == (0, None)
    assert tomorrow.period_begins_at == berlin.period_ends_at


# --- who may ---------------------------------------------------------------------------------


def test_the_budget_of_an_organization_belongs_to_its_admins(core: Core, admin: Caller) -> None:
    payments = replace(add_organization(core, admin), everywhere=False)
    assert refused(core, payments, 1, "organization", "default").code == "E-ORGANIZATION-404"
    set_budget(core, payments, 1, "organization", "payments")
    set_budget(core, admin, 2, "organization", "payments", per="month")
    assert [each.limit_usd for each in budgets.list_(core, payments)] == [1, 2]
    assert budgets.list_(core, admin) == []


def test_each_organization_has_its_own_budget_for_a_user_of_both(core: Core, admin: Caller) -> None:
    payments = add_organization(core, admin)
    request = UserRequest(email="kim@example.org", name="Kim", role="operator")
    kim, _ = (users.add(core, each, request) for each in (admin, payments))
    for caller in (admin, payments):
        make_project(core, caller)
        make_drone(core, caller, f"drone-{caller.organization}".replace("_", "-"))
    set_budget(core, admin, 1, "user", "kim@example.org")
    set_budget(core, payments, 2, "user", "kim@example.org")
    run = start_run(core, submit(core, replace(payments, user_id=kim.id, user="Kim")).id)
    assert not reserve(core, run, 1.5).short
    spend(core, run, 1.5)
    assert [budgets.list_(core, each)[0].spent_usd for each in (admin, payments)] == [0, 1.5]
    recount_young(core)
    assert [budgets.list_(core, each)[0].spent_usd for each in (admin, payments)] == [0, 1.5]


# --- removing --------------------------------------------------------------------------------


def test_a_removed_budget_limits_nothing_and_can_be_set_anew(core: Core, admin: Caller, run_id: str) -> None:
    set_budget(core, admin, 1)
    set_budget(core, admin, 9, per="month")
    assert reserve(core, run_id, 5).short
    removed = budgets.remove(core, admin, "project", "web", per="day")
    assert [(each.per, each.limit_usd) for each in removed.budgets] == [("day", 1)]
    assert not reserve(core, run_id, 5).short
    assert [each.per for each in budgets.list_(core, admin)] == ["month"]
    for missing in (
        lambda: budgets.remove(core, admin, "project", "web", per="day"),
        lambda: budgets.remove(core, admin, "organization", "default"),
        lambda: budgets.show(core, admin, "organization", "default"),
    ):
        assert code_of(missing) == "E-BUDGET-404"
    assert budgets.remove(core, admin, "project", "web").budgets[0].per == "month"
    assert budgets.list_(core, admin) == []
    assert set_budget(core, admin, 1).reserved_usd == 5


def test_budgets_end_with_what_they_are_for(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    add_agent(core, admin, "lead")
    users.add(core, admin, UserRequest(email="kim@example.org", name="Kim", role="viewer"))
    for target in (("project", "web"), ("agent", "lead"), ("user", "kim@example.org"), ("organization", "default")):
        set_budget(core, admin, 1, *target)
    payments = add_organization(core, admin)
    set_budget(core, payments, 1, "organization", "payments")
    projects.remove(core, admin, "web")
    agents.remove(core, admin, "lead")
    users.remove(core, admin, "kim@example.org")
    assert [each.kind for each in budgets.list_(core, admin)] == ["organization"]
    organizations.remove(core, admin, "payments")
    with core.database.read() as db:
        assert sorted(each.kind for each in db.scalars(select(Budget)) if each.removed_at is None) == ["organization"]
        assert len(db.scalars(select(Budget)).all()) == len(db.scalars(select(BudgetPeriod)).all()) == 4


# --- a project's own ---------------------------------------------------------------------------


def test_a_projects_daily_budget_is_the_same_through_each_way_to_set_it(core: Core, admin: Caller) -> None:
    make_project(core, admin, budget_usd_day=2.5)
    assert (shown(core, admin).limit_usd, shown(core, admin).per) == (2.5, "day")
    projects.edit(core, admin, "web", ProjectEdit(budget_usd_day=4))
    assert (shown(core, admin).limit_usd, copies(core)) == (4, [4])
    set_budget(core, admin, 5)
    set_budget(core, admin, 50, per="month")
    assert (projects.show(core, admin, "web").budget_usd_day, copies(core)) == (5, [5])
    assert projects.list_(core, admin)[0].budget_usd_day == 5
    projects.edit(core, admin, "web", ProjectEdit(budget_usd_day=None))
    assert ([each.per for each in budgets.list_(core, admin)], copies(core)) == (["month"], [None])
    assert projects.show(core, admin, "web").budget_usd_day is None


def copies(core: Core) -> list[float | None]:
    """The copies for the previous version."""
    with core.database.read() as db:
        return list(db.scalars(select(Project.budget_usd_day)))


# --- what was missed -------------------------------------------------------------------------


def test_what_a_young_budget_missed_is_counted_within_ten_minutes_and_not_after(
    core: Core, admin: Caller, run_id: str
) -> None:
    spend(core, run_id, 0.5)
    set_budget(core, admin, 1)
    forget(core)
    recount_young(core)
    assert shown(core, admin).spent_usd == 0.5
    forget(core)
    later(core, minutes=10)
    recount_young(core)
    assert shown(core, admin).spent_usd == 0


def forget(core: Core) -> None:
    """Sums as if the transaction that spent had not seen the budget."""
    with core.database.write() as db:
        db.execute(update(BudgetPeriod).values(spent_nusd=0))
