"""Runs of agents on tasks."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(prefix="", tags=["tasks"])
