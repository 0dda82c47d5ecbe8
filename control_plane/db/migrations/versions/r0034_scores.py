"""What runs of a project usually take, and how drones were scored for an order."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("projects", sa.Column("run_s", sa.Double))
    op.add_column("projects", sa.Column("clone_s", sa.Double))
    op.add_column("dispatches", sa.Column("choice", sa.JSON))


def downgrade() -> None:
    op.drop_column("dispatches", "choice")
    op.drop_column("projects", "clone_s")
    op.drop_column("projects", "run_s")
