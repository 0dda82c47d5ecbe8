"""Rows of the installation as a whole: organizations, counters, key pairs, leases."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from control_plane.db.base import Id, Row


class Organization(Row):
    __tablename__ = "organizations"
    __table_args__ = (Index("uq_organizations_acronym", "acronym", unique=True),)
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    name: Mapped[str] = mapped_column(String(64), unique=True)
    description: Mapped[str] = mapped_column(Text, default="")
    """Its purpose, which its agents receive."""
    acronym: Mapped[str] = mapped_column(String(16))
    """Prefix of its task ids; unique, so that no two ids collide (S-021, fixed)."""
    last_task: Mapped[int] = mapped_column(default=0)
    """The number of its newest task; taken under the lock of this row."""
    project_id: Mapped[str | None] = mapped_column(Id)
    """The project of tasks that name none."""
    reviewer_id: Mapped[str | None] = mapped_column(Id)
    """The provider whose model reviews the changes of its orders; None: they are not reviewed."""
    concurrency: Mapped[int] = mapped_column(default=4)
    """Tasks in progress at once; 0: no limit."""
    max_hand_offs: Mapped[int] = mapped_column(default=20)
    """Hand-offs in a row from agent to agent, until a task returns to the user; 0: no limit."""
    limits: Mapped[dict[str, Any]] = mapped_column(default=dict, server_default="{}")
    """Limits of the runs in all its projects, where nothing closer to the run sets them (`shared.limits`)."""
    thinking: Mapped[str | None] = mapped_column(String(8))
    """The thinking level of its orders; None: see `control_plane.orders.run_settings`."""
    paused_at: Mapped[datetime | None]
    """No task is started while this is set; tasks in progress continue."""
    created_at: Mapped[datetime]


class Counter(Row):
    """A number that only goes up. Its row is the lock under which it is taken: numbers follow the order of commits."""

    __tablename__ = "counters"
    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    value: Mapped[int] = mapped_column(BigInteger, default=0)


class KeyPair(Row):
    """The control plane's own X25519 keys; a retired one is kept until its last envelope is gone."""

    __tablename__ = "key_pairs"
    id: Mapped[str] = mapped_column(String(16), primary_key=True)
    """`shared.envelope.key_id` of the public key."""
    public_key: Mapped[str]
    """Base64."""
    sealed_private_key: Mapped[str]
    created_at: Mapped[datetime]
    retired_at: Mapped[datetime | None]


class Lease(Row):
    """A lease on a part of the work: `leader`, or `stream:<drone>`; its holder renews it before it expires."""

    __tablename__ = "owners"
    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    holder: Mapped[str] = mapped_column(String(64))
    expires_at: Mapped[datetime]
