"""Users own join tokens, drones and sessions.

What is there already gets its owner where one is known: a join token from the API token with which it was created, a
drone from the join token with which it registered, a session from its task or its first order.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

OWNED = ("join_tokens", "drones", "sessions")
KNOWN_OWNERS = (
    "UPDATE join_tokens SET user_id ="
    " (SELECT api_tokens.user_id FROM api_tokens WHERE api_tokens.id = join_tokens.made_by)",
    "UPDATE drones SET user_id ="
    " (SELECT join_tokens.user_id FROM join_tokens WHERE join_tokens.id = drones.join_token_id)",
    "UPDATE sessions SET user_id = (SELECT tasks.user_id FROM tasks WHERE tasks.id = sessions.task_id)"
    " WHERE task_id IS NOT NULL",
    "UPDATE sessions SET user_id ="
    " (SELECT orders.user_id FROM orders WHERE orders.session_id = sessions.id ORDER BY orders.number LIMIT 1)"
    " WHERE task_id IS NULL",
)


def upgrade() -> None:
    for table in OWNED:
        op.add_column(table, sa.Column("user_id", sa.String(12)))
    for statement in KNOWN_OWNERS:
        op.execute(statement)


def downgrade() -> None:
    for table in OWNED:
        op.drop_column(table, "user_id")
