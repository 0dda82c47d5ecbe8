"""Tasks: threads of comments that agents and people work on by hand-offs."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from control_plane.declarations.operation import (
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
from control_plane.declarations.task_documents import (
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
NAMED = {"task_id": "The task's id, such as PAYM-0001; list_tasks has them."}
FOR_MODELS = "Name of an agent (list_agents has them), or `user` for people."
NOTE = "{note}"

ADD = Operation(
    name="create_task",
    role="operator",
    route="POST /tasks",
    status=201,
    errors=(404, 412, 413),
    run="tasks.creating:create",
    request=TaskRequest,
    answer=TaskDocument,
    summary="Create a task",
    more="Its first run begins as soon as the agent may; `reason` says what it waits for.",
    tool=Tool(
        "create_task",
        "Create a task",
        ADDS_WORK,
        "Make a task, a thread of comments that agents and people work on: the assignee begins as soon as it may, "
        "hands it to others by @name in its comments, and gives it back to `user` at the end. Each run goes on from "
        "the branch that the last one left. Then wait with get_task. Refused (412) where there is no agent that could "
        "take it. For operators.",
        about={
            "title": "What is to be done, in one line.",
            "description": "What is to be done, complete, with all that the agents have to know; they see this, the "
            "comments and the repository, and nothing of your conversation. Default: the title.",
            "project": "Slug of the project whose repository is worked on; list_projects has them. Default: the "
            "organization's, else its only one.",
            "assignee": f"Who begins: {FOR_MODELS} Default: the first agent by name without a boss.",
            "mode": "Which tools the agents have: plan (reads only), build, test, ship or develop. Default: build.",
            "priority": "-100 to 100; of tasks that wait, a higher number begins first. Default: 0.",
            "max_iterations": "At most so many rounds of the model in each run; 0: no limit. Default: the agent's.",
            "cost_limit": "At most so many USD in each run; 0: no limit. Default: the agent's.",
            "max_run_seconds": "At most so many seconds of work; 0: no limit. Default: 1800.",
        },
    ),
    command=ByHand("task create", "its description may come from a file or from stdin"),
)
LIST = Operation(
    name="list_tasks",
    role="viewer",
    route="GET /tasks",
    errors=(404,),
    run="tasks.reading:list_",
    request=TaskFilter,
    answer=list[TaskSummary],
    summary="Tasks, newest first",
    tool=Tool(
        "list_tasks",
        "List tasks",
        READS,
        "The tasks of the organization, without their timelines: status, assignee, why each waits or what its run "
        "does (reason), cost. With assignee `user` these are the ones that wait for people.",
        about={
            "status": "Only tasks in this state. Default: all.",
            "assignee": f"Only tasks that are with them: {FOR_MODELS} Default: all.",
            "project": "Only tasks of this project (slug). Default: all.",
        },
        defaults={"limit": 20},
    ),
    command=Command(
        "task ls",
        "List tasks, newest first.",
        "fleet task ls --status open --assignee user",
        text="task_tables:task_table",
    ),
)
SHOW = Operation(
    name="show_task",
    role="viewer",
    route=f"GET {ONE}",
    names=NAMES,
    errors=(404,),
    run="tasks.reading:show",
    request=TimelineFilter,
    answer=TaskDocument,
    summary="A task with its timeline",
    tool=ByHand("get_task", "it has no `since`, as a model reads the whole thread"),
    command=Command(
        "task show",
        "Show a task: where it stands, and everything that was written and run, in order.",
        "fleet task show PAYM-0001",
        without=("since",),
        text="task_text:task_text",
    ),
)
COMMENT = Operation(
    name="comment_task",
    role="operator",
    route=f"POST {ONE}/comments",
    names=NAMES,
    status=201,
    errors=(404, 409, 413),
    run="tasks.commenting:comment",
    request=CommentRequest,
    answer=CommentDocument,
    summary="Comment on a task",
    more="On open and failed tasks. The last valid `@agent` or `@user` in it decides whose turn it is.",
    tool=Tool(
        "add_comment",
        "Comment on a task",
        ADDS_WORK,
        "Write into the thread of a task that is open or failed; comments are never changed or deleted. An @name of "
        "an agent gives the task to that agent, which then works on it: wait with get_task. Refused (409) on a task "
        "that is in progress (preempt_task first), done (reopen_task first) or canceled; 404, and nothing is written, "
        "where no tag in it is an agent of the organization. For operators.",
        about={
            **NAMED,
            "text": "What the agents are to read, plain text or Markdown. The last @name of an agent in it gives the "
            "task to that agent, which begins a run; @user keeps it with people; without a tag it is only recorded. "
            "Tags in code and in e-mail addresses do not count.",
        },
    ),
    command=ByHand("task comment", "`-` reads the text from stdin, and `fleet comment` is the same command"),
)
PREEMPT = Operation(
    name="preempt_task",
    role="operator",
    route=f"POST {ONE}/preempt",
    names=NAMES,
    errors=(404, 409),
    run="tasks.stopping:preempt",
    answer=TaskDocument,
    summary="Take a task from its run",
    more="`stopped_run` names the run; the task's next one begins when it has ended.",
    tool=Tool(
        "preempt_task",
        "Take a task from its run",
        ENDS,
        "Stop the run of a task that is in progress: the task is open and with `user` at once. What the run did so "
        "far is kept, and stays the task's. Then add_comment with an @name, or assign_task, lets somebody go on. For "
        "operators.",
        about=NAMED,
    ),
    command=Command(
        "task preempt",
        "Take a task from the run that is at work on it; it is yours then.",
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
    run="tasks.acting:done",
    answer=TaskDocument,
    summary="Mark a task as done",
    tool=Tool(
        "complete_task",
        "Close a task as done",
        SETS,
        "Close a task that is open or failed and with `user`, because its work is done or taken. reopen_task undoes "
        "it. Refused (409) in any other state. For operators.",
        about=NAMED,
    ),
    command=Command("task done", "Mark a task that is with you as done.", "fleet task done PAYM-0001", done=NOTE),
)
REOPEN = Operation(
    name="reopen_task",
    role="operator",
    route=f"POST {ONE}/reopen",
    names=NAMES,
    errors=(404, 409),
    run="tasks.acting:reopen",
    answer=TaskDocument,
    summary="Open a done or failed task again",
    tool=Tool(
        "reopen_task",
        "Open a task again",
        SETS,
        "Open a task that is done or failed again, with `user` as assignee; no run begins. Then add_comment with an "
        "@name, or assign_task. For operators.",
        about=NAMED,
    ),
    command=Command(
        "task reopen", "Open a done or failed task again; it is yours then.", "fleet task reopen PAYM-0001", done=NOTE
    ),
)
RETRY = Operation(
    name="retry_task",
    role="operator",
    route=f"POST {ONE}/retry",
    names=NAMES,
    errors=(404, 409, 412),
    run="tasks.acting:retry",
    request=TaskRetryRequest,
    answer=TaskDocument,
    summary="Give a done or failed task to an agent",
    more="To the named agent, else to the one that ran last.",
    tool=Tool(
        "retry_task",
        "Let an agent try a task again",
        SETS_WORK,
        "Give a task that is failed or done to an agent again, which begins a new run. Then wait with get_task. "
        "Refused (412) where no agent is named and none has worked on it. For operators.",
        about={
            **NAMED,
            "assignee": "Name of the agent that tries; list_agents has them. Default: the agent of the latest run.",
        },
    ),
    command=Command(
        "task retry",
        "Give a done or failed task to an agent again.",
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
    run="tasks.stopping:cancel",
    request=TaskCancelRequest,
    answer=TaskDocument,
    summary="End a task for good",
    more="A run that is on is asked to stop: `stopped_run` names it.",
    tool=Tool(
        "cancel_task",
        "Cancel a task",
        ENDS,
        "End a task for good, and stop its run if one is going on. A canceled task cannot be opened again; to stop "
        "only the run, call preempt_task. Refused (409) for one that is done or canceled. For operators.",
        about={**NAMED, "reason": "Why, in one sentence; it stands in the thread."},
    ),
    command=Command(
        "task cancel",
        "End a task for good, and its run with it.",
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
    run="tasks.acting:assign",
    request=AssignRequest,
    answer=TaskDocument,
    summary="Give an open or failed task to an agent or to the user",
    tool=Tool(
        "assign_task",
        "Give a task to an agent or to people",
        SETS_WORK,
        "Give a task that is open or failed to an agent, which begins a run, or to `user`. To tell the agent "
        "something with it, call add_comment with its @name instead. For operators.",
        about={**NAMED, "assignee": FOR_MODELS},
    ),
    command=Command(
        "task assign",
        "Give an open or failed task to an agent, or to the user.",
        "fleet task assign PAYM-0001 backend",
        arguments=("assignee",),
        done=NOTE,
    ),
)
