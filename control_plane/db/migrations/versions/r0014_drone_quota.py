"""Quota: since when a drone may not write to the broker."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("drones", sa.Column("over_quota_at", sa.DateTime(timezone=True)))


def downgrade() -> None:
    op.drop_column("drones", "over_quota_at")
