"""Agents of an organization."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(prefix="/organizations/{organization}/agents", tags=["agents"])
