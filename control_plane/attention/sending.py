"""How an attempt to send a message ended."""

from __future__ import annotations

from dataclasses import dataclass

SECONDS = 15.0
"""Time limit for one attempt."""


@dataclass(frozen=True)
class SendResult:
    """The result of one attempt."""

    error: str
    """Empty if the message was accepted."""
    final: bool = False
    """Another attempt would end the same way."""
    gone: bool = False
    """The browser ended its subscription."""
