"""The trace context of W3C: which span of another system caused a request."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

_FORM = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.ASCII)


@dataclass(frozen=True)
class TraceParent:
    """The span that a request belongs to."""

    trace_id: bytes
    span_id: bytes
    sampled: bool
    """Whether its sender records the trace."""

    @classmethod
    def read(cls, header: str) -> Self | None:
        """The value of a header `traceparent`; None for one that is to be ignored according to the standard."""
        found = _FORM.fullmatch(header)
        if found is None:
            return None
        version, trace_id, span_id, flags, more = found.groups()
        if version == "ff" or (version == "00" and more) or not int(trace_id, 16) or not int(span_id, 16):
            return None
        return cls(bytes.fromhex(trace_id), bytes.fromhex(span_id), bool(int(flags, 16) & 1))

    def __str__(self) -> str:
        return f"00-{self.trace_id.hex()}-{self.span_id.hex()}-{'01' if self.sampled else '00'}"


def valid_traceparent(header: str) -> str:
    """The header in the form of version 00; empty if it is to be ignored."""
    return str(TraceParent.read(header) or "")
