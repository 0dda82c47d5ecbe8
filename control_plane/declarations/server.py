"""The server itself: the caller's identity, and the server's checks."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from control_plane.declarations.operation import ByHand, NoDoor, Operation


class Identity(BaseModel):
    """The caller as the server sees it."""

    organization: str
    user: str
    role: str


WHOAMI = Operation(
    name="whoami",
    role="viewer",
    route="GET /whoami",
    run="doctor:whoami",
    answer=Identity,
    summary="The caller's organization, name and role",
    tool=NoDoor("list_organizations says where a token may act, and a refusal names its role"),
    command=NoDoor("`fleet doctor` says as whom it asks"),
)
DOCTOR = Operation(
    name="doctor",
    role="operator",
    route="GET /doctor",
    run="doctor:doctor",
    answer=list[dict[str, Any]],
    summary="What the server finds of itself",
    more="Each check has a code, a state (OK, WARN, FAIL), what was examined and found, and the one fix.",
    tool=NoDoor("its fixes are commands for the machine that the server runs on"),
    command=ByHand("doctor", "it also checks the machine that it runs on, and can fix what it finds"),
)
