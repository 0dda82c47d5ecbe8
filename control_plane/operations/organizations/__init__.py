"""Organizations: the units of isolation. `default` always exists."""

from control_plane.core.lookups.organizations import (
    DEFAULT,
    find_organization,
    in_organization,
    locked_organization,
    system_caller,
)
from control_plane.operations.organizations.acronyms import next_acronym
from control_plane.operations.organizations.changing import create, create_within, edit, pause, resume
from control_plane.operations.organizations.reading import document_of, list_, show
from control_plane.operations.organizations.removing import remove
from control_plane.orders.numbers import ORDERS, next_number

__all__ = [
    "DEFAULT",
    "ORDERS",
    "create",
    "create_within",
    "document_of",
    "edit",
    "find_organization",
    "in_organization",
    "list_",
    "locked_organization",
    "next_acronym",
    "next_number",
    "pause",
    "remove",
    "resume",
    "show",
    "system_caller",
]
