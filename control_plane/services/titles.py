"""Titles of sessions, written by a model from the first prompt: best effort, one cheap call, on any free drone (G-034).

Until there is one, and if there never is, the first line of the prompt is the title. A name given by a user always
takes precedence.
"""

from __future__ import annotations

import re

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.core import Core
from control_plane.db.orders import Order
from control_plane.db.projects import Project, Provider
from control_plane.db.sessions import ChatSession
from control_plane.orders.conversations.new_session import new_session
from control_plane.orders.draft import Draft, create_order
from shared.states import OrderStatus
from shared.terminal import logs
from shared.work_order import Limits, WriteTitle

MAX_TITLE = 60
"""Characters."""
MAX_PROMPT = 4000
"""Characters of the prompt that the model reads."""
LIMITS = Limits(
    max_iterations=1, cost_limit=0.05, max_run_seconds=60, max_format_errors=1, retry_enabled=False, max_retries=0
)
PRIORITY = -20
"""Everything else goes first."""
_LABEL = re.compile(r"^(session )?title\s*:\s*", re.IGNORECASE)
_MARKS = " \t#*_`\"'\u201c\u201d\u2018\u2019\u00ab\u00bb"
"""What models put around a title."""
log = logs.get(__name__)


def ask_title(db: Session, core: Core, first: Order) -> str | None:
    """Ask for the title of a session whose first order this is; returns the order's id, or None if it needs none."""
    chat = db.get_one(ChatSession, first.session_id)
    if not core.settings.session_titles or not _needs_title(db, chat, first):
        return None
    asked = WriteTitle(session=chat.id, prompt=first.prompt[:MAX_PROMPT])
    project = db.get_one(Project, first.project_id)
    session = new_session(core, project, "plan", first.user_id)
    session.name = f"title of session {chat.id}"
    draft = Draft(
        project=project,
        provider=db.get_one(Provider, first.provider_id),
        session=session,
        prompt=f"Write a title for session {chat.id}.",
        user=first.user,
        user_id=first.user_id,
        mode="plan",
        purpose="title",
        asked=asked.model_dump(mode="json"),
        limits=LIMITS,
        priority=PRIORITY,
        # A run that is lost has cost its call: no second one is paid for.
        max_attempts=1,
    )
    return create_order(db, core, draft).id


def order_ended(db: Session, _core: Core, order: Order) -> None:
    """Store the title that a service order wrote; a failed one leaves the session without."""
    if order.purpose != "title":
        return
    asked = WriteTitle.model_validate(order.asked)
    if order.status != OrderStatus.SUCCEEDED:
        log.info("no title was written for a session", session=asked.session, order=order.id, why=order.reason)
        return
    # Locked: it may be renamed at the same time.
    named = select(ChatSession).where(
        ChatSession.id == asked.session, ChatSession.organization_id == order.organization_id
    )
    chat = db.scalar(named.with_for_update().execution_options(populate_existing=True))
    if chat is not None and not chat.title:
        chat.title = cleaned(order.response or "")


def cleaned(text: str) -> str:
    """One line of at most MAX_TITLE printable characters, without the marks that models put around titles."""
    lines = (" ".join("".join(c if c.isprintable() else " " for c in line).split()) for line in text.splitlines())
    first = next((line for line in (line.strip(_MARKS) for line in lines) if line), "")
    title = _LABEL.sub("", first).strip(_MARKS).removesuffix(".")
    if len(title) <= MAX_TITLE:
        return title
    words, _, _ = title[:MAX_TITLE].rpartition(" ")
    return f"{words or title[: MAX_TITLE - 1]}…"


def _needs_title(db: Session, chat: ChatSession, first: Order) -> bool:
    if chat.name or chat.title or chat.task_id is not None or first.purpose != "work":
        return False
    earlier = select(Order.id).where(Order.session_id == chat.id, Order.id != first.id)
    return db.scalar(earlier.limit(1)) is None
