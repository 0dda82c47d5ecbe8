"""Requests and documents of providers."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from control_plane.documents.base import Document, Request
from shared.work_order import Protocol

MAX_WINDOW = 1_000_000_000
"""Tokens."""


class ProviderRequest(Request):
    name: str
    model: str
    api_base: str | None = None
    context_window: int = Field(0, ge=0, le=MAX_WINDOW)
    """Tokens; 0: what is known of the model."""
    protocol: Protocol = "auto"
    params: dict[str, Any] = Field(default_factory=dict)
    fallbacks: list[str] = Field(default_factory=list)
    api_key: str | None = Field(None, repr=False)
    key_variable: str | None = None


class ProviderEdit(Request):
    """Only the fields that are set change."""

    model: str | None = None
    api_base: str | None = None
    context_window: int | None = Field(None, ge=0, le=MAX_WINDOW)
    protocol: Protocol | None = None
    params: dict[str, Any] | None = None
    fallbacks: list[str] | None = None
    api_key: str | None = Field(None, repr=False)
    key_variable: str | None = None
    no_key: bool = False


class ProviderDocument(Document):
    id: str
    name: str
    model: str
    api_base: str | None
    context_window: int
    protocol: str
    params: dict[str, Any]
    fallbacks: list[str]
    key: str
    """`sealed`, `on drone: VARIABLE` or `none`; never the key."""
    created_at: datetime
