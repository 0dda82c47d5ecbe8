"""The conversation of a session as a page, and what changed of it as a part."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from control_plane.contract.documents.orders import OrderSummary
from control_plane.contract.documents.session_tree import note_text, places
from control_plane.core import Caller, Core
from control_plane.operations import modes, providers
from control_plane.operations.orders import reading
from control_plane.operations.orders.step_reading import StepRange, read_status_and_steps
from control_plane.web.conversation.blocks import ChatBlock
from control_plane.web.conversation.grouping import chat_of
from control_plane.web.conversation.view import (
    ACTIVE,
    ConversationView,
    changed_files,
    checks_of,
    context_use,
    files_of,
)
from control_plane.web.conversation.window import Cursor, Window, opening_of, window
from control_plane.web.presentation import title
from control_plane.web.rendering import page, rendered
from shared.states import ENDED, OrderStatus

MOST_NEWS = 400
"""Steps in one answer about news; the page asks again for more."""
MOST_PLACES = 60
"""Turns in the map of a session."""
DEEPEST = 6
PANELS = ("changes", "checks", "log", "details")
AROUND = ("head", "outcome", "map", "now", "tabs", "acts")
"""Parts around the conversation, each of them a template."""


def conversation_page(request: Request, caller: Caller, around: dict[str, Any], view: ConversationView) -> Response:
    """The whole page."""
    core: Core = request.app.state.core
    before = Cursor.of(request.query_params.get("before", ""))
    shown = window(core, caller, view.turns, before, active=view.active) if view.turns else Window([], None)
    panel = request.query_params.get("panel", "")
    context = {
        **around,
        **surroundings(core, caller, view),
        "window": shown,
        "before": before,
        "panel": panel if panel in PANELS else "",
    }
    return page("session/page.html", context)


class ShownSoFar(BaseModel):
    """What a page that asks for news has already."""

    model_config = ConfigDict(frozen=True)

    resume: int = Field(default=0, ge=0, le=2**53)
    """As `Chat.resume`; 0: the turn's beginning, too."""
    last: int = Field(default=0, ge=0, le=2**53)
    """The last step that it has."""
    around: str = Field(default="", max_length=200)
    """What the last answer said of the parts around the conversation, which are sent only if they have changed."""
    whole: bool = False
    """The turn is new to the page."""
    session: str = ""
    """The session that the page shows: a fork has turns of the session that it began from."""


def conversation_news(
    core: Core, caller: Caller, around: dict[str, Any], view: ConversationView, known: ShownSoFar
) -> Response:
    """What changed since the page was made: later blocks, and everything around the conversation."""
    assert view.order is not None
    opening = [opening_of(view.turns[-1])] if known.whole and view.turns else []
    context = {
        **around,
        **surroundings(core, caller, view),
        **_blocks(core, caller, view.order.id, known, opening),
        "ended": view.ended,
    }
    shows_acts = context["may_submit"] and view.session.project
    names = AROUND if shows_acts else AROUND[:-1]
    parts = {
        sha256(part.encode()).hexdigest()[:8]: part for part in (rendered(f"session/{n}.html", context) for n in names)
    }
    changed = [part for digest, part in parts.items() if digest not in known.around.split(".")]
    return page("session/news.html", {**context, "parts": changed, "around": ".".join(parts)})


def later_steps(core: Core, caller: Caller, order_id: str, known: ShownSoFar) -> Response:
    """The later blocks alone: what is around the conversation may follow a step a little later."""
    return page("session/news.html", {**_blocks(core, caller, order_id, known), "view": None, "parts": ()})


def _blocks(
    core: Core, caller: Caller, order_id: str, known: ShownSoFar, opening: Sequence[ChatBlock] = ()
) -> dict[str, Any]:
    """The later blocks. More steps than usual are read where the page would have to ask for the same ones again."""
    limit, stuck = MOST_NEWS, True
    while stuck:
        wanted = StepRange(after=known.resume, limit=limit)
        status, steps = read_status_and_steps(core, caller, order_id, wanted)
        chat = chat_of(order_id, steps, active=status in ACTIVE, known=known.last)
        more = len(steps) == limit
        stuck, limit = more and chat.resume <= known.resume, limit * 2
    return {
        "window": Window([*opening, *chat.blocks], None, max(chat.resume, known.resume), chat.last or known.resume),
        "more": more,
        "resumed": chat.resumed and not known.whole,
        "ended": status in ENDED,
    }


def surroundings(core: Core, caller: Caller, view: ConversationView) -> dict[str, Any]:
    """What both need beside the blocks."""
    order, known_providers = view.order, providers.list_(core, caller)
    found: dict[str, Any] = {
        "view": view,
        "session": view.session,
        "order": order,
        "title": view.session.title or (title(order) if order else "New session"),
        "todo": [],
        "unheard": [],
        "checks": [],
        "context": None,
        "files": None,
        "changed": 0,
        "removed": None,
        "decided": False,
        "can_cancel": False,
        "can_run_again": False,
        "map": _map(view),
        "may_change_way": not view.session.unfinished,
        "providers": known_providers,
        "modes": modes.list_(core, caller, view.session.project),
    }
    if order is None:
        return found
    todo, unheard = reading.beside_summary(core, caller, order.id)
    return found | {
        "todo": todo,
        "unheard": unheard,
        "plan": reading.plan_of(core, caller, order.id),
        "checks": checks_of(core, caller, order),
        "context": context_use(core, caller, order, known_providers),
        "files": files_of(core, caller, order),
        "changed": changed_files(core, caller, order.id),
        "removed": reading.removed_from(core, caller, order.id) if view.ended else None,
        "decided": bool(order.waiting_for and reading.is_decided(core, caller, order.id, order.waiting_for.call_id)),
        "can_cancel": not view.ended and order.status != OrderStatus.CANCELING,
        "can_run_again": _can_run_again(order),
    }


def _can_run_again(order: OrderSummary) -> bool:
    return order.task is None and order.status in {OrderStatus.FAILED, OrderStatus.CANCELED}


def _map(view: ConversationView) -> list[dict[str, Any]]:
    """The session's turns as a tree, the last ones if there are many."""
    rows = [
        {"entry": place.entry, "depth": min(place.depth, DEEPEST), "notes": [note_text(note) for note in place.notes]}
        for place in places([entry.model_dump() for entry in view.session.entries])
        if place.entry or place.notes
    ]
    return rows[-MOST_PLACES:]
