"""Tasks: threads of comments that agents and people work on by hand-offs."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from control_plane.contract.declarations.operation import (
    ADDS_WORK,
    ENDS,
    READS,
    SETS,
    SETS_WORK,
    ByHand,
    Command,
    Operation,
    Tool,
)
from control_plane.contract.declarations.task_documents import (
    TASK_ID,
    AssignRequest,
    CommentDocument,
    CommentRequest,
    TaskCancelRequest,
    TaskDocument,
    TaskFilter,
    TaskRequest,
    TaskRetryRequest,
    TaskSummary,
    TimelineFilter,
)

NAMES = {"task_id": Annotated[str, Field(max_length=64), TASK_ID]}
ONE = "/tasks/{task_id}"
NOTE = "{note}"

ADD = Operation(
    name="create_task",
    role="operator",
    route="POST /tasks",
    status=201,
    errors=(404, 412, 413),
    request=TaskRequest,
    answer=TaskDocument,
    summary="Create a task",
    more="Its first run begins as soon as possible; until then, `reason` says what it is waiting for.",
    tool=Tool(
        "create_task",
        "Create a task",
        ADDS_WORK,
        "Create a task: a thread of comments that agents and people work on. The assigned agent starts as soon as "
        "possible, hands the task to other agents with @name in its comments, and returns it to `user` at the end. "
        "Each run continues on the branch of the run before. Then poll get_task. Fails with 412 if there is no project "
        "or no agent to choose. Requires the operator role.",
        about={
            "description": "Complete description of the work, with everything that the agents need to know: they see "
            "this text, the comments and the repository, but not your conversation. Default: the title.",
        },
    ),
    command=ByHand("task create", "it can read the description from a file, and prints the id alone on stdout"),
)
LIST = Operation(
    name="list_tasks",
    role="viewer",
    route="GET /tasks",
    errors=(404,),
    request=TaskFilter,
    answer=list[TaskSummary],
    summary="List tasks, newest first",
    tool=Tool(
        "list_tasks",
        "List tasks",
        READS,
        "List the tasks of the organization, newest first, without their timelines: status, assignee, reason (why the "
        "task waits, or what its run is doing), cost. Tasks that need the user have the assignee `user`.",
        defaults={"limit": 20},
    ),
    command=Command(
        "task ls",
        "List tasks, newest first.",
        "fleet task ls --status open --assignee user",
    ),
)
SHOW = Operation(
    name="show_task",
    role="viewer",
    route=f"GET {ONE}",
    names=NAMES,
    errors=(404,),
    request=TimelineFilter,
    answer=TaskDocument,
    summary="Show a task with its timeline",
    tool=ByHand("get_task", "it has no `since`, because a model reads the whole thread"),
    command=Command(
        "task show",
        "Show a task: its status, and its comments and runs in chronological order.",
        "fleet task show PAYM-0001",
        without=("since",),
    ),
)
COMMENT = Operation(
    name="comment_task",
    role="operator",
    route=f"POST {ONE}/comments",
    names=NAMES,
    status=201,
    errors=(404, 409, 413),
    request=CommentRequest,
    answer=CommentDocument,
    summary="Comment on a task",
    more="For open and failed tasks. The last valid `@agent` or `@user` in the text becomes the assignee.",
    tool=Tool(
        "add_comment",
        "Comment on a task",
        ADDS_WORK,
        "Add a comment to an open or failed task; comments cannot be changed or deleted. An agent's @name assigns the "
        "task to that agent, which starts a run: then poll get_task. Fails with 409 if the task is in progress (call "
        "preempt_task first), done (call reopen_task first) or canceled. Fails with 404, and stores nothing, if the "
        "text has tags but none of them is valid. Requires the operator role.",
        about={
            "text": "The comment, as plain text or Markdown. The last valid tag decides: an agent's @name assigns the "
            "task to that agent, which starts a run; @user assigns it to the user; without a tag the comment is only "
            "recorded. Tags in code and in e-mail addresses are ignored.",
        },
    ),
    command=ByHand("task comment", "`fleet comment` is the same command"),
)
PREEMPT = Operation(
    name="preempt_task",
    role="operator",
    route=f"POST {ONE}/preempt",
    names=NAMES,
    errors=(404, 409),
    answer=TaskDocument,
    summary="Preempt a task",
    more="Stops its run, named in `stopped_run`; the task's next run begins when that one has ended.",
    tool=Tool(
        "preempt_task",
        "Preempt a task",
        ENDS,
        "Stop the run of a task that is in progress. The task is open and assigned to `user` at once, and keeps "
        "the work done so far. To continue it, call add_comment with an @name, or assign_task. Requires the operator "
        "role.",
    ),
    command=Command(
        "task preempt",
        "Stop the run of a task and assign the task to you.",
        "fleet task preempt PAYM-0001",
        done=NOTE,
    ),
)
DONE = Operation(
    name="done_task",
    role="operator",
    route=f"POST {ONE}/done",
    names=NAMES,
    errors=(404, 409),
    answer=TaskDocument,
    summary="Mark a task as done",
    tool=Tool(
        "complete_task",
        "Mark a task as done",
        SETS,
        "Close a task whose work is finished. The task must be open or failed and assigned to `user`, else the call "
        "fails with 409. reopen_task reverts it. Requires the operator role.",
    ),
    command=Command(
        "task done", "Mark a task that is assigned to you as done.", "fleet task done PAYM-0001", done=NOTE
    ),
)
REOPEN = Operation(
    name="reopen_task",
    role="operator",
    route=f"POST {ONE}/reopen",
    names=NAMES,
    errors=(404, 409),
    answer=TaskDocument,
    summary="Reopen a done or failed task",
    tool=Tool(
        "reopen_task",
        "Reopen a task",
        SETS,
        "Reopen a done or failed task and assign it to `user`; no run starts. To continue it, call add_comment with an "
        "@name, or assign_task. Requires the operator role.",
    ),
    command=Command(
        "task reopen", "Reopen a done or failed task and assign it to you.", "fleet task reopen PAYM-0001", done=NOTE
    ),
)
RETRY = Operation(
    name="retry_task",
    role="operator",
    route=f"POST {ONE}/retry",
    names=NAMES,
    errors=(404, 409, 412),
    request=TaskRetryRequest,
    answer=TaskDocument,
    summary="Retry a done or failed task",
    more="Assigns it to the given agent, else to the agent of the latest run.",
    tool=Tool(
        "retry_task",
        "Retry a task",
        SETS_WORK,
        "Assign a failed or done task to an agent again, which starts a new run. Then poll get_task. Fails with 412 if "
        "no agent is given and none has worked on the task. Requires the operator role.",
    ),
    command=Command(
        "task retry",
        "Retry a done or failed task with an agent.",
        "fleet task retry PAYM-0001 --assign backend",
        done=NOTE,
    ),
)
CANCEL = Operation(
    name="cancel_task",
    role="operator",
    route=f"POST {ONE}/cancel",
    names=NAMES,
    errors=(404, 409, 413),
    request=TaskCancelRequest,
    answer=TaskDocument,
    summary="Cancel a task",
    more="This is final. A current run is stopped, and `stopped_run` names it.",
    tool=Tool(
        "cancel_task",
        "Cancel a task",
        ENDS,
        "Cancel a task and stop its current run, if there is one. A canceled task cannot be reopened; to stop only the "
        "run, call preempt_task. Fails with 409 if the task is already done or canceled. Requires the operator role.",
    ),
    command=Command(
        "task cancel",
        "Cancel a task and stop its run; a canceled task cannot be reopened.",
        "fleet task cancel PAYM-0001 --reason 'no longer needed'",
        done=NOTE,
    ),
)
ASSIGN = Operation(
    name="assign_task",
    role="operator",
    route=f"POST {ONE}/assign",
    names=NAMES,
    errors=(404, 409),
    request=AssignRequest,
    answer=TaskDocument,
    summary="Assign an open or failed task to an agent or to the user",
    tool=Tool(
        "assign_task",
        "Assign a task",
        SETS_WORK,
        "Assign an open or failed task to an agent, which starts a run, or to `user`. To include a message for the "
        "agent, call add_comment with its @name instead. Requires the operator role.",
    ),
    command=Command(
        "task assign",
        "Assign an open or failed task to an agent, or to the user.",
        "fleet task assign PAYM-0001 backend",
        arguments=("assignee",),
        done=NOTE,
    ),
)
