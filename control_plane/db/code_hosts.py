"""Rows of connections to code hosts: who may start work from there, what was read, and what is to be written."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, Index, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from control_plane.db.base import Id, Owned, Row, unique_while_alive
from control_plane.db.types import ForeignText, UtcDateTime

_HostId = String(128)
_Place = String(32)


class HostLink(Owned, Row):
    """The connection of a project to its repository at a code host."""

    __tablename__ = "host_links"
    __table_args__ = (unique_while_alive("uq_host_links_name_alive", "name"),)
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    name: Mapped[str] = mapped_column(String(64))
    kind: Mapped[str] = mapped_column(String(16))
    """`shared.code_hosts.HostKind`."""
    project_id: Mapped[str] = mapped_column(Id, ForeignKey("projects.id"), index=True)
    repository: Mapped[str] = mapped_column(String(255))
    """`OWNER/NAME`: webhooks that name another repository are refused."""
    sealed_secret: Mapped[str] = mapped_column(Text)
    mention: Mapped[str] = mapped_column(String(64))
    poll_seconds: Mapped[int]
    """0: the host is read only after its webhooks."""
    strangers: Mapped[str] = mapped_column(String(8))
    """silent, or reply: once per thread, to a mention by a user who is not mapped."""
    max_follow_ups: Mapped[int]
    """Turns for each pull request that failed checks and conflicts start."""
    drone_id: Mapped[str | None] = mapped_column(Id, ForeignKey("drones.id"))
    """Whose workstation has the login; None: any."""
    enabled: Mapped[bool] = mapped_column(default=True)
    news_at: Mapped[datetime | None]
    """When something last happened there that was not read yet."""
    read_since: Mapped[datetime]
    """Comments that changed since then are read next."""
    next_at: Mapped[datetime]
    """When it is to be read next without news, or again after a failure."""
    failures: Mapped[int] = mapped_column(default=0)
    """Consecutive readings that failed."""
    order_id: Mapped[str | None] = mapped_column(Id)
    """The order that reads it now."""
    last_at: Mapped[datetime | None]
    """When it was last read."""
    last_error: Mapped[str] = mapped_column(ForeignText, default="")
    user: Mapped[str] = mapped_column(String(128), default="")
    created_at: Mapped[datetime]
    removed_at: Mapped[datetime | None]


class HostUser(Owned, Row):
    """An account at the code host that may start work, as a user of the fleet."""

    __tablename__ = "host_users"
    link_id: Mapped[str] = mapped_column(Id, ForeignKey("host_links.id"), primary_key=True)
    login: Mapped[str] = mapped_column(String(128), primary_key=True)
    """In lower case."""
    account: Mapped[str | None] = mapped_column(_HostId)
    """The account's id, once it was seen: a login that changes its owner starts nothing."""
    user_id: Mapped[str] = mapped_column(Id, index=True)
    created_at: Mapped[datetime]


class HostThread(Owned, Row):
    """An issue or a pull request in which the fleet was asked for work, or which it opened."""

    __tablename__ = "host_threads"
    __table_args__ = (UniqueConstraint("link_id", "place", name="uq_host_threads_place"),)
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    link_id: Mapped[str] = mapped_column(Id, ForeignKey("host_links.id"))
    place: Mapped[str] = mapped_column(_Place)
    session_id: Mapped[str | None] = mapped_column(Id, index=True)
    """Where its work is done; None: none was started."""
    asked: Mapped[bool] = mapped_column(default=False)
    """Somebody asked for work here, so that the state of the work is shown here."""
    follow_ups: Mapped[int] = mapped_column(default=0)
    closed: Mapped[bool] = mapped_column(default=False)
    """The pull request was merged or closed."""
    active_at: Mapped[datetime]
    """When something last happened that concerns its session; later, its comment is no longer kept up to date."""
    created_at: Mapped[datetime]


class HostEvent(Owned, Row):
    """Something that happened at the host and was acted on; the same key again does nothing."""

    __tablename__ = "host_events"
    __table_args__ = (Index("ix_host_events_listed", "link_id", "at"), Index("ix_host_events_order", "order_id"))
    link_id: Mapped[str] = mapped_column(Id, ForeignKey("host_links.id"), primary_key=True)
    key: Mapped[str] = mapped_column(String(192), primary_key=True)
    """`comment:123`: the kind of event, and the host's id for it."""
    kind: Mapped[str] = mapped_column(String(16))
    """comment, review, check, conflict or pull."""
    place: Mapped[str] = mapped_column(_Place)
    author: Mapped[str] = mapped_column(ForeignText, default="")
    outcome: Mapped[str] = mapped_column(ForeignText, default="")
    """What became of it, in one sentence."""
    order_id: Mapped[str | None] = mapped_column(Id)
    """The order that it started or that received it."""
    at: Mapped[datetime] = mapped_column(UtcDateTime)


class HostPost(Owned, Row):
    """A comment of the fleet at the host, as it is to be, and as it was last written."""

    __tablename__ = "host_posts"
    __table_args__ = (UniqueConstraint("link_id", "subject", name="uq_host_posts_subject"),)
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    """In the comment's mark."""
    link_id: Mapped[str] = mapped_column(Id, ForeignKey("host_links.id"))
    subject: Mapped[str] = mapped_column(String(64))
    """`status:THREAD`, `notice:…` or `answer:REVIEW_COMMENT`: there is one comment for each."""
    place: Mapped[str] = mapped_column(_Place)
    reply_to: Mapped[str | None] = mapped_column(_HostId)
    text: Mapped[str | None] = mapped_column(ForeignText)
    """None: there is nothing to write yet."""
    written: Mapped[str] = mapped_column(ForeignText, default="")
    """The text that the host has."""
    comment: Mapped[str | None] = mapped_column(_HostId)
    """The host's id for it."""
    attempts: Mapped[int] = mapped_column(default=0)
    """Consecutive attempts that failed."""
    next_at: Mapped[datetime | None]
    """When to try again; None with attempts: given up, until the text changes."""
    error: Mapped[str] = mapped_column(ForeignText, default="")
    created_at: Mapped[datetime]
