"""What a message says: its items in words, each with its page and, for a question, a one-use answer link.

All texts come from users, models and repositories: hidden characters are marked, and titles are one line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

from sqlalchemy.orm import Session

from control_plane.attention.answer_links import new_link
from control_plane.attention.recipients import Recipient
from control_plane.attention.still_waiting import is_over, open_wait_of
from control_plane.contract.declarations.operation import RANKS, Role
from control_plane.core import Core
from control_plane.db.attention import AttentionNotice
from control_plane.db.waits import Wait
from shared.visible_text import visible, visible_prose

MOST_ITEMS = 20
MAX_LINE = 150
WAITS = frozenset({"approvals", "questions", "tasks"})
"""The kinds of what waits for a user, in the Inbox until it is answered."""
_ASKS = {
    "approvals": "Approval needed",
    "questions": "Question",
    "tasks": "Task is back with you",
    "checks": "Check failed",
    "orders": "Order ended",
    "budgets": "Budget used up",
    "drones": "Drone needs care",
    "test": "Test message",
}


@dataclass(frozen=True)
class Item:
    """One thing that a message tells."""

    kind: str
    asks: str
    """What is asked of the user, in two or three words."""
    title: str
    text: str
    command: str
    """All of what would run; empty if nothing would."""
    choices: list[str]
    deadline: str | None
    url: str
    """Its page; requires a log-in."""
    answer_url: str | None
    """The one-use link; None if there is nothing to answer, or the user may not."""


@dataclass(frozen=True)
class MessageContent:
    """What one message says."""

    subject: str
    items: list[Item]
    left_out: int
    """Further items, which only the Inbox shows."""
    inbox_url: str
    settings_url: str

    def document(self) -> dict[str, Any]:
        """As JSON, for webhooks."""
        return asdict(self)


def content_of(db: Session, core: Core, to: Recipient, notices: Sequence[AttentionNotice]) -> MessageContent | None:
    """What to say now; None if nothing of it waits any more. Creates the answer links."""
    alive = [each for each in notices if not is_over(db, core, each)]
    if not alive:
        return None
    items = [_item(db, core, to, each) for each in alive[:MOST_ITEMS]]
    url = core.settings.url
    return MessageContent(
        _subject(items, len(alive)), items, len(alive) - len(items), f"{url}/", f"{url}/settings/attention"
    )


def one_line(text: str, limit: int = MAX_LINE) -> str:
    """The text on one line, with hidden characters marked: safe in a header."""
    line = " ".join(visible(" ".join(text.split())).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def _subject(items: Sequence[Item], count: int) -> str:
    if count > 1:
        waits = all(each.kind in WAITS for each in items)
        return f"{count} things wait for you" if waits else f"{count} things for you"
    return one_line(f"{items[0].asks}: {items[0].title}")


def _item(db: Session, core: Core, to: Recipient, notice: AttentionNotice) -> Item:
    wait = open_wait_of(db, notice) if notice.wait_number is not None else None
    return Item(
        kind=notice.kind,
        asks=_ASKS.get(notice.kind, "Notice"),
        title=one_line(notice.title) or "Untitled",
        text=visible_prose(notice.text),
        command=visible(str(wait.details.get("command", ""))) if wait else "",
        choices=[one_line(each) for each in wait.choices] if wait else [],
        deadline=f"{wait.deadline:%Y-%m-%d %H:%M} UTC" if wait and wait.deadline else None,
        url=f"{core.settings.url}{notice.page}",
        answer_url=new_link(db, core, to, wait) if wait and _may_answer(to, wait) else None,
    )


def _may_answer(to: Recipient, wait: Wait) -> bool:
    return RANKS[to.role] >= RANKS[cast("Role", wait.role)]
