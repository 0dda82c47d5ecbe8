"""Tools for tasks, their comments and their runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from control_plane.core import Caller, Core
from control_plane.declarations.operation import ADDS_WORK, ENDS, READS, SETS, SETS_WORK
from control_plane.documents.tasks import (
    AssignRequest,
    CommentDocument,
    CommentRequest,
    TaskCancelRequest,
    TaskDocument,
    TaskRequest,
    TaskRetryRequest,
    TaskRunDetail,
    TaskRunDocument,
    TaskSummary,
)
from control_plane.mcp_server.declared.orders import LIMITS
from control_plane.mcp_server.shortening import shortened
from control_plane.mcp_server.tools import InOrganization, Toolbox, request_of
from control_plane.operations import tasks
from control_plane.operations.tasks import runs
from shared.states import TaskStatus

TOOLS = Toolbox()
MAX_LISTED = 1000
ASSIGNEE = "Name of an agent (list_agents has them), or `user` for people."


class OfTask(InOrganization):
    task_id: str = Field(max_length=64, description="The task's id, such as PAYM-0001; list_tasks has them.")


class TaskFilter(InOrganization):
    status: TaskStatus | None = Field(None, description="Only tasks in this state. Default: all.")
    assignee: str | None = Field(None, description=f"Only tasks that are with them: {ASSIGNEE} Default: all.")
    project: str | None = Field(None, description="Only tasks of this project (slug). Default: all.")
    limit: int = Field(20, ge=1, le=MAX_LISTED, description="At most so many, the newest first.")


class CreateTask(InOrganization, TaskRequest):
    about: ClassVar[Mapping[str, str]] = {
        **LIMITS,
        "title": "What is to be done, in one line.",
        "description": "What is to be done, complete, with all that the agents have to know; they see this, the "
        "comments and the repository, and nothing of your conversation. Default: the title.",
        "project": "Slug of the project whose repository is worked on; list_projects has them. Default: the "
        "organization's, else its only one.",
        "assignee": f"Who begins: {ASSIGNEE} Default: the first agent by name without a boss.",
        "mode": "Which tools the agents have: plan (reads only), build, test, ship or develop. Default: build.",
        "priority": "-100 to 100; of tasks that wait, a higher number begins first. Default: 0.",
        "max_iterations": "At most so many rounds of the model in each run; 0: no limit. Default: the agent's.",
        "cost_limit": "At most so many USD in each run; 0: no limit. Default: the agent's.",
    }


class AddComment(OfTask, CommentRequest):
    about: ClassVar[Mapping[str, str]] = {
        "text": "What the agents are to read, plain text or Markdown. The last @name of an agent in it gives the task "
        "to that agent, which begins a run; @user keeps it with people; without a tag it is only recorded. Tags in "
        "code and in e-mail addresses do not count.",
    }


class AssignTask(OfTask, AssignRequest):
    about: ClassVar[Mapping[str, str]] = {"assignee": ASSIGNEE}


class RetryTask(OfTask, TaskRetryRequest):
    about: ClassVar[Mapping[str, str]] = {
        "assignee": "Name of the agent that tries; list_agents has them. Default: the agent of the latest run.",
    }


class CancelTask(OfTask, TaskCancelRequest):
    about: ClassVar[Mapping[str, str]] = {"reason": "Why, in one sentence; it stands in the thread."}


class GetRun(InOrganization):
    run_id: str = Field(max_length=64, description="The run's id; list_runs and a task's timeline have them.")
    full: bool = Field(False, description="true: whole texts and outputs. Without it they are cut to 500 characters.")


@TOOLS.declare("List tasks", READS)
def list_tasks(core: Core, caller: Caller, arguments: TaskFilter) -> list[TaskSummary]:
    """The tasks of the organization, without their timelines: status, assignee, why each waits or what its run does
    (reason), cost. With assignee `user` these are the ones that wait for people."""
    a = arguments
    return tasks.list_(core, caller, a.status, a.assignee, a.project, a.limit)


@TOOLS.declare("Show a task", READS)
def get_task(core: Core, caller: Caller, arguments: OfTask) -> TaskDocument:
    """A task with its timeline (comments and runs in order of time), branch, cost. Status open with an agent as
    assignee: it waits for its run to begin, and reason says for what; in_progress: a run is going on; open or failed
    with assignee `user`: it is your turn; done and canceled are ends. To wait, call again every few seconds until the
    assignee is `user` or the task has ended. Then read the last comments, and call add_comment with an @name to go on,
    complete_task to end it, or retry_task if it failed."""
    return tasks.show(core, caller, arguments.task_id)


@TOOLS.declare("Create a task", ADDS_WORK)
def create_task(core: Core, caller: Caller, arguments: CreateTask) -> TaskDocument:
    """Make a task, a thread of comments that agents and people work on: the assignee begins as soon as it may, hands
    it to others by @name in its comments, and gives it back to `user` at the end. Each run goes on from the branch
    that the last one left. Then wait with get_task. Refused (412) where there is no agent that could take it. For
    operators."""
    return tasks.create(core, caller, request_of(TaskRequest, arguments))


@TOOLS.declare("Comment on a task", ADDS_WORK)
def add_comment(core: Core, caller: Caller, arguments: AddComment) -> CommentDocument:
    """Write into the thread of a task that is open or failed; comments are never changed or deleted. An @name of an
    agent gives the task to that agent, which then works on it: wait with get_task. Refused (409) on a task that is in
    progress (preempt_task first), done (reopen_task first) or canceled; 404, and nothing is written, where no tag in it
    is an agent of the organization. For operators."""
    return tasks.comment(core, caller, arguments.task_id, request_of(CommentRequest, arguments))


@TOOLS.declare("Take a task from its run", ENDS)
def preempt_task(core: Core, caller: Caller, arguments: OfTask) -> TaskDocument:
    """Stop the run of a task that is in progress: the task is open and with `user` at once. What the run did so far is
    kept, and stays the task's. Then add_comment with an @name, or assign_task, lets somebody go on. For operators."""
    return tasks.preempt(core, caller, arguments.task_id)


@TOOLS.declare("Close a task as done", SETS)
def complete_task(core: Core, caller: Caller, arguments: OfTask) -> TaskDocument:
    """Close a task that is open or failed and with `user`, because its work is done or taken. reopen_task undoes it.
    Refused (409) in any other state. For operators."""
    return tasks.done(core, caller, arguments.task_id)


@TOOLS.declare("Open a task again", SETS)
def reopen_task(core: Core, caller: Caller, arguments: OfTask) -> TaskDocument:
    """Open a task that is done or failed again, with `user` as assignee; no run begins. Then add_comment with an
    @name, or assign_task. For operators."""
    return tasks.reopen(core, caller, arguments.task_id)


@TOOLS.declare("Let an agent try a task again", SETS_WORK)
def retry_task(core: Core, caller: Caller, arguments: RetryTask) -> TaskDocument:
    """Give a task that is failed or done to an agent again, which begins a new run. Then wait with get_task. Refused
    (412) where no agent is named and none has worked on it. For operators."""
    return tasks.retry(core, caller, arguments.task_id, request_of(TaskRetryRequest, arguments))


@TOOLS.declare("Cancel a task", ENDS)
def cancel_task(core: Core, caller: Caller, arguments: CancelTask) -> TaskDocument:
    """End a task for good, and stop its run if one is going on. A canceled task cannot be opened again; to stop only
    the run, call preempt_task. Refused (409) for one that is done or canceled. For operators."""
    return tasks.cancel(core, caller, arguments.task_id, request_of(TaskCancelRequest, arguments))


@TOOLS.declare("Give a task to an agent or to people", SETS_WORK)
def assign_task(core: Core, caller: Caller, arguments: AssignTask) -> TaskDocument:
    """Give a task that is open or failed to an agent, which begins a run, or to `user`. To tell the agent something
    with it, call add_comment with its @name instead. For operators."""
    return tasks.assign(core, caller, arguments.task_id, request_of(AssignRequest, arguments))


@TOOLS.declare("List the runs of a task", READS)
def list_runs(core: Core, caller: Caller, arguments: OfTask) -> list[TaskRunDocument]:
    """The runs of agents on a task, oldest first: agent, status (running, success, failed, preempted, lost), reason,
    duration, tokens, cost, branch."""
    return runs.of_task(core, caller, arguments.task_id)


@TOOLS.declare("Show a run", READS)
def get_run(core: Core, caller: Caller, arguments: GetRun) -> TaskRunDetail:
    """A run with its steps: what the agent thought, said and called, and what came of it; also the full text of an
    error. For finding out why a run failed."""
    run = runs.show_run(core, caller, arguments.run_id)
    return run if arguments.full else run.model_copy(update={"steps": [shortened(step) for step in run.steps]})
