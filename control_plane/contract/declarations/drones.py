"""Drones: their identity, their state, and whether they take orders."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from control_plane.contract.declarations.operation import (
    READS,
    SETS,
    TOP_LEVEL,
    About,
    ByHand,
    Command,
    NoDoor,
    Operation,
    Tool,
)
from control_plane.contract.documents.base import Document, Request

NAME = About("drone", "The drone's name.", source="drones:name")


OWNER = About(
    "owner",
    "E-mail address of the user who owns it.",
    absent="no owner",
    source="users:email",
    metavar="USER",
    none="none",
)
NEW_NAME = About(
    "name",
    "Another name for the drone. Its worker in Flower has it as soon as the drone's current runs have ended.",
    flag="--name",
    metavar="NAME",
)
MINE = About("mine", "Only drones that you own.", flag="--mine")


class DroneFilter(Request):
    mine: Annotated[bool, MINE] = False


class DroneEdit(Request):
    """Only the given fields change."""

    owner: Annotated[str | None, OWNER] = None
    new_name: Annotated[str | None, NEW_NAME] = None


class MachineDocument(Document):
    """How busy a drone's machine is, with everything that runs on it."""

    cpu_percent: float
    memory_percent: float
    disk_free_mb: int
    """Where the drone keeps its workspaces."""
    disk_mb: int


class DroneDocument(Document):
    id: str
    name: Annotated[str, NAME]
    organization: str | None
    """The organization that owns it; null for a caller whose organization it only serves."""
    owner: str | None
    """The e-mail address of the user who owns it, or `not a member`; null: no user, or it belongs to another
    organization.
    """
    pool: str | None = None
    """The pool that it belongs to: it is ephemeral; null: it stays, or belongs to another organization."""
    serves: list[str]
    """The organizations that it serves besides its own, as far as the caller may see them; `*`: all."""
    status: str
    labels: dict[str, str]
    concurrency: int
    running: int
    queued: int
    sandbox: str
    network: str = ""
    """What its commands can reach, by its owner's policy: none, hosts (only listed ones), public (the web) or host
    (everything that its machine reaches); empty from a drone that does not say it.
    """
    version: str
    host: str
    draining: bool
    registered_at: datetime
    keys_made_at: datetime
    """When it got the keys that it uses now."""
    keys_revoked_at: datetime | None
    """When its keys were revoked; null: it has keys."""
    keys_replacing: bool
    """It was asked to replace its keys, and still uses the old ones."""
    last_seen_at: datetime | None
    stopped_at: datetime | None = None
    """When it was stopped cleanly; null while it runs, and if it just fell silent."""
    condition: str = ""
    """Why it starts no order now, as a code of `shared.reasons.DroneState`: busy, draining, disk_full and so on; empty
    if it does.
    """
    condition_detail: str = ""
    """What it says about that, for example how much of its disk is left."""
    note: str = ""
    """A note for people, for example that it runs on a different machine than the one it was registered on."""
    machine: MachineDocument | None = None
    """As of the last heartbeat; null while it is offline, and from a drone that does not say it."""
    doing: list[dict[str, Any]] = Field(default_factory=list)
    """What each of its runs is doing, as of the last heartbeat."""


NETWORK_WORDS = {
    "none": "none",
    "hosts": "only hosts that its owner lists",
    "public": "the public web",
    "host": "everything its machine reaches",
}
"""`DroneDocument.network` for people."""
NAMES = {"name": Annotated[str, Field(max_length=255), NAME]}

LIST = Operation(
    name="list_drones",
    role="viewer",
    route="GET /drones",
    request=DroneFilter,
    answer=list[DroneDocument],
    summary="List drones",
    tool=Tool(
        "list_drones",
        "List drones",
        READS,
        "List the drones (workers on people's machines) that serve the organization: status (online, busy, draining, "
        "unresponsive, offline), labels, number of current runs (running), maximum number of runs (concurrency) and "
        "number of orders waiting in its queue (queued).",
    ),
    command=ByHand("drones", TOP_LEVEL),
)
SHOW = Operation(
    name="show_drone",
    role="viewer",
    route="GET /drones/{name}",
    names=NAMES,
    errors=(404,),
    answer=DroneDocument,
    summary="Show a drone",
    tool=NoDoor("list_drones returns every field"),
    command=Command("drone show", "Show a drone and what it is doing.", "fleet drone show NAME"),
)
EDIT = Operation(
    name="edit_drone",
    role="admin",
    route="PATCH /drones/{name}",
    names=NAMES,
    errors=(404, 409),
    request=DroneEdit,
    answer=DroneDocument,
    summary="Rename a drone, or give it another owner",
    tool=NoDoor("people decide who owns a machine, and how it is called"),
    command=Command(
        "drone edit",
        "Rename a drone, or give it another owner, for example when its user has left.",
        "fleet drone edit NAME --owner kim@example.org",
    ),
)
REMOVE = Operation(
    name="remove_drone",
    role="operator",
    route="DELETE /drones/{name}",
    names=NAMES,
    errors=(404,),
    answer=DroneDocument,
    summary="Remove a drone; its credentials are revoked at once",
    more="Operators can remove their own drones; all others require the role admin.",
    tool=NoDoor("removal is left to people"),
    command=Command(
        "drone rm",
        "Remove a drone: its credentials are revoked at once, its orders are requeued, its history is kept.",
        "fleet drone rm NAME --yes",
        confirm="Remove drone {name}?",
        done="drone {name} removed",
    ),
)
DRAIN = Operation(
    name="drain_drone",
    role="operator",
    route="POST /drones/{name}/drain",
    names=NAMES,
    errors=(404,),
    answer=DroneDocument,
    summary="Drain a drone: it finishes its current runs and takes no new orders",
    tool=Tool(
        "drain_drone",
        "Drain a drone",
        SETS,
        "Drain a drone: it finishes its current runs and takes no new orders, for example before its machine is "
        "switched off. Orders that require this drone stay queued. Undo this with resume_drone. Requires the operator "
        "role.",
    ),
    command=Command(
        "drone drain",
        "Drain a drone: it finishes its current runs and takes no new orders.",
        "fleet drone drain NAME",
    ),
)
RESUME = Operation(
    name="resume_drone",
    role="operator",
    route="POST /drones/{name}/resume",
    names=NAMES,
    errors=(404,),
    answer=DroneDocument,
    summary="Resume a drained drone: it takes orders again",
    tool=Tool(
        "resume_drone",
        "Resume a drained drone",
        SETS,
        "Resume a drained drone: it takes orders again. Requires the operator role.",
    ),
    command=Command("drone resume", "Resume a drained drone: it takes orders again.", "fleet drone resume NAME"),
)
ROTATE_KEYS = Operation(
    name="rotate_drone_keys",
    role="admin",
    route="POST /drones/{name}/rotate-keys",
    names=NAMES,
    errors=(404, 409),
    answer=DroneDocument,
    summary="Replace a drone's keys when its runs have ended; the old ones are valid until then",
    tool=NoDoor("keys are left to people"),
    command=ByHand("keys rotate drone", "it is one of the commands for keys, and takes several drones"),
)
REVOKE_KEYS = Operation(
    name="revoke_drone_keys",
    role="admin",
    route="POST /drones/{name}/revoke-keys",
    names=NAMES,
    errors=(404,),
    answer=DroneDocument,
    summary="End a drone's keys at once: its orders are requeued, and it has to register again",
    tool=NoDoor("keys are left to people"),
    command=ByHand("keys rotate drone", "it is the option --force of that command"),
)
