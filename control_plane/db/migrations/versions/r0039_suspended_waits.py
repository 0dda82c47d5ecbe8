"""A run that waits for a person for long can be suspended."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from control_plane.db.types import UtcDateTime

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("waits", sa.Column("suspend_asked_at", UtcDateTime))
    op.add_column("waits", sa.Column("suspended_at", UtcDateTime))


def downgrade() -> None:
    for name in ("suspended_at", "suspend_asked_at"):
        op.drop_column("waits", name)
