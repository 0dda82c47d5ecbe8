"""What has to be true of money after a campaign: runs, blocks, budgets and lists agree, and nothing is reserved."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import get_args

from sqlalchemy import select

from control_plane.contract.declarations import costs
from control_plane.contract.declarations.costs import By, CostFilter
from control_plane.db.runs import Run
from control_plane.db.spending import Budget, BudgetPeriod, SpendingBlock
from shared.amounts import dollars
from shared.states import RunStatus
from tests.chaos.fleet_under_load import FleetUnderLoad

CENT = 0.005
"""USD. What two sums may differ by."""
GROUPS: tuple[By, ...] = get_args(By)


def wrong_money(fleet: FleetUnderLoad) -> Iterator[str]:
    """One line for each run and each budget whose figures do not agree."""
    with fleet.database.read() as db:
        runs = list(db.scalars(select(Run)))
        blocks: dict[str, list[SpendingBlock]] = defaultdict(list)
        for block in db.scalars(select(SpendingBlock)):
            blocks[block.run_id].append(block)
        periods = db.execute(select(Budget, BudgetPeriod).join(BudgetPeriod, BudgetPeriod.budget_id == Budget.id)).all()
    for run in runs:
        yield from _wrong_run(run, blocks[run.id])
    of_runs = sum((run.cost_usd or 0.0) + run.assumed_usd for run in runs)
    if not of_runs:
        yield "no run has cost anything"
    yield from _wrong_lists(fleet, of_runs)
    for budget, period in periods:
        if period.reserved_nusd:
            yield f"budget {budget.id}: ${dollars(period.reserved_nusd):.6f} are still reserved"
        if abs(dollars(period.spent_nusd) - of_runs) > CENT:
            yield f"budget {budget.id}: ${dollars(period.spent_nusd):.6f} spent, by the runs ${of_runs:.6f}"
        if period.spent_nusd > budget.limit_nusd:
            yield f"budget {budget.id}: more is spent than it allows"


def _wrong_run(run: Run, blocks: list[SpendingBlock]) -> Iterator[str]:
    spent = dollars(sum(block.spent_nusd for block in blocks))
    if run.cost_usd is None:
        yield f"run {run.id}: its cost is unknown"
    elif abs(spent - run.cost_usd - run.assumed_usd) > CENT:
        yield f"run {run.id}: ${spent:.6f} in blocks, ${run.cost_usd:.6f} and assumed ${run.assumed_usd:.6f} in its row"
    if run.status != RunStatus.RUNNING and any(block.closed_at is None for block in blocks):
        yield f"run {run.id}: it has ended, and still holds a reservation"


def _wrong_lists(fleet: FleetUnderLoad, of_runs: float) -> Iterator[str]:
    with fleet.client() as client:
        sums = {by: sum(line["spent_usd"] for line in client.call(costs.LIST, CostFilter(by=by))) for by in GROUPS}
    for by, total in sums.items():
        if abs(total - of_runs) > CENT:
            yield f"`fleet cost --by {by}`: ${total:.6f}, by the runs ${of_runs:.6f}"
