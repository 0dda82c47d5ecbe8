"""The whole at a glance."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(prefix="/status", tags=["server"])
