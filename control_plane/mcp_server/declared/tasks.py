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
    run_id: str = Field(max_length=64, description="The run's id, from list_runs or a task's timeline.")
    full: bool = Field(
        False, description="true: complete texts and outputs. Default: false, which cuts them to 500 characters."
    )


@TOOLS.declare("Show a task", READS)
def get_task(core: Core, caller: Caller, arguments: OfTask) -> TaskDocument:
    """Show a task with its timeline (comments and runs in chronological order), branch and cost. Status open with an
    agent as assignee: it is waiting for its run to start, and reason says why; in_progress: a run is active; open or
    failed with assignee `user`: it is your turn; done and canceled are final. To wait, call get_task every few seconds
    until the assignee is `user` or the task has ended. Then read the last comments, and call add_comment with an
    @name to continue, complete_task to close it, or retry_task if it failed."""
    return tasks.show(core, caller, arguments.task_id)


@TOOLS.declare("Show a run", READS)
def get_run(core: Core, caller: Caller, arguments: GetRun) -> TaskRunDetail:
    """Show a run with its steps: the agent's reasoning, messages, tool calls and their results, and the full text of
    errors. Use it to find out why a run failed."""
    run = runs.show_run(core, caller, arguments.run_id)
    return run if arguments.full else run.model_copy(update={"steps": [shortened(step) for step in run.steps]})
