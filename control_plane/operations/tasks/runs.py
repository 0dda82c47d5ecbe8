"""Runs of agents on tasks: as lines of the timeline, and one run in full with its steps (S-026, S-030 to S-032)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Select, select
from sqlalchemy.orm import Session, load_only

from control_plane.contract.declarations import task_runs as declared
from control_plane.contract.declarations.task_documents import TaskRunDetail, TaskRunDocument
from control_plane.contract.validation.checks import shown
from control_plane.core import Caller, Core
from control_plane.core.lookups.tasks import find_task
from control_plane.db.drones import Drone
from control_plane.db.orders import Order
from control_plane.db.runs import Run, Step
from control_plane.db.teams import Agent
from control_plane.operations.gateway import performs
from control_plane.operations.orders import progress
from control_plane.operations.row_documents import step_document
from control_plane.teams.system_notes import sanitized
from shared.errors import NotFound
from shared.outcome import ExitStatus
from shared.states import RunStatus

Row = tuple[Run, Order, str | None, str | None]


@performs(declared.RUNS)
def of_task(core: Core, caller: Caller, task_id: str) -> list[TaskRunDocument]:
    """The runs on a task, oldest first. Raises NotFound for the task."""
    with core.database.read() as db:
        return runs_on(db, find_task(db, caller, task_id).id, core.clock.now())


@performs(declared.SHOW_RUN)
def show_run(core: Core, caller: Caller, run_id: str) -> TaskRunDetail:
    """A run with all its steps; its order need not belong to a task. Raises NotFound."""
    with core.database.read() as db:
        row = db.execute(_runs().where(Run.id == run_id, Run.organization_id == caller.organization_id)).one_or_none()
        if row is None:
            raise NotFound(f"run {shown(run_id)} not found", code="E-RUN-404", next="fleet run ls --task TASK")
        steps = db.scalars(select(Step).where(Step.run_id == run_id).order_by(Step.run_seq)).all()
        document = run_document(*row, now=core.clock.now())
    numbered = [{"number": number, **step_document(step).model_dump()} for number, step in enumerate(steps, start=1)]
    # A single run shows the full text from the provider (S-084).
    return TaskRunDetail(**{**dict(document), "reason": row[0].reason}, steps=numbered)


def runs_on(db: Session, task_id: str, now: datetime) -> list[TaskRunDocument]:
    """The documents of all runs on a task, in the order of their start."""
    rows: Sequence[Row] = db.execute(_runs().where(Run.task_id == task_id).order_by(Run.started_at, Run.id)).all()
    return [run_document(*row, now=now) for row in rows]


def run_document(run: Run, order: Order, drone: str | None, agent: str | None, *, now: datetime) -> TaskRunDocument:
    """The document of a run; it has branch and commit if its order delivered the work of this run."""
    delivered = order.result_run_id == run.id
    return TaskRunDocument(
        run_id=run.id,
        order=order.id,
        task=run.task_id,
        agent=agent,
        status=run.status,
        exit_status=run.exit_status,
        reason=sanitized(run.reason) if run.exit_status == ExitStatus.MODEL_ERROR else run.reason,
        drone=drone,
        model=order.model,
        attempt=run.attempt,
        duration_seconds=(run.ended_at - run.started_at).total_seconds() if run.ended_at else None,
        input_tokens=run.input_tokens,
        output_tokens=run.output_tokens,
        tool_calls=run.tool_calls,
        cost_usd=run.shown_cost_usd,
        started_at=run.started_at,
        ended_at=run.ended_at,
        doing=progress.of_run(run, now) if run.status == RunStatus.RUNNING else "",
        branch=order.branch if delivered else None,
        head_commit=order.head_commit if delivered else None,
    )


def _runs() -> Select[Run, Order, str | None, str | None]:
    return (
        select(Run, Order, Drone.name, Agent.name)
        # Not the prompt: each contains a whole briefing.
        .options(load_only(Order.model, Order.result_run_id, Order.branch, Order.head_commit))
        .join(Order, Order.id == Run.order_id)
        .outerjoin(Drone, Drone.id == Run.drone_id)
        .outerjoin(Agent, Agent.id == Run.agent_id)
    )
