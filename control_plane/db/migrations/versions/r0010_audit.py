"""The audit log begins. Its head is created with the first record."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from control_plane.db.types import UtcDateTime

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

Seq = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    texts = {
        "actor_kind": 16,
        "actor": 128,
        "actor_id": 64,
        "door": 16,
        "address": 64,
        "action": 64,
        "target": 255,
        "organization": 64,
        "organization_ref": 12,
        "outcome": 16,
        "code": 64,
        "previous_hash": 64,
        "hash": 64,
    }
    op.create_table(
        "audit_records",
        sa.Column("seq", Seq, primary_key=True, autoincrement=False),
        sa.Column("at", UtcDateTime, nullable=False),
        *(sa.Column(name, sa.String(length), nullable=False) for name, length in texts.items()),
        sa.Column("count", sa.Integer, nullable=False),
    )
    op.create_index("ix_audit_records_at", "audit_records", ["at"])
    op.create_index("ix_audit_records_organization_ref", "audit_records", ["organization_ref"])
    op.create_table(
        "audit_heads",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("seq", Seq, nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
    )
    op.create_table(
        "audit_keys",
        sa.Column("id", sa.String(16), primary_key=True),
        sa.Column("public_key", sa.Text, nullable=False),
        sa.Column("sealed_private_key", sa.Text, nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("retired_at", UtcDateTime),
    )
    op.create_table(
        "audit_seals",
        sa.Column("seq", Seq, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.String(16), primary_key=True),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("at", UtcDateTime, nullable=False),
        sa.Column("key_id", sa.String(16), nullable=False),
        sa.Column("signature", sa.Text, nullable=False),
    )


def downgrade() -> None:
    op.drop_table("audit_seals")
    op.drop_table("audit_keys")
    op.drop_table("audit_heads")
    op.drop_table("audit_records")
