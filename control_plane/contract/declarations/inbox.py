"""The inbox: everything that waits for the caller, and how much of it there is."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from control_plane.contract.declarations.operation import READS, SETS, About, ByHand, NoDoor, Operation, Tool
from control_plane.contract.documents.base import Document, Request
from control_plane.contract.documents.orders import WaitingDocument

InboxKind = Literal[
    "approval",
    "question",
    "plan",
    "limit",
    "budget",
    "secret",
    "branch",
    "reply",
    "checks",
    "spent",
    "task",
    "race",
    "drone",
    "memory",
    "provider",
    "project",
]
"""The first seven are waits of running orders (`shared.events.WaitKind`). `reply`: an order closed with a question.
`checks`: its checks failed. `spent`: it stopped at its cost limit or a budget. `task`: it is with the user. `race`: one
of its orders is to be taken. `drone`: it needs care. `memory`: an agent proposes a note for later orders. `provider`,
`project`: it did not work when a drone tried it."""
MAX_LISTED = 1000
KIND = About("kind", "Only items of this kind.", absent="all")
MINE = About("mine", "Only what you submitted or own.", flag="--mine")
ITEM = About("item", "The item's id in the inbox, such as checks:ORDER or race:RACE.")
NAMES = {"item_id": Annotated[str, Field(max_length=100), ITEM]}
EVERYWHERE = About("everywhere", "Of all organizations in which your token may act.", flag="--everywhere")


class InboxScope(Request):
    mine: Annotated[bool, MINE] = False
    everywhere: Annotated[bool, EVERYWHERE] = False


class InboxFilter(InboxScope):
    model_config = ConfigDict(populate_by_name=True)

    kind: Annotated[InboxKind | None, KIND] = None
    limit: Annotated[int, About("limit", "Maximum number of results, nearest deadline first.")] = Field(
        100, ge=1, le=MAX_LISTED
    )


class InboxItem(Document):
    """One thing that waits for a user."""

    id: str
    """Unique in the inbox, and the same as long as the thing waits: `question:a1b2c3d4e5f6:call_2`."""
    kind: InboxKind
    title: str
    """The title of the order's session or of the task, the name of the race, drone, provider or project."""
    text: str
    """A question's text, a call's reason, an order's response or reason; of a drone, what it needs; of a provider or
    project, why it does not work."""
    choices: list[str]
    default: str | None
    """What counts after the deadline."""
    deadline: datetime | None
    since: datetime
    organization: str
    project: str | None
    """Slug."""
    order: str | None
    session: str | None
    task: str | None
    drone: str | None
    """The name of the drone; of an order, where it runs or ended; of a provider or project, where it failed."""
    race: str | None = None
    user: str
    """Who submitted the order, race or task, or asked for the check; empty: no one, or unknown."""
    waiting_for: WaitingDocument | None
    """Of an order that waits: its `waiting_for`, with the whole command."""
    may_answer: bool
    """Whether the caller's role allows what `next` does."""
    next: str
    """The command that acts; of a provider or project, perhaps a sentence: what to do on the drone's machine."""


class InboxCounts(Document):
    """The number of items that wait, for a badge."""

    total: int
    kinds: dict[str, int]
    """By `InboxItem.kind`; every kind has an entry."""


class DismissedItem(Document):
    """An item that was dismissed, or put back."""

    id: str
    dismissed_by: str | None
    """Empty: a user without a name; null: it is in the inbox again."""
    dismissed_at: datetime | None


LIST = Operation(
    name="list_inbox",
    role="viewer",
    route="GET /inbox",
    request=InboxFilter,
    answer=list[InboxItem],
    summary="List everything that waits for the caller, nearest deadline first",
    more="Items without a deadline follow, newest first. Ended orders, races and lost drones leave the list after 30 "
    "days, ended orders and races also when they are dismissed.",
    tool=Tool(
        "list_inbox",
        "List what waits for a user",
        READS,
        "List everything that waits for a user: calls that need approval, plans and questions of agents, orders that "
        "closed with a question, failed checks, used up budgets, tasks that are back with the user, races to decide, "
        "drones that need care, notes that agents propose for later orders, providers and projects that do not work. "
        "Each item has its text, choices, deadline, "
        "ids and the command that acts. Nearest deadline first. Act with answer_order, approve_call, deny_call, "
        "approve_plan, submit_order (with the item's session), resume_order, take_order or add_comment; dismiss_item "
        "takes out what needs no action.",
        defaults={"limit": 20},
    ),
    command=ByHand("inbox", "it prints questions with their choices, and the command that acts"),
)
COUNT = Operation(
    name="count_inbox",
    role="viewer",
    route="GET /inbox/counts",
    request=InboxScope,
    answer=InboxCounts,
    summary="Count what waits for the caller, by kind",
    tool=NoDoor("list_inbox returns the items"),
    command=NoDoor("`fleet inbox` lists the items"),
)
DISMISS = Operation(
    name="dismiss_item",
    role="operator",
    route="POST /inbox/{item_id}/dismiss",
    names=NAMES,
    errors=(404, 409),
    answer=DismissedItem,
    summary="Take an ended order or a race out of the inbox",
    more="For the whole organization. The order or race stays as it is. 409 for an item that needs a decision.",
    tool=Tool(
        "dismiss_item",
        "Dismiss an inbox item",
        SETS,
        "Take an item of kind reply, checks, spent or race out of the inbox of all users, if nothing has to be done "
        "about it. The order or race stays as it is. Other kinds need a decision: 409. restore_item reverts it. "
        "Requires the operator role.",
    ),
    command=ByHand("dismiss", "its --undo puts the item back"),
)
RESTORE = Operation(
    name="restore_item",
    role="operator",
    route="POST /inbox/{item_id}/restore",
    names=NAMES,
    errors=(404, 409),
    answer=DismissedItem,
    summary="Put a dismissed item back into the inbox",
    more="Of a note (`memory:ID`): it was kept or refused, and waits for a decision again.",
    tool=Tool(
        "restore_item",
        "Put an inbox item back",
        SETS,
        "Put an item that dismiss_item took out of the inbox back; an item that is there stays. Requires the operator "
        "role.",
    ),
    command=ByHand("dismiss", "the --undo of the command that dismisses"),
)
