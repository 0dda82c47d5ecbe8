"""Converts problem documents (RFC 9457) back to the fleet's errors, in the same way for every client."""

from __future__ import annotations

from shared.errors import (
    Conflict,
    FleetError,
    FleetFault,
    Forbidden,
    Invalid,
    NotFound,
    Precondition,
    Refused,
    TooLarge,
    TooOften,
    Unauthenticated,
)

_KINDS = (Unauthenticated, Forbidden, NotFound, Conflict, Precondition, TooLarge, Invalid, TooOften)
_BY_STATUS: dict[int, type[FleetError]] = {kind.http_status: kind for kind in _KINDS}
CLIENT_ERRORS = range(400, 500)


def kind_of(status: int) -> type[FleetError]:
    """The error class for an HTTP status."""
    return _BY_STATUS.get(status) or (Refused if status in CLIENT_ERRORS else FleetFault)


def error_of(status: int, document: object) -> FleetError | None:
    """The error for a problem document; None if `document` is not from a control plane."""
    if not isinstance(document, dict) or not isinstance(document.get("code"), str):
        return None
    what = document.get("detail") or document.get("title") or f"the control plane returned HTTP {status}"
    parts = {name: str(document.get(name) or "") for name in ("why", "next", "help")}
    return kind_of(status)(str(what), code=document["code"], **parts)
