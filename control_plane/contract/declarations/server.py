"""The server itself: the caller's identity, and the server's checks."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from control_plane.contract.declarations.operation import ByHand, NoDoor, Operation


class Identity(BaseModel):
    """The authenticated caller."""

    organization: str
    user: str
    role: str


WHOAMI = Operation(
    name="whoami",
    role="viewer",
    route="GET /whoami",
    answer=Identity,
    summary="Show the caller's organization, user name and role",
    tool=NoDoor("list_organizations shows where a token may act, and an error names its role"),
    command=NoDoor("`fleet doctor` shows the caller"),
)
DOCTOR = Operation(
    name="doctor",
    role="operator",
    route="GET /doctor",
    answer=list[dict[str, Any]],
    summary="Run the server's health checks",
    more="Each check has a code, a state (OK, WARN, FAIL), its subject, the finding, and one fix.",
    tool=NoDoor("its fixes are commands for the server's machine"),
    command=ByHand("doctor", "it also checks the local machine and can apply fixes"),
)
