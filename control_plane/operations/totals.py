"""Total cost of runs. Runs are the only unit of cost; totals are computed on demand (S-034).

The index `ix_runs_totals` covers all summed columns, so no run row is read.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from control_plane.contract.documents.totals import Totals
from control_plane.db.runs import Run

NOTHING = Totals(runs=0, input_tokens=0, output_tokens=0, cost_usd=0.0, unknown_costs=0, duration_ms=0)
_SUMS = (
    func.count(),
    func.count(Run.cost_usd),
    func.sum(Run.cost_usd + Run.assumed_usd),
    func.sum(Run.input_tokens),
    func.sum(Run.output_tokens),
    func.sum(Run.duration_ms),
)


def of_tasks(db: Session, task_ids: Collection[str]) -> dict[str, Totals]:
    """The totals per task, in one query; every task has an entry."""
    summed = select(Run.task_id, *_SUMS).where(Run.task_id.in_(task_ids)).group_by(Run.task_id)
    found = {task_id: _totals(*sums) for task_id, *sums in db.execute(summed)} if task_ids else {}
    return {task_id: found.get(task_id, NOTHING) for task_id in task_ids}


def of_agent(db: Session, organization_id: str, agent_id: str) -> Totals:
    """The totals of all runs of an agent, on any task. A removed agent keeps its runs (S-013)."""
    return _of(db, Run.organization_id == organization_id, Run.agent_id == agent_id)


def of_organization(db: Session, organization_id: str) -> Totals:
    """The totals of all runs of an organization, including those of plain orders."""
    return _of(db, Run.organization_id == organization_id)


def _of(db: Session, *which: ColumnElement[bool]) -> Totals:
    return _totals(*db.execute(select(*_SUMS).where(*which)).one())


def _totals(*sums: Any) -> Totals:
    runs, known, cost, given, answered, took = sums
    return Totals(
        runs=runs,
        input_tokens=int(given or 0),
        output_tokens=int(answered or 0),
        cost_usd=float(cost) if known else None if runs else 0.0,
        unknown_costs=runs - known,
        duration_ms=int(took or 0),
    )
