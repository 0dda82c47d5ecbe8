"""The pages: log-in, the board, an order, sessions."""

from __future__ import annotations

from fastapi import APIRouter

from control_plane.web.pages import board, login, order, sessions

page_router = APIRouter()
for _each in (login.router, board.router, order.router, sessions.router):
    page_router.include_router(_each)
