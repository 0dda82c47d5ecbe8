"""Attention: the choices of users, what they are told and through which channel, and one-use answer links."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from control_plane.db.types import ForeignText, UtcDateTime

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

_TABLES = (
    "attention_choices",
    "push_subscriptions",
    "push_keys",
    "attention_notices",
    "attention_messages",
    "answer_links",
)


def upgrade() -> None:
    op.create_table(
        "attention_choices",
        sa.Column("organization_id", sa.String(12), nullable=False),
        sa.Column("user_id", sa.String(12), nullable=False),
        sa.Column("email", sa.Boolean(), nullable=False),
        sa.Column("webhook_url", sa.Text()),
        sa.Column("sealed_webhook_secret", sa.Text()),
        sa.Column("kinds", sa.JSON(), nullable=False),
        sa.Column("about", sa.String(8), nullable=False),
        sa.Column("email_error", ForeignText, nullable=False),
        sa.Column("webhook_error", ForeignText, nullable=False),
        sa.Column("last_message_at", UtcDateTime),
        sa.PrimaryKeyConstraint("organization_id", "user_id", name="pk_attention_choices"),
        _organization("attention_choices"),
    )
    op.create_table(
        "push_subscriptions",
        sa.Column("id", sa.String(12), nullable=False),
        sa.Column("organization_id", sa.String(12), nullable=False),
        sa.Column("user_id", sa.String(12), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("endpoint_hash", sa.String(64), nullable=False),
        sa.Column("sealed_subscription", sa.Text(), nullable=False),
        sa.Column("last_error", ForeignText, nullable=False),
        sa.Column("last_at", UtcDateTime),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_push_subscriptions"),
        sa.UniqueConstraint("endpoint_hash", name="uq_push_subscriptions_endpoint_hash"),
        _organization("push_subscriptions"),
    )
    op.create_index("ix_push_subscriptions_organization_id", "push_subscriptions", ["organization_id"])
    op.create_index("ix_push_subscriptions_user_id", "push_subscriptions", ["user_id"])
    op.create_table(
        "push_keys",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("public_key", sa.String(128), nullable=False),
        sa.Column("sealed_private_key", sa.Text(), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_push_keys"),
    )
    _create_notices()
    _create_messages()
    _create_links()


def downgrade() -> None:
    for table in reversed(_TABLES):
        op.drop_table(table)


def _create_notices() -> None:
    op.create_table(
        "attention_notices",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), autoincrement=True, nullable=False),
        sa.Column("organization_id", sa.String(12), nullable=False),
        sa.Column("user_id", sa.String(12), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("subject", sa.String(120), nullable=False),
        sa.Column("title", ForeignText, nullable=False),
        sa.Column("text", ForeignText, nullable=False),
        sa.Column("page", sa.String(120), nullable=False),
        sa.Column("wait_number", sa.BigInteger()),
        sa.Column("task_id", sa.String(32)),
        sa.Column("drone_id", sa.String(12)),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("batch", sa.String(12)),
        sa.Column("settled_at", UtcDateTime),
        sa.PrimaryKeyConstraint("number", name="pk_attention_notices"),
        sa.UniqueConstraint("organization_id", "user_id", "subject", name="uq_attention_notices_subject"),
        _organization("attention_notices"),
    )
    op.create_index("ix_attention_notices_organization_id", "attention_notices", ["organization_id"])
    op.create_index("ix_attention_notices_batch", "attention_notices", ["batch"])
    op.create_index("ix_attention_notices_open", "attention_notices", ["settled_at", "organization_id", "user_id"])


def _create_messages() -> None:
    op.create_table(
        "attention_messages",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("organization_id", sa.String(12), nullable=False),
        sa.Column("user_id", sa.String(12), nullable=False),
        sa.Column("batch", sa.String(12), nullable=False),
        sa.Column("channel", sa.String(8), nullable=False),
        sa.Column("subscription_id", sa.String(12)),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("error", ForeignText, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("next_at", UtcDateTime),
        sa.Column("done_at", UtcDateTime),
        sa.PrimaryKeyConstraint("id", name="pk_attention_messages"),
        _organization("attention_messages"),
    )
    op.create_index("ix_attention_messages_organization_id", "attention_messages", ["organization_id"])
    op.create_index("ix_attention_messages_batch", "attention_messages", ["batch"])
    op.create_index("ix_attention_messages_due", "attention_messages", ["done_at", "next_at"])


def _create_links() -> None:
    op.create_table(
        "answer_links",
        sa.Column("id", sa.String(12), nullable=False),
        sa.Column("organization_id", sa.String(12), nullable=False),
        sa.Column("user_id", sa.String(12), nullable=False),
        sa.Column("secret_hash", sa.String(64), nullable=False),
        sa.Column("wait_number", sa.BigInteger(), nullable=False),
        sa.Column("asked_at", UtcDateTime, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("expires_at", UtcDateTime, nullable=False),
        sa.Column("used_at", UtcDateTime),
        sa.PrimaryKeyConstraint("id", name="pk_answer_links"),
        sa.UniqueConstraint("secret_hash", name="uq_answer_links_secret_hash"),
        _organization("answer_links"),
    )
    op.create_index("ix_answer_links_organization_id", "answer_links", ["organization_id"])
    op.create_index("ix_answer_links_expires_at", "answer_links", ["expires_at"])


def _organization(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["organization_id"], ["organizations.id"], name=f"fk_{table}_organization_id_organizations"
    )
