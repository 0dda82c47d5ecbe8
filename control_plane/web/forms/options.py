"""The values that a form offers for a field: those in a list of the fleet."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from control_plane.contract.declarations.operation import NOUNS, Operation, operations_of
from control_plane.core import Caller, Core
from control_plane.operations.gateway import OperationCall, perform, permitted

MOST = 500


def offered(core: Core, caller: Caller, source: str) -> Sequence[str]:
    """The values of `projects:slug` or `agents:name|user`; those of a list that the caller may not see are missing."""
    listing, *more = source.split("|")
    noun, _, field = listing.partition(":")
    documents = documents_of(core, caller, noun)
    return [*(str(value) for each in documents[:MOST] if (value := getattr(each, field, None))), *more]


def documents_of(core: Core, caller: Caller, noun: str) -> Sequence[Any]:
    """The list of a noun, such as `projects`; empty for one that the caller may not see."""
    operation = _list_of(noun)
    if operation is None or not permitted(operation, caller):
        return ()
    documents: Sequence[Any] = perform(core, caller, OperationCall(operation, {}))
    return documents


@cache
def _list_of(noun: str) -> Operation | None:
    """The operation that lists a noun."""
    listing = (each for each in operations_of(noun) if each.method == "GET" and not each.names) if noun in NOUNS else ()
    return next((each for each in listing if each.path == f"/{noun.replace('_', '-')}"), None) or _in_organization(noun)


def _in_organization(noun: str) -> Operation | None:
    if noun not in NOUNS:
        return None
    path = f"/organizations/{{organization}}/{noun}"
    return next((each for each in operations_of(noun) if each.method == "GET" and each.path == path), None)
