"""Runs of agents on tasks."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from control_plane.contract.declarations.operation import READS, ByHand, Operation, Tool
from control_plane.contract.declarations.task_documents import RUN_ID, TASK_ID, TaskRunDetail, TaskRunDocument

RUNS = Operation(
    name="list_task_runs",
    role="viewer",
    route="GET /tasks/{task_id}/runs",
    names={"task_id": Annotated[str, Field(max_length=64), TASK_ID]},
    errors=(404,),
    answer=list[TaskRunDocument],
    summary="List the runs of a task, oldest first",
    tool=Tool(
        "list_runs",
        "List the runs of a task",
        READS,
        "List the runs of a task, oldest first: agent, status (running, success, failed, preempted, lost), reason, "
        "duration, tokens, cost, branch. get_run shows the steps of one.",
    ),
    command=ByHand("run ls", "its task is an option"),
)
SHOW_RUN = Operation(
    name="show_task_run",
    role="viewer",
    route="GET /task-runs/{run_id}",
    names={"run_id": Annotated[str, Field(max_length=64), RUN_ID]},
    errors=(404,),
    answer=TaskRunDetail,
    summary="Show a run with all its steps",
    tool=ByHand("get_run", "its answer is shortened for a model, unless `full` is set"),
    command=ByHand("run show", "it renders steps, in full or shortened"),
)
