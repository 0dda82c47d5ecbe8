"""A run that waits for a person for long can be suspended; and what of an order's work could not be delivered."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from control_plane.db.types import UtcDateTime

revision = "0040"
down_revision = "0039"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("waits", sa.Column("suspend_asked_at", UtcDateTime))
    op.add_column("waits", sa.Column("suspended_at", UtcDateTime))
    op.add_column("orders", sa.Column("left_out", sa.JSON, nullable=False, server_default="[]"))


def downgrade() -> None:
    op.drop_column("orders", "left_out")
    for name in ("suspended_at", "suspend_asked_at"):
        op.drop_column("waits", name)
