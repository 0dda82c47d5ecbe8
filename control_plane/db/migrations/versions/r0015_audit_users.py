"""Records of the audit log name the user behind the token. Existing records keep their content and their hashes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # The default lets the previous version, which runs during an update, continue to write records.
    op.add_column("audit_records", sa.Column("actor_user_id", sa.String(12), nullable=False, server_default=""))


def downgrade() -> None:
    op.drop_column("audit_records", "actor_user_id")
