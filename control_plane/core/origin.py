"""Where a request came from: its door and its network address, for the audit log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from control_plane.core import AuthenticatedDrone
from control_plane.db.audit_chain import AuditEntry


@dataclass
class RequestOrigin:
    """One request. Its threads share it, so that its refusal is recorded once."""

    door: str = "control plane"
    address: str = ""
    """The client's network address; empty for the control plane itself."""
    reporting: AuthenticatedDrone | None = None
    """The drone whose report is being processed."""
    only_counted: Callable[[AuditEntry], bool] = lambda _: False
    """Counts a refusal, and says whether its sender had so many that it gets no record of its own."""
    traceparent: str = ""
    """The span of another system that the request belongs to: a `shared.trace_context.TraceParent`; empty: none."""
    refused_with: str = ""
    """The error's code, once the request was refused."""
    refusal_recorded: bool = False
    """It is in the audit log, or counted there, or needs no record."""


_ORIGIN: ContextVar[RequestOrigin | None] = ContextVar("origin", default=None)


def current_origin() -> RequestOrigin:
    """The origin of the request that this context serves, else the control plane itself."""
    return _ORIGIN.get() or RequestOrigin()


@contextmanager
def coming_from(origin: RequestOrigin) -> Iterator[None]:
    """Serve a request of this origin."""
    token = _ORIGIN.set(origin)
    try:
        yield
    finally:
        _ORIGIN.reset(token)
