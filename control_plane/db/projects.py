"""Rows of projects and providers."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from control_plane.db.base import Id, Owned, Row, unique_while_alive


class Checkable:
    """What was found when a provider or project was tried on a drone."""

    check_state: Mapped[str] = mapped_column(String(12), default="unchecked", server_default="unchecked")
    """unchecked, ok, failed or skipped; while `check_order_id` runs, it is being checked."""
    check_order_id: Mapped[str | None] = mapped_column(Id)
    """The newest order that tries it; what earlier ones report no longer counts."""
    check_report: Mapped[dict[str, Any] | None]
    """What is known beyond the state, once that order has ended: fields of its document."""


class Provider(Checkable, Owned, Row):
    __tablename__ = "providers"
    __table_args__ = (unique_while_alive("uq_providers_name_alive", "name"),)
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    name: Mapped[str] = mapped_column(String(64))
    model: Mapped[str] = mapped_column(String(255))
    api_base: Mapped[str | None] = mapped_column(Text)
    context_window: Mapped[int] = mapped_column(default=0)
    protocol: Mapped[str] = mapped_column(String(8), default="auto")
    thinking: Mapped[str] = mapped_column(String(8), default="auto", server_default="auto")
    """The thinking level of orders that set none; auto: the model's default."""
    params: Mapped[dict[str, Any]]
    fallbacks: Mapped[list[str]]
    """Names of providers."""
    rotation: Mapped[str] = mapped_column(String(12), default="off", server_default="off")
    """How the provider and its fallbacks take turns."""
    sealed_key: Mapped[str | None] = mapped_column(Text)
    key_variable: Mapped[str | None] = mapped_column(String(128))
    """The variable on the drone; in that case the key itself is never here."""
    rpm: Mapped[int] = mapped_column(default=0, server_default="0")
    """Requests per minute that all drones together may send with its key; 0: as many as the endpoint says it allows."""
    tpm: Mapped[int] = mapped_column(default=0, server_default="0")
    """Tokens per minute, likewise."""
    created_at: Mapped[datetime]
    removed_at: Mapped[datetime | None]


class Project(Checkable, Owned, Row):
    __tablename__ = "projects"
    __table_args__ = (unique_while_alive("uq_projects_slug_alive", "slug"),)
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    slug: Mapped[str] = mapped_column(String(64))
    name: Mapped[str] = mapped_column(String(128))
    description: Mapped[str] = mapped_column(Text, default="")
    git_url: Mapped[str] = mapped_column(Text)
    """As it may be shown: without a password."""
    sealed_git_url: Mapped[str | None] = mapped_column(Text)
    """The whole URL, sealed at rest, if it has a password."""
    branch: Mapped[str | None] = mapped_column(String(255))
    setup: Mapped[list[str]]
    verify: Mapped[list[str]]
    provider_id: Mapped[str | None] = mapped_column(Id, ForeignKey("providers.id"))
    reviewer_id: Mapped[str | None] = mapped_column(Id)
    """The provider whose model reviews the changes of its orders; None: the organization's."""
    pull_requests: Mapped[str] = mapped_column(String(16), default="never")
    """never, ready (title and body are composed) or open (and opened from a drone's workstation)."""
    trailers: Mapped[list[str]] = mapped_column(default=list)
    """The trailers of its commits and pull requests: Assisted-by, Fleet-Order."""
    limits: Mapped[dict[str, Any]] = mapped_column(default=dict, server_default="{}")
    """Limits of its runs, where session and agent set none (`shared.limits`)."""
    thinking: Mapped[str | None] = mapped_column(String(8))
    """The thinking level of its orders; None: see `control_plane.orders.run_settings`."""
    run_s: Mapped[float | None]
    """How long its runs take, in seconds, as a moving average; None: none has ended."""
    clone_s: Mapped[float | None]
    """How long drones take to clone its repository, likewise."""
    created_at: Mapped[datetime]
    removed_at: Mapped[datetime | None]
