"""Triggers: signed requests from code hosts that become tasks."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from control_plane.contract.declarations.operation import READS, About, ByHand, Command, NoDoor, Operation, Tool
from control_plane.contract.declarations.task_documents import TaskRequest
from control_plane.contract.documents.base import Document, Request

TriggerKind = Literal["github", "gitlab", "gitea", "standard"]
NAME = About("trigger", "Name of the trigger.", source="triggers:name")
KIND = About("kind", "The code host that sends the requests.")
SECRET = About("secret", "Secret that signs the requests.", absent="generated", secret=True)
EVENTS = About("events", "Events that create a task; an empty list = all.", absent="every event")
TASK = About("task", "The tasks to create; title and description are templates over `payload` and `event`.")
ENABLED = About("state", "Enable or disable it.", flag="--on/--off")


class TriggerRequest(Request):
    name: Annotated[str, NAME]
    kind: Annotated[TriggerKind, KIND]
    secret: Annotated[str | None, SECRET] = Field(None, repr=False)
    """None: one is generated, and shown once."""
    events: Annotated[list[str], EVENTS] = Field(default_factory=list)
    """Not given: the most common events of the kind; an empty list: all."""
    task: Annotated[TaskRequest, TASK] = Field(default_factory=lambda: TaskRequest(title=""))
    """Title and description are templates; an empty title and no description: the kind's own."""


class TriggerEdit(Request):
    """Only the fields that are set change."""

    secret: Annotated[str | None, SECRET] = Field(None, repr=False)
    events: Annotated[list[str] | None, EVENTS] = None
    task: Annotated[TaskRequest | None, TASK] = None
    enabled: Annotated[bool | None, ENABLED] = None


class TriggerDocument(Document):
    id: str
    name: Annotated[str, NAME]
    kind: Annotated[str, KIND]
    url: str
    """Where the code host sends its requests."""
    secret: str | None
    """Shown once, when it is generated."""
    events: Annotated[list[str], EVENTS]
    task: dict[str, Any]
    enabled: Annotated[bool, ENABLED]
    last_at: datetime | None
    last_task: Annotated[str | None, About("last task")]
    last_error: Annotated[str, About("last error")]
    created_at: datetime


class HookAnswer(Document):
    """The answer to the sender of a hook."""

    outcome: Literal["task", "ignored", "repeated"]
    task: str | None
    why: str


NAMES = {"name": Annotated[str, NAME]}
WORK_FROM_OUTSIDE = NoDoor("it lets external requests start work, so only people set it up")
TASK_OPTIONS = "its options describe the tasks that it creates"

ADD = Operation(
    name="create_trigger",
    role="admin",
    route="POST /triggers",
    status=201,
    errors=(404, 409, 413),
    request=TriggerRequest,
    answer=TriggerDocument,
    summary="Add a trigger",
    more="The answer contains the secret, which is shown only once.",
    tool=WORK_FROM_OUTSIDE,
    command=ByHand("trigger add", TASK_OPTIONS),
)
LIST = Operation(
    name="list_triggers",
    role="viewer",
    route="GET /triggers",
    answer=list[TriggerDocument],
    summary="List triggers",
    tool=Tool(
        "list_triggers",
        "List triggers",
        READS,
        "List the triggers, which create tasks from events at a code host. url receives the host's requests, events "
        "are those that create a task (empty = all), last_task is the newest task, last_error why a task could not be "
        "created.",
    ),
    command=Command(
        "trigger ls",
        "List the triggers.",
        "fleet trigger ls",
        columns=("name", "enabled", "kind", "events", "last_task", "last_error"),
        empty="no triggers; fleet trigger add creates one",
    ),
)
SHOW = Operation(
    name="show_trigger",
    role="viewer",
    route="GET /triggers/{name}",
    names=NAMES,
    errors=(404,),
    answer=TriggerDocument,
    summary="Show a trigger",
    tool=NoDoor("list_triggers returns every field"),
    command=Command("trigger show", "Show a trigger.", "fleet trigger show issues"),
)
EDIT = Operation(
    name="edit_trigger",
    role="admin",
    route="PATCH /triggers/{name}",
    names=NAMES,
    errors=(404, 413),
    request=TriggerEdit,
    answer=TriggerDocument,
    summary="Change the given fields",
    tool=WORK_FROM_OUTSIDE,
    command=ByHand("trigger edit", TASK_OPTIONS),
)
REMOVE = Operation(
    name="remove_trigger",
    role="admin",
    route="DELETE /triggers/{name}",
    names=NAMES,
    errors=(404,),
    answer=TriggerDocument,
    summary="Remove a trigger; its tasks are kept",
    tool=NoDoor("removal is left to people"),
    command=Command(
        "trigger rm",
        "Remove a trigger; the tasks that it created are kept.",
        "fleet trigger rm issues",
        confirm="Remove trigger {name}?",
        done="trigger {name} removed",
    ),
)
