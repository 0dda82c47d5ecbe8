"""Log-in with an identity provider: users have an identity there, and browser sessions may belong to a user alone."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("users", sa.Column("issuer", sa.String(255)))
    op.add_column("users", sa.Column("subject", sa.String(255)))
    op.create_index("uq_users_identity", "users", ["issuer", "subject"], unique=True)
    op.add_column("web_sessions", sa.Column("user_id", sa.String(12)))


def downgrade() -> None:
    op.drop_column("web_sessions", "user_id")
    op.drop_index("uq_users_identity", "users")
    op.drop_column("users", "subject")
    op.drop_column("users", "issuer")
