"""Runs of agents on tasks."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path

from control_plane.documents.tasks import TaskRunDetail, TaskRunDocument
from control_plane.operations.tasks import runs
from control_plane.web.access import CallerDep, CoreDep
from control_plane.web.openapi import errors

router = APIRouter(prefix="", tags=["tasks"])


@router.get("/tasks/{task_id}/runs", summary="The runs on a task, oldest first", responses=errors(401, 404))
def list_task_runs(
    core: CoreDep, caller: CallerDep, task_id: Annotated[str, Path(description="The task's id.", max_length=64)]
) -> list[TaskRunDocument]:
    return runs.of_task(core, caller, task_id)


@router.get("/task-runs/{run_id}", summary="A run with all its steps", responses=errors(401, 404))
def show_task_run(
    core: CoreDep, caller: CallerDep, run_id: Annotated[str, Path(description="The run's id.", max_length=64)]
) -> TaskRunDetail:
    return runs.show_run(core, caller, run_id)
