"""Review comments on the results of orders, and the agents' answers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from control_plane.db.types import UtcDateTime

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

Id = sa.String(12)
Seq = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_INDEXED = ("organization_id", "order_id", "sent_order_id", "message_number", "answer_order_id")


def upgrade() -> None:
    op.create_table(
        "review_comments",
        sa.Column("organization_id", Id, nullable=False),
        sa.Column("number", Seq, autoincrement=True, nullable=False),
        sa.Column("id", Id, nullable=False),
        sa.Column("order_id", Id, nullable=False),
        sa.Column("author", sa.String(12), nullable=False),
        sa.Column("user", sa.String(128), nullable=False),
        sa.Column("parent_id", Id),
        sa.Column("commit", sa.String(64)),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("side", sa.String(4), nullable=False),
        sa.Column("start_line", sa.Integer()),
        sa.Column("end_line", sa.Integer()),
        sa.Column("quote", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("updated_at", UtcDateTime, nullable=False),
        sa.Column("sent_at", UtcDateTime),
        sa.Column("sent_order_id", Id),
        sa.Column("message_number", sa.BigInteger()),
        sa.Column("verdict", sa.String(8)),
        sa.Column("answer", sa.Text()),
        sa.Column("answered_at", UtcDateTime),
        sa.Column("answer_order_id", Id),
        sa.Column("answer_run_id", Id),
        sa.Column("answer_seq", sa.Integer()),
        sa.Column("done_commit", sa.String(64)),
        sa.PrimaryKeyConstraint("number", name="pk_review_comments"),
        sa.UniqueConstraint("id", name="uq_review_comments_id"),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organizations.id"], name="fk_review_comments_organization_id_organizations"
        ),
        sa.ForeignKeyConstraint(["order_id"], ["orders.id"], name="fk_review_comments_order_id_orders"),
        sa.ForeignKeyConstraint(["sent_order_id"], ["orders.id"], name="fk_review_comments_sent_order_id_orders"),
    )
    for column in _INDEXED:
        op.create_index(f"ix_review_comments_{column}", "review_comments", [column])


def downgrade() -> None:
    op.drop_table("review_comments")
