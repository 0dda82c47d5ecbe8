"""Hand-written tools for tasks: a thread, and a run whose steps are cut for a model."""

from __future__ import annotations

from pydantic import Field

from control_plane.core import Caller, Core
from control_plane.declarations.operation import READS
from control_plane.declarations.task_documents import TaskDocument, TaskRunDetail
from control_plane.mcp_server.shortening import shortened
from control_plane.mcp_server.tools import InOrganization, ServedTools
from control_plane.operations import tasks
from control_plane.operations.tasks import runs

TOOLS = ServedTools()


class OfTask(InOrganization):
    task_id: str = Field(max_length=64, description="The task's id, such as PAYM-0001; list_tasks has them.")


class GetRun(InOrganization):
    run_id: str = Field(max_length=64, description="The run's id; list_runs and a task's timeline have them.")
    full: bool = Field(False, description="true: whole texts and outputs. Without it they are cut to 500 characters.")


@TOOLS.declare("Show a task", READS)
def get_task(core: Core, caller: Caller, arguments: OfTask) -> TaskDocument:
    """A task with its timeline (comments and runs in order of time), branch, cost. Status open with an agent as
    assignee: it waits for its run to begin, and reason says for what; in_progress: a run is going on; open or failed
    with assignee `user`: it is your turn; done and canceled are ends. To wait, call again every few seconds until the
    assignee is `user` or the task has ended. Then read the last comments, and call add_comment with an @name to go on,
    complete_task to end it, or retry_task if it failed."""
    return tasks.show(core, caller, arguments.task_id)


@TOOLS.declare("Show a run", READS)
def get_run(core: Core, caller: Caller, arguments: GetRun) -> TaskRunDetail:
    """A run with its steps: what the agent thought, said and called, and what came of it; also the full text of an
    error. For finding out why a run failed."""
    run = runs.show_run(core, caller, arguments.run_id)
    return run if arguments.full else run.model_copy(update={"steps": [shortened(step) for step in run.steps]})
