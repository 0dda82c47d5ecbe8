"""The second step of a removal: the copy of a project's daily budget goes.

The first step was the version that reads and writes `budgets` alone. A column is removed in the version after that, so
that processes of both can use the database at the same time (docs/deploy.md, Upgrades).
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "r0002"
down_revision = "r0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_column("projects", "budget_usd_day")


def downgrade() -> None:
    op.add_column("projects", sa.Column("budget_usd_day", sa.Double))
