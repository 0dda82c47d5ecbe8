"""People are told once per period that little is left of a budget, and once that it is used up."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select, update

from control_plane.automation.budget_notices import warn
from control_plane.contract.declarations.budgets import BudgetRequest
from control_plane.contract.declarations.webhooks import WebhookRequest
from control_plane.core import Caller, Core
from control_plane.db.automation import WebhookDelivery
from control_plane.db.orders import Dispatch
from control_plane.db.spending import Budget, BudgetPeriod
from control_plane.money.spending.accounts import accounts_of, note_refusal
from control_plane.operations import budgets, projects
from control_plane.operations.automation import webhooks
from control_plane.operations.doctor import doctor
from control_plane.operations.status import status
from tests.support.made import later, make_drone, make_project, start_run, submit
from tests.support.planes import Plane
from tests.support.spending import reserve, spend, spend_so_far


@pytest.fixture
def run_id(core: Core, admin: Caller) -> str:
    """A run on project `web`, whose budget is 10 USD a day; a webhook receives what is told."""
    make_project(core, admin)
    make_drone(core, admin)
    set_budget(core, admin, 10)
    webhooks.create(core, admin, WebhookRequest(name="chat", url="https://hooks.example/in"))
    return start_run(core, submit(core, admin).id)


def set_budget(core: Core, caller: Caller, usd: float) -> None:
    budgets.set_(core, caller, "project", "web", BudgetRequest(usd=usd, per="day"))


def told(core: Core) -> list[tuple[str, dict[str, Any]]]:
    """What the webhook receives after a round of the supervisor, oldest first."""
    warn(core)
    with core.database.read() as db:
        rows = db.scalars(select(WebhookDelivery).where(WebhookDelivery.event.startswith("budget.")))
        return sorted(((row.event, row.data) for row in rows), key=lambda each: each[1]["spent_usd"])


def events(core: Core) -> list[str]:
    return [event for event, _ in told(core)]


@pytest.mark.dialects
def test_people_are_warned_once_at_80_percent_of_what_is_spent_not_reserved(core: Core, run_id: str) -> None:
    reserve(core, run_id, 9)
    spend_so_far(core, run_id, 7.99)
    assert told(core) == []
    spend_so_far(core, run_id, 8)
    [(event, data)] = told(core)
    assert event == "budget.warning"
    assert {name: data[name] for name in data if name not in {"refuses", "period_ends_at"}} == {
        **{"kind": "project", "name": "web", "per": "day", "limit_usd": 10, "spent_usd": 8, "reserved_usd": 1},
        **{"left_usd": 1, "percent": 80, "forecast_usd": 16},
    }
    assert (len(told(core)), data["period_ends_at"]) == (1, "2026-11-22T00:00:00+00:00")
    spend(core, run_id, 10)
    assert [sorted(events(core)) for _ in range(2)] == [["budget.exhausted", "budget.warning"]] * 2


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_amounts_of_any_size_are_compared(core: Core, run_id: str) -> None:
    assert run_id
    with core.database.write() as db:
        db.execute(update(Budget).values(limit_nusd=2**62))
        db.execute(update(BudgetPeriod).values(spent_nusd=2**62 - 1))
    assert events(core) == ["budget.warning"]


def test_a_refused_call_uses_a_budget_up_and_the_next_period_and_a_new_limit_are_warned_of_again(
    core: Core, admin: Caller, run_id: str
) -> None:
    reserve(core, run_id, 8)
    spend(core, run_id, 8)
    assert events(core) == ["budget.warning"]
    with core.database.write() as db:
        account = accounts_of(db, db.scalars(select(Budget)).all(), core.clock.now())[0]
        note_refusal(db, account, core.clock.now())
    assert sorted(events(core)) == ["budget.exhausted", "budget.warning"]
    set_budget(core, admin, 9)
    assert events(core).count("budget.warning") == 2
    later(core, days=1)
    assert events(core).count("budget.warning") == 2
    reserve(core, run_id, 16, spent=8)
    spend(core, run_id, 16)
    assert events(core).count("budget.warning") == 3


def test_status_and_doctor_name_the_budgets_of_which_little_is_left(core: Core, admin: Caller, run_id: str) -> None:
    def checked() -> str:
        return next(str(check["state"]) for check in doctor(core, admin) if check["code"] == "D-BUDGETS").upper()

    assert (status(core, admin).budgets, checked()) == ([], "OK")
    spend(core, run_id, 8)
    assert [(each.name, each.state) for each in status(core, admin).budgets] == [("web", "warning")]
    assert checked() == "WARN"
    budgets.remove(core, admin, "project", "web")
    assert (status(core, admin).budgets, events(core)) == ([], [])


def test_the_supervisor_warns_and_counts_what_a_young_budget_missed(plane: Plane) -> None:
    plane.supervisor(recount_every=0.1)
    plane.drone()
    plane.submit()
    plane.until(lambda: plane.rows(Dispatch))
    project = projects.list_(plane.core, plane.admin)[0].slug
    budgets.set_(plane.core, plane.admin, "project", project, BudgetRequest(usd=10, per="total"))
    spend(plane.core, plane.rows(Dispatch)[0].id, 8)
    plane.until(lambda: plane.rows(BudgetPeriod)[0].warned_at)
    with plane.core.database.write() as db:
        db.execute(update(BudgetPeriod).values(spent_nusd=0))
    plane.until(lambda: plane.rows(BudgetPeriod)[0].spent_nusd == 8_000_000_000)
