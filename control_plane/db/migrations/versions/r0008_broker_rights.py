"""Drones say that they need no scripts in Redis. Those of earlier versions do not, and keep their rights."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # With a default of the server's: processes of the version before register drones without this column.
    op.add_column("drones", sa.Column("needs_broker_scripts", sa.Boolean, nullable=False, server_default=sa.true()))


def downgrade() -> None:
    op.drop_column("drones", "needs_broker_scripts")
