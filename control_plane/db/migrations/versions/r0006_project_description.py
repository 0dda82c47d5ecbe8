"""Projects have a description."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # With a default of the server's: processes of the version before add projects without this column.
    op.add_column("projects", sa.Column("description", sa.Text, nullable=False, server_default=""))


def downgrade() -> None:
    op.drop_column("projects", "description")
