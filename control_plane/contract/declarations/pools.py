"""Pools of ephemeral drones, which a cloud or Kubernetes starts when orders wait."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from control_plane.contract.declarations.operation import About, Command, NoDoor, Operation
from control_plane.contract.declarations.tokens import SECRETS_STAY_OUT
from control_plane.contract.documents.base import Document, Request

NAME = About("pool", "The pool's name; its drones are named after it.", source="pools:name")
LABELS = About("labels", "Label k=v fixed on its drones.", absent="no labels", flag="--label", none="--no-labels")
MOST = About("at most", "Maximum number of its drones at the same time.", flag="--max-drones", metavar="N")
EXPIRES = About("expires", "Lifetime of the token in seconds.", unit="seconds", flag="--expires", input="duration")
YEAR = 365 * 24 * 3600
MOST_DRONES = 1000


class PoolRequest(Request):
    name: Annotated[str, NAME]
    labels: Annotated[dict[str, str], LABELS] = Field(default_factory=dict)
    max_drones: Annotated[int, MOST] = Field(10, ge=1, le=MOST_DRONES)
    expires_s: Annotated[int, EXPIRES] = Field(YEAR, ge=1, le=10 * YEAR)


class PoolEdit(Request):
    """Only the given fields change. Present drones keep their labels, and stay if there are too many."""

    labels: Annotated[dict[str, str] | None, LABELS] = None
    max_drones: Annotated[int | None, MOST] = Field(None, ge=1, le=MOST_DRONES)


class PoolRotation(Request):
    expires_s: Annotated[int, EXPIRES] = Field(YEAR, ge=1, le=10 * YEAR)


class PoolDocument(Document):
    name: Annotated[str, NAME]
    token: str | None = None
    """The text of the join token, shown once: when the pool is created and when its token is replaced."""
    token_id: Annotated[str, About("token")]
    """Its id; `revoke_join_token` ends it."""
    labels: Annotated[dict[str, str], LABELS]
    waiting: Annotated[int, About("waiting")]
    """Orders that wait now, that a drone of the pool could run, and that no drone has room for."""
    drones: Annotated[int, About("drones")]
    """Its present drones."""
    working: Annotated[int, About("working")]
    """Those of them that have an order."""
    max_drones: Annotated[int, MOST]
    wanted: Annotated[int, About("wanted")]
    """The number of its drones that there should be now."""
    created_at: Annotated[datetime, About("created")]
    expires_at: Annotated[datetime, About("expires")]
    """When the token expires; drones that joined stay."""
    revoked_at: Annotated[datetime | None, About("revoked")]
    """When the token was revoked; null: drones may join with it."""


NAMES = {"name": Annotated[str, Field(max_length=64), NAME]}
FOR_SCALERS = NoDoor("it is for autoscalers, which read it by HTTP, with the command, or as metrics")
FOR_PEOPLE = NoDoor("only people decide which machines may join")

ADD = Operation(
    name="add_pool",
    role="admin",
    route="POST /pools",
    status=201,
    errors=(409,),
    request=PoolRequest,
    answer=PoolDocument,
    summary="Add a pool of ephemeral drones",
    more="`token` is shown only once.",
    tool=SECRETS_STAY_OUT,
    command=Command(
        "pool add",
        "Add a pool and print only its token, with which `drone start --ephemeral` joins.",
        "fleet pool add burst --label cloud=yes --max-drones 20",
        arguments=("name",),
    ),
)
LIST = Operation(
    name="list_pools",
    role="viewer",
    route="GET /pools",
    answer=list[PoolDocument],
    summary="List pools, without their tokens",
    tool=FOR_SCALERS,
    command=Command(
        "pool ls",
        "List the pools of ephemeral drones.",
        "fleet pool ls",
        columns=("name", "drones", "max_drones", "working", "waiting", "wanted", "labels", "expires_at", "revoked_at"),
        empty="no pools; fleet pool add creates one",
    ),
)
SHOW = Operation(
    name="show_pool",
    role="viewer",
    route="GET /pools/{name}",
    names=NAMES,
    errors=(404,),
    answer=PoolDocument,
    summary="Show a pool: its drones, what waits for them, and how many there should be",
    tool=FOR_SCALERS,
    command=Command(
        "pool show",
        "Show a pool: its drones, what waits for them, and how many there should be.",
        "fleet pool show burst --json",
    ),
)
EDIT = Operation(
    name="edit_pool",
    role="admin",
    route="PATCH /pools/{name}",
    names=NAMES,
    errors=(404,),
    request=PoolEdit,
    answer=PoolDocument,
    summary="Change the given fields of a pool",
    more="Present drones keep their labels, and stay if there are too many.",
    tool=FOR_PEOPLE,
    command=Command(
        "pool edit", "Change a pool; its present drones stay as they are.", "fleet pool edit burst --max-drones 20"
    ),
)
ROTATE = Operation(
    name="rotate_pool",
    role="admin",
    route="POST /pools/{name}/rotate",
    names=NAMES,
    errors=(404,),
    request=PoolRotation,
    answer=PoolDocument,
    summary="Replace a pool's token; no drone can join with the old one any more",
    more="`token` is shown only once. Drones that joined stay.",
    tool=SECRETS_STAY_OUT,
    command=Command(
        "pool rotate",
        "Replace a pool's token and print only the new one; no drone can join with the old one any more.",
        "fleet pool rotate burst",
    ),
)
REMOVE = Operation(
    name="remove_pool",
    role="admin",
    route="DELETE /pools/{name}",
    names=NAMES,
    errors=(404,),
    answer=PoolDocument,
    summary="Remove a pool; its drones finish their runs and leave",
    tool=FOR_PEOPLE,
    command=Command(
        "pool rm",
        "Remove a pool: its token ends at once; its drones finish their runs and leave.",
        "fleet pool rm burst --yes",
        confirm="Remove pool {name}?",
        done="pool {name} removed; drones that finish their runs and leave: {drones}",
    ),
)
