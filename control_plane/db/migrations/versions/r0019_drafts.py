"""Drafts: texts that users typed and have not sent yet."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from control_plane.db.types import UtcDateTime

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "drafts",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), autoincrement=True, nullable=False),
        sa.Column("organization_id", sa.String(12), nullable=False),
        sa.Column("author", sa.String(12), nullable=False),
        sa.Column("subject", sa.String(100), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_drafts"),
        sa.UniqueConstraint("organization_id", "author", "subject", name="uq_drafts_subject"),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organizations.id"], name="fk_drafts_organization_id_organizations"
        ),
    )
    op.create_index("ix_drafts_organization_id", "drafts", ["organization_id"])
    op.create_index("ix_drafts_updated_at", "drafts", ["updated_at"])


def downgrade() -> None:
    op.drop_table("drafts")
