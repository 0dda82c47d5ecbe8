"""The base of all rows and the column types that they share."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, ForeignKey, Index, Integer, MetaData, String, text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from control_plane.db.types import UtcDateTime
from shared.names import ID_LENGTH

Id = String(ID_LENGTH)


Seq = BigInteger().with_variant(Integer, "sqlite")
"""SQLite auto-increments only an INTEGER primary key."""


class Row(DeclarativeBase):
    """The base of all rows; constraint names are fixed so that migrations can find them."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(column_0_label)s",
            "uq": "uq_%(table_name)s_%(column_0_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {  # noqa: RUF012 - SQLAlchemy's own way to declare it
        datetime: UtcDateTime,
        dict[str, Any]: JSON,
        dict[str, str]: JSON,
        list[str]: JSON,
        list[Any]: JSON,
    }


class Owned:
    """A row that belongs to one organization."""

    organization_id: Mapped[str] = mapped_column(Id, ForeignKey("organizations.id"), index=True)


def unique_while_alive(name: str, column: str) -> Index:
    """Unique only among living rows: a removed row stays for history, and its name may be reused."""
    alive = text("removed_at IS NULL")
    return Index(name, "organization_id", column, unique=True, sqlite_where=alive, postgresql_where=alive)
