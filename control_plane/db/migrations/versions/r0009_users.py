"""People: their name, their e-mail address and a role in each organization; tokens, orders and tasks may belong to one.

Join tokens name the API token with which they were created, and drones the join token with which they registered.

Tokens of earlier versions belong to no user. They stay valid, and orders keep the token's name.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from control_plane.db.types import UtcDateTime

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

Id = sa.String(12)
OWNED = ("api_tokens", "orders", "tasks")


def upgrade() -> None:
    op.create_table(
        "users",
        sa.Column("id", Id, nullable=False),
        sa.Column("email", sa.String(254), nullable=False),
        sa.Column("name", sa.String(128), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("disabled_at", UtcDateTime),
        sa.PrimaryKeyConstraint("id", name="pk_users"),
        sa.UniqueConstraint("email", name="uq_users_email"),
    )
    op.create_table(
        "members",
        sa.Column("organization_id", Id, nullable=False),
        sa.Column("user_id", Id, nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.PrimaryKeyConstraint("organization_id", "user_id", name="pk_members"),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organizations.id"], name="fk_members_organization_id_organizations"
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_members_user_id_users"),
    )
    op.create_index("ix_members_user_id", "members", ["user_id"])
    for table in OWNED:
        op.add_column(table, sa.Column("user_id", Id))
    op.add_column("join_tokens", sa.Column("made_by", Id))
    op.add_column("drones", sa.Column("join_token_id", Id))


def downgrade() -> None:
    op.drop_column("drones", "join_token_id")
    op.drop_column("join_tokens", "made_by")
    for table in OWNED:
        op.drop_column(table, "user_id")
    op.drop_table("members")
    op.drop_table("users")
