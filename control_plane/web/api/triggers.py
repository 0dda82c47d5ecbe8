"""Triggers."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(prefix="/triggers", tags=["automation"])
