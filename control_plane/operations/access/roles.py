"""Roles: a viewer reads, an operator also submits and cancels, an admin does everything."""

from __future__ import annotations

from typing import get_args

from control_plane.contract.declarations.operation import RANKS, Role
from control_plane.core import Caller
from shared.errors import Forbidden, Invalid


def require(caller: Caller, role: Role) -> None:
    """Check that the caller has `role` or a higher one. Raises Forbidden, which names both roles."""
    if RANKS[caller.role] < RANKS[role]:
        raise Forbidden(
            f"this requires the role {role}; your token has the role {caller.role}",
            code="E-ROLE",
            next=f"ask an admin for: fleet api-token add --role {role}",
        )


def require_everywhere(caller: Caller) -> None:
    """Check that the caller may act in every organization. Raises Forbidden (`E-EVERYWHERE`)."""
    if not caller.everywhere:
        raise Forbidden(
            "this requires a token for all organizations",
            code="E-EVERYWHERE",
            why=f"your token is limited to organization {caller.organization!r}",
            next="ask the fleet administrator for: fleet api-token add --role admin --everywhere",
        )


def may(caller: Caller, role: Role) -> bool:
    """Whether the caller has `role` or a higher one; for pages that omit a button."""
    return RANKS[caller.role] >= RANKS[role]


def lowest(*roles: Role) -> Role:
    """The role with the fewest rights among these."""
    return min(roles, key=RANKS.__getitem__)


def parse_role(text: str) -> Role:
    """The role with this name. Raises Invalid, which lists the three roles."""
    for role in get_args(Role):
        if text == role:
            return _known(role)
    raise Invalid(f"unknown role {text[:80]!r}", code="E-ROLE-NAME", next="use admin, operator or viewer").of(text)


def _known(role: Role) -> Role:
    return role
