"""The pages: log-in, the board, an order, sessions."""

from __future__ import annotations

from starlette.routing import BaseRoute

from control_plane.web.pages import board, login, openid, order, sessions


def page_routes() -> list[BaseRoute]:
    """All pages, and what their forms send to."""
    return [route for page in (login, openid, board, order, sessions) for route in page.router.routes]
