"""Budgets and runs with money, for tests of the ledger."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import func, select

from control_plane.core import AuthenticatedDrone, Caller, Core
from control_plane.db.orders import Dispatch, Order
from control_plane.db.projects import Project
from control_plane.db.runs import Run
from control_plane.db.spending import Budget, BudgetPeriod, SpendingBlock
from control_plane.operations.runs.allowance import allow
from control_plane.orders.run_ends import RunEnding, close_run
from control_plane.spending.accounts import recount
from control_plane.spending.amounts import NANODOLLARS, dollars
from control_plane.spending.settlement import run_reported
from shared.budgets import Allowance, AllowanceRequest
from shared.names import new_id
from shared.states import RunStatus
from tests.support.made import make_drone, make_project, start_run, submit


@dataclass
class Money:
    """One project with a drone, whose runs spend."""

    core: Core
    admin: Caller
    drone: AuthenticatedDrone

    @classmethod
    def of(cls, core: Core, admin: Caller) -> Money:
        make_project(core, admin)
        return cls(core, admin, make_drone(core, admin, concurrency=64))

    def budget(self, usd: float, *, per: str = "total", zone: str = "UTC", kind: str = "project") -> str:
        """A budget of the project, or of what else the orders belong to; its id."""
        with self.core.database.write() as db:
            targets = {"project": db.scalar(select(Project.id)), "organization": self.admin.organization_id}
            budget = Budget(
                id=new_id(),
                organization_id=self.admin.organization_id,
                kind=kind,
                target_id=targets[kind],
                per=per,
                limit_nusd=round(usd * NANODOLLARS),
                zone=zone,
                created_at=self.core.clock.now(),
            )
            db.add(budget)
            db.flush()
            recount(db, budget, self.core.clock.now())
        return budget.id

    def lower(self, budget_id: str, usd: float) -> None:
        with self.core.database.write() as db:
            db.get_one(Budget, budget_id).limit_nusd = round(usd * NANODOLLARS)

    def run(self, **fields: object) -> str:
        return start_run(self.core, submit(self.core, self.admin, drone=self.drone.name).id, **fields)

    def ask(self, run_id: str, least: float, **more: object) -> Allowance:
        """What the run is granted; `least` and `wanted` are totals."""
        with self.core.database.read() as db:
            number = db.get_one(Dispatch, run_id).allowance_number + 1
        values = {"number": number, "model": "openai/x", "least": least, "wanted": least, **more}
        return allow(self.core, self.drone, run_id, AllowanceRequest.model_validate(values))

    def end(self, run_id: str, cost: float, to: RunStatus = RunStatus.SUCCESS) -> None:
        """The run reports its end, also after it was given up."""
        with self.core.database.write() as db:
            run, dispatch = db.get_one(Run, run_id), db.get_one(Dispatch, run_id)
            run.cost_usd = cost
            if run.status == RunStatus.RUNNING:
                close_run(db, self.core, dispatch, RunEnding(to, "stopped", ""))
            else:
                run_reported(db, self.core, dispatch, run)

    def lose(self, run_id: str, heard: float = 0.0) -> None:
        """The run is given up, after its events reported a cost."""
        with self.core.database.write() as db:
            db.get_one(Run, run_id).cost_usd = heard
            close_run(db, self.core, db.get_one(Dispatch, run_id), RunEnding(RunStatus.LOST, "lost", ""))

    def counted(self, budget_id: str) -> tuple[float, float]:
        """USD reserved and spent in the newest period of the budget."""
        with self.core.database.read() as db:
            rows = select(BudgetPeriod).where(BudgetPeriod.budget_id == budget_id)
            row = db.scalars(rows.order_by(BudgetPeriod.begins_at.desc())).first()
        return (dollars(row.reserved_nusd), dollars(row.spent_nusd)) if row else (0.0, 0.0)

    def in_blocks(self) -> tuple[float, float]:
        """USD reserved and spent in all blocks."""
        unspent = SpendingBlock.granted_nusd - SpendingBlock.spent_nusd
        with self.core.database.read() as db:
            reserved = db.scalar(select(func.sum(unspent)).where(SpendingBlock.closed_at.is_(None)))
            spent = db.scalar(select(func.sum(SpendingBlock.spent_nusd)))
        return dollars(reserved or 0), dollars(spent or 0)

    def of_runs(self) -> float:
        """USD that all runs have cost, with what is assumed of lost ones."""
        with self.core.database.read() as db:
            return float(db.scalar(select(func.sum(Run.cost_usd + Run.assumed_usd))) or 0.0)

    def assumed(self, run_id: str) -> float:
        with self.core.database.read() as db:
            return db.get_one(Run, run_id).assumed_usd

    def order_of(self, run_id: str) -> Order:
        with self.core.database.read() as db:
            return db.get_one(Order, db.get_one(Run, run_id).order_id)
