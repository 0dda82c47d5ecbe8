"""A span, and the ids of traces and spans, which are derived: whoever builds a trace again gets the same ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Literal, TypeAlias

from shared.trace_context import TraceParent

AttributeValue: TypeAlias = str | bool | int | float | Sequence[str]
Attributes: TypeAlias = Mapping[str, AttributeValue | None]
"""By name; None: unknown, and not sent."""


@dataclass(frozen=True)
class TraceSpan:
    """Something that took time. `error` is a short code; empty: it succeeded, or that is not said of it."""

    name: str
    id: bytes
    parent: bytes
    """Empty: it is the root of its trace."""
    began: datetime
    ended: datetime
    attributes: Attributes = field(default_factory=dict)
    error: str = ""
    links: tuple[tuple[bytes, bytes], ...] = ()
    """Trace and span of what it depends on."""
    kind: Literal["internal", "client"] = "internal"
    remote_parent: bool = False


def trace_id(order_id: str, traceparent: str | None) -> bytes:
    """The trace of an order: that of its sender, else one of its own."""
    parent = TraceParent.read(traceparent or "")
    return parent.trace_id if parent is not None else sha256(f"trace {order_id}".encode()).digest()[:16]


def span_id(*key: object) -> bytes:
    """The id of the span with this key, which begins with the id of its order or run."""
    return sha256("\0".join(("span", *map(str, key))).encode()).digest()[:8]


def root_id(order_id: str) -> bytes:
    """The span of an order, from its submission to its first end."""
    return span_id(order_id, "order")


def within(began: datetime, ended: datetime, first: datetime, last: datetime) -> tuple[datetime, datetime]:
    """The part of a time that lies between `first` and `last`; it has no length if there is none."""
    began = min(max(began, first), last)
    return began, min(max(ended, began), last)
