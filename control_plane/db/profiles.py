"""Rows of profiles: named sets of defaults for orders."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from control_plane.db.base import Id, Owned, Row


class Profile(Owned, Row):
    __tablename__ = "profiles"
    __table_args__ = (UniqueConstraint("organization_id", "name", name="uq_profiles_name"),)
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    name: Mapped[str] = mapped_column(String(64))
    description: Mapped[str] = mapped_column(Text, default="")
    settings: Mapped[dict[str, Any]]
    """The fields of `control_plane.contract.declarations.profiles.ProfileSettings` that it sets."""
    created_at: Mapped[datetime]
