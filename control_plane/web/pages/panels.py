"""The panels beside a conversation: each is a part of its page, and a page of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from control_plane.core import Caller, Core
from control_plane.documents.orders import OrderSummary
from control_plane.web.pages.frame import frame, rights
from control_plane.web.presentation import title
from control_plane.web.rendering import page, wants_part


def panel_page(
    request: Request, caller: Caller, order: OrderSummary, name: str, context: Mapping[str, Any]
) -> Response:
    """The panel `session/<name>.html`, alone if a script asks for it."""
    core: Core = request.app.state.core
    if wants_part(request):
        return page(f"session/{name}.html", {**rights(core, caller), "order": order, **context})
    around = frame(request, caller, "orders", [f"order:{order.id}"])
    shown = {"order": order, "title": title(order), "panel": name, **context}
    return page("session/panel_page.html", {**around, **shown})
