"""The rule by which an ephemeral drone leaves; without what watches it, since `drone start` needs no queue."""

from __future__ import annotations

from dataclasses import dataclass

from shared.durations import roughly

LEFT = 20
"""The exit code of a worker that left: `drone start` starts no other one."""


@dataclass(frozen=True)
class LeaveRule:
    """When the drone leaves."""

    idle_s: int
    """After this time without work."""
    orders: int | None = None
    """After this many orders; None: however many it runs."""

    @property
    def text(self) -> str:
        """`after 5 min without work, or after 1 order`"""
        plural = "" if self.orders == 1 else "s"
        orders = f", or after {self.orders} order{plural}" if self.orders is not None else ""
        return f"after {roughly(self.idle_s)} without work{orders}"
