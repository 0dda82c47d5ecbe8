"""Organizations."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(prefix="/organizations", tags=["organizations"])
