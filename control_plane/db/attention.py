"""Rows of attention: how each user wants to be told of what waits for them, what they are told, and answer links."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, Index, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from control_plane.db.base import Id, Owned, Row, Seq
from control_plane.db.types import ForeignText, UtcDateTime


class AttentionChoices(Owned, Row):
    """A user's choices in one organization. The user's membership may end first: such a row is not used."""

    __tablename__ = "attention_choices"
    organization_id: Mapped[str] = mapped_column(Id, ForeignKey("organizations.id"), primary_key=True)
    user_id: Mapped[str] = mapped_column(Id, primary_key=True)
    email: Mapped[bool] = mapped_column(default=False)
    """Send e-mail to the user's own address."""
    webhook_url: Mapped[str | None] = mapped_column(Text)
    sealed_webhook_secret: Mapped[str | None] = mapped_column(Text)
    kinds: Mapped[list[str]]
    """`control_plane.contract.declarations.attention.AttentionKind`."""
    about: Mapped[str] = mapped_column(String(8), default="own")
    """own: the user's own orders, tasks and drones; all: everything in the organization."""
    email_error: Mapped[str] = mapped_column(ForeignText, default="")
    """Why the last attempt failed; empty if it did not."""
    webhook_error: Mapped[str] = mapped_column(ForeignText, default="")
    last_message_at: Mapped[datetime | None]
    """When messages were last written for this user; further notices are collected for some minutes."""


class PushSubscription(Owned, Row):
    """A browser of a user that receives messages through its push service."""

    __tablename__ = "push_subscriptions"
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    user_id: Mapped[str] = mapped_column(Id, index=True)
    name: Mapped[str] = mapped_column(String(64))
    endpoint_hash: Mapped[str] = mapped_column(String(64), unique=True)
    """The address is a secret: any program that knows it may send."""
    sealed_subscription: Mapped[str] = mapped_column(Text)
    """JSON, as browsers return it: the endpoint and the keys."""
    last_error: Mapped[str] = mapped_column(ForeignText, default="")
    last_at: Mapped[datetime | None]
    created_at: Mapped[datetime]


class PushKey(Row):
    """The installation's key pair with which messages to push services are signed (VAPID); there is one."""

    __tablename__ = "push_keys"
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    public_key: Mapped[str] = mapped_column(String(128))
    """As browsers take it: the uncompressed point in URL-safe base64."""
    sealed_private_key: Mapped[str] = mapped_column(Text)
    created_at: Mapped[datetime]


class AttentionNotice(Owned, Row):
    """Something that a user is to be told of, written in the transaction of the event."""

    SUBJECT_LENGTH = 120

    __tablename__ = "attention_notices"
    __table_args__ = (
        UniqueConstraint("organization_id", "user_id", "subject", name="uq_attention_notices_subject"),
        Index("ix_attention_notices_open", "settled_at", "organization_id", "user_id"),
    )
    number: Mapped[int] = mapped_column(Seq, primary_key=True, autoincrement=True)
    user_id: Mapped[str] = mapped_column(Id)
    kind: Mapped[str] = mapped_column(String(16))
    subject: Mapped[str] = mapped_column(String(SUBJECT_LENGTH))
    """What it is about, unique for each event: a repeated event is told once."""
    title: Mapped[str] = mapped_column(ForeignText)
    text: Mapped[str] = mapped_column(ForeignText)
    page: Mapped[str] = mapped_column(String(120))
    """The address of the page, without the host."""
    wait_number: Mapped[int | None] = mapped_column(BigInteger)
    """The question of a run that it is about. No foreign key, as for the two below: what it is about may be removed."""
    task_id: Mapped[str | None] = mapped_column(String(32))
    drone_id: Mapped[str | None] = mapped_column(Id)
    created_at: Mapped[datetime]
    batch: Mapped[str | None] = mapped_column(Id, index=True)
    """The messages that tell it; None: not yet, or never."""
    settled_at: Mapped[datetime | None] = mapped_column(UtcDateTime)
    """When it was put into messages, or became unnecessary."""


class AttentionMessage(Owned, Row):
    """One message to one user through one channel, until it is accepted or given up."""

    __tablename__ = "attention_messages"
    __table_args__ = (Index("ix_attention_messages_due", "done_at", "next_at"),)
    id: Mapped[str] = mapped_column(String(40), primary_key=True)
    """`msg_…`: a receiver recognizes a duplicate by it."""
    user_id: Mapped[str] = mapped_column(Id)
    batch: Mapped[str] = mapped_column(Id, index=True)
    channel: Mapped[str] = mapped_column(String(8))
    """email, webhook or push."""
    subscription_id: Mapped[str | None] = mapped_column(Id)
    """The browser. No foreign key: it may be removed."""
    attempts: Mapped[int] = mapped_column(default=0)
    error: Mapped[str] = mapped_column(ForeignText, default="")
    created_at: Mapped[datetime]
    next_at: Mapped[datetime | None]
    done_at: Mapped[datetime | None]
    """Accepted, given up or unnecessary."""


class AnswerLink(Owned, Row):
    """A one-use address at which one user answers one question without a log-in."""

    __tablename__ = "answer_links"
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    user_id: Mapped[str] = mapped_column(Id)
    secret_hash: Mapped[str] = mapped_column(String(64), unique=True)
    wait_number: Mapped[int] = mapped_column(BigInteger)
    """No foreign key: links are deleted on their own."""
    asked_at: Mapped[datetime]
    """The question as it was asked at this time; the run may ask it again with another content."""
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime] = mapped_column(UtcDateTime, index=True)
    used_at: Mapped[datetime | None]
