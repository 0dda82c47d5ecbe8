"""`fleet task …` and `fleet comment`: threads that agents and people work on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from control_plane.cli.answers import print_answer
from control_plane.cli.common_options import Org
from control_plane.cli.completion import listed
from control_plane.cli.connection import client
from control_plane.cli.derived_commands import ByHandCommand, TypedCommand
from control_plane.cli.task_options import DescriptionFile, read_description
from shared.terminal.command_line import JsonFlag, examples, put, say

if TYPE_CHECKING:
    from collections.abc import Mapping

    from control_plane.contract.declarations.operation import Operation

PANEL = "Teams"
Doc = dict[str, Any]
TaskId = Annotated[
    str, typer.Argument(metavar="TASK", help="The task's id, for example PAYM-0001.", autocompletion=listed("tasks:id"))
]


def add_to(app: typer.Typer) -> None:
    """Register `fleet comment`, which is `fleet task comment`."""
    SHORT_COMMENT.add_to(app)


def add_commands(group: typer.Typer) -> None:
    """Register the hand-written commands of tasks."""
    CREATE.add_to(group)
    group.command("follow", epilog=examples("fleet task follow PAYM-0001"))(follow)
    COMMENT.add_to(group)


def create(call: TypedCommand, *, description_file: DescriptionFile = None, as_json: JsonFlag = False) -> int:
    """Create a task; its agent starts as soon as possible."""
    read_description(call.fields, description_file)
    print_answer(call.perform(), _created, as_json=as_json)
    return 0


def _created(task: Doc) -> str:
    """The id on stdout, for scripts; what happens next on stderr."""
    put(f"{task['id']}\n")
    say(task["note"])
    say(f"  next  fleet task follow {task['id']}")
    return ""


def follow(task_id: TaskId, as_json: JsonFlag = False, org: Org = None) -> int:
    """Follow a task until it needs you or is done (exit code 0), or failed or was canceled (1)."""
    from control_plane.cli.task_follow import follow_task

    return follow_task(client(org), task_id, as_json=as_json)


def comment(call: TypedCommand, *, as_json: JsonFlag = False) -> int:
    """Comment on an open or failed task; the last @agent or @user in it becomes the assignee."""
    print_answer(call.perform(), _noted, as_json=as_json)
    return 0


def _noted(written: Doc) -> str:
    say(written["note"])
    return ""


def _declared() -> Mapping[str, Operation]:
    from control_plane.contract.declarations import tasks

    return {"task create": tasks.ADD, "task comment": tasks.COMMENT, "comment": tasks.COMMENT}


CREATE = ByHandCommand(
    "task create",
    _declared,
    create,
    examples=("fleet task create 'Add a currency to prices' --project shop",),
    arguments=("title",),
)
COMMENT = ByHandCommand(
    "task comment",
    _declared,
    comment,
    examples=("fleet task comment PAYM-0001 '@backend please add a test'",),
    arguments=("text",),
)
SHORT_COMMENT = ByHandCommand(
    "comment",
    _declared,
    comment,
    PANEL,
    ("fleet comment PAYM-0001 '@tester does this hold?'", "fleet comment PAYM-0001 - < findings.md"),
    arguments=("text",),
)
