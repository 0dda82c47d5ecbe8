"""How states and texts appear on pages: each state has words and one of five kinds, which give it colour and shape."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from control_plane.contract.documents.orders import OrderSummary
from shared.states import OrderStatus

Kind = Literal["ok", "run", "fail", "ask", "off"]
"""It went well; it is at work; it failed; it needs a person; it rests."""

_KINDS: dict[str, Kind] = {
    "ok": "ok",
    "succeeded": "ok",
    "success": "ok",
    "finished": "ok",
    "online": "ok",
    "done": "ok",
    "unchanged": "ok",
    "passed": "ok",
    "open": "run",
    "running": "run",
    "processing": "run",
    "assigned": "run",
    "busy": "run",
    "in_progress": "run",
    "checking": "run",
    "failed": "fail",
    "error": "fail",
    "lost": "fail",
    "unresponsive": "fail",
    "revoked": "fail",
    "awaiting_approval": "ask",
    "asks": "ask",
    "incomplete": "ask",
    "canceling": "ask",
    "preempted": "ask",
    "draining": "ask",
    "warn": "ask",
}


@dataclass(frozen=True)
class ShownState:
    """A state in words, with its kind."""

    words: str
    kind: Kind


def state_kind(state: str) -> Kind:
    """The kind of any state; `off` for one that is at rest or unknown."""
    return _KINDS.get(state.lower(), "off")


def shown_state(order: OrderSummary) -> ShownState:
    """The state of an order as a list shows it: what a person would say, not only the stored word."""
    if order.status == OrderStatus.AWAITING_APPROVAL:
        return ShownState("waits for you", "ask")
    if order.status == OrderStatus.SUCCEEDED and order.verification == "failed":
        return ShownState("checks failed", "fail")
    state = order.outcome or order.status
    return ShownState(words(state), state_kind(state))


def words(state: str) -> str:
    """A stored state in words: `awaiting approval`."""
    return state.replace("_", " ")


def title(order: OrderSummary) -> str:
    """What an order is called: as its session; the line of the turn itself is `OrderSummary.title`."""
    return order.session_title or "Empty prompt"


def moment(at: datetime) -> str:
    """The exact time, for readers without scripts: `2026-11-25 14:02 UTC`."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def sentence(text: str) -> str:
    """A message as a sentence: it begins with a capital letter, unless it begins with a name or a code."""
    first = text.split(" ", 1)[0]
    return text[:1].upper() + text[1:] if first.isalpha() else text
