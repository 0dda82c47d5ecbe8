"""Drones: their identity, their state, and whether they take orders."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from control_plane.declarations.operation import READS, SETS, About, ByHand, Command, NoDoor, Operation, Tool
from control_plane.documents.base import Document

NAME = About("drone", "The drone's name.", source="drones:name")


class DroneDocument(Document):
    id: str
    name: Annotated[str, NAME]
    organization: str | None
    """The organization that owns it; null for a caller whose organization it only serves."""
    serves: list[str]
    """The organizations that it serves besides its own, as far as the caller may see them; `*`: all."""
    status: str
    labels: dict[str, str]
    concurrency: int
    running: int
    queued: int
    sandbox: str
    version: str
    host: str
    draining: bool
    registered_at: datetime
    last_seen_at: datetime | None
    note: str = ""
    """A note for people: it runs on another machine than the one it was registered on."""
    doing: list[dict[str, Any]] = Field(default_factory=list)
    """What each of its runs is doing, from the last beat."""


FOR_MODELS = {"name": "The drone's name; list_drones has them."}
NAMES = {"name": Annotated[str, Field(max_length=255), NAME]}
TEXT = "drone_text:drone_text"

LIST = Operation(
    name="list_drones",
    role="viewer",
    route="GET /drones",
    run="drones.managing:list_drones",
    answer=list[DroneDocument],
    summary="All drones",
    tool=Tool(
        "list_drones",
        "List drones",
        READS,
        "The drones (workers on people's machines) that serve the organization: status (online, busy, draining, "
        "unresponsive, offline), labels, how many runs each has in hand (running, of at most concurrency) and how many "
        "orders wait for it (queued).",
    ),
    command=ByHand("drones", "it is a command of the top level, whose help loads no declaration"),
)
SHOW = Operation(
    name="show_drone",
    role="viewer",
    route="GET /drones/{name}",
    names=NAMES,
    errors=(404,),
    run="drones.managing:show_drone",
    answer=DroneDocument,
    summary="One drone",
    tool=NoDoor("list_drones has every field of each"),
    command=Command("drone show", "Show one drone and what it is doing.", "fleet drone show NAME", text=TEXT),
)
REMOVE = Operation(
    name="remove_drone",
    role="admin",
    route="DELETE /drones/{name}",
    names=NAMES,
    errors=(404,),
    run="drones.managing:remove_drone",
    answer=DroneDocument,
    summary="Remove a drone; its access ends at once",
    tool=NoDoor("what a person registered is removed by a person"),
    command=Command(
        "drone rm",
        "Remove a drone: its keys and its queue end at once, its history stays.",
        "fleet drone remove NAME --yes",
        confirm="Remove drone {name}?",
        done="{name} is removed",
    ),
)
DRAIN = Operation(
    name="drain_drone",
    role="operator",
    route="POST /drones/{name}/drain",
    names=NAMES,
    errors=(404,),
    run="drones.managing:drain",
    answer=DroneDocument,
    summary="Let it finish what it has and take nothing new",
    tool=Tool(
        "drain_drone",
        "Let a drone take no more orders",
        SETS,
        "Let a drone finish what it runs and take nothing new, before its machine is switched off for example. Orders "
        "that wait for it alone go on waiting. resume_drone undoes it. For operators.",
        about=FOR_MODELS,
    ),
    command=Command(
        "drone drain", "Let a drone finish what it holds and give it nothing new.", "fleet drone drain NAME", text=TEXT
    ),
)
RESUME = Operation(
    name="resume_drone",
    role="operator",
    route="POST /drones/{name}/resume",
    names=NAMES,
    errors=(404,),
    run="drones.managing:resume",
    answer=DroneDocument,
    summary="Let it take orders again",
    tool=Tool(
        "resume_drone",
        "Let a drone take orders again",
        SETS,
        "Let a drone that was drained take orders again. For operators.",
        about=FOR_MODELS,
    ),
    command=Command("drone resume", "Give a drained drone work again.", "fleet drone resume NAME", text=TEXT),
)
