"""Whether there is work for the quick loops: one question for all that send, and one for those on open orders.

If each asked the database itself, an idle fleet would spend most of its processor time on questions without an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from threading import Event

from sqlalchemy import SelectBase, exists, select, union_all

from control_plane.attention import outbox as attention
from control_plane.automation import schedules, webhook_outbox
from control_plane.core import Core
from control_plane.db.orders import Dispatch, Order
from control_plane.drones import inbox
from control_plane.supervisor import outbox_relay
from control_plane.tracing import exporter

Question = Callable[[datetime], SelectBase]
"""Selects the rows that are due at this time."""

OUTBOXES: Mapping[str, Question] = {
    "relay": lambda _: outbox_relay.unpublished(),
    "inbox": lambda _: inbox.unsent(),
    "webhooks": webhook_outbox.due,
    "messages": attention.due,
    "traces": exporter.due,
    "schedules": schedules.due,
}
"""What each loop of this name sends."""
OPEN_ORDERS: Mapping[str, Question] = dict.fromkeys(
    ("placing", "unclaimed", "reasons", "suspending", "continuing", "lost"),
    lambda _: union_all(
        select(Order.id).where(Order.ended_at.is_(None)), select(Dispatch.id).where(Dispatch.closed_at.is_(None))
    ),
)
"""What watches over orders that wait or run, and over runs whose order moved on."""


def wake_for(core: Core, questions: Mapping[str, Question], loops: Mapping[str, Event]) -> None:
    """Wake the loops that have work."""
    now = core.clock.now()
    asked = list(dict.fromkeys(questions.values()))
    with core.database.read() as db:
        answers = dict(zip(asked, db.execute(select(*(exists(ask(now)) for ask in asked))).one(), strict=True))
    for name, ask in questions.items():
        if answers[ask]:
            loops[name].set()
