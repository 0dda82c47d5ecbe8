"""The pages: log-in, the board, an order."""

from __future__ import annotations

from fastapi import APIRouter

from control_plane.web.pages import board, login, order

page_router = APIRouter()
for _each in (login.router, board.router, order.router):
    page_router.include_router(_each)
