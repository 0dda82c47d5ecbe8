"""What runs ask people gets rows of its own; what is asked now is read off the steps, once."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from alembic import op

from control_plane.db.types import ForeignText, UtcDateTime

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

Id = sa.String(12)
Seq = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_AT_WORK = ("running", "awaiting_approval", "canceling")
_ORDERS = sa.table("orders", sa.column("id"), sa.column("organization_id"), sa.column("run_id"), sa.column("status"))
_STEPS = sa.table(
    "steps",
    sa.column("run_id"),
    sa.column("run_seq"),
    sa.column("kind"),
    sa.column("body", sa.JSON),
    sa.column("at", UtcDateTime),
)
_INBOX = sa.table(
    "inbox", sa.column("run_id"), sa.column("id"), sa.column("body", sa.JSON), sa.column("created_at", UtcDateTime)
)


def upgrade() -> None:
    waits = op.create_table(
        "waits",
        sa.Column("number", Seq, primary_key=True, autoincrement=True),
        sa.Column("organization_id", Id, sa.ForeignKey("organizations.id"), nullable=False),
        sa.Column("order_id", Id, sa.ForeignKey("orders.id"), nullable=False),
        sa.Column("run_id", Id, nullable=False),
        sa.Column("subject", ForeignText, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("text", ForeignText, nullable=False),
        sa.Column("choices", sa.JSON, nullable=False),
        sa.Column("default", ForeignText),
        sa.Column("deadline", UtcDateTime),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("details", sa.JSON, nullable=False),
        sa.Column("asked_at", UtcDateTime, nullable=False),
        sa.Column("answer", ForeignText),
        sa.Column("comment", ForeignText, nullable=False),
        sa.Column("answered_by", sa.String(128)),
        sa.Column("answered_at", UtcDateTime),
        sa.Column("decided_by", sa.String(16)),
        sa.Column("closed_at", UtcDateTime),
        sa.UniqueConstraint("run_id", "subject", name="uq_waits_subject"),
    )
    op.create_index("ix_waits_organization_id", "waits", ["organization_id"])
    op.create_index("ix_waits_order_id", "waits", ["order_id"])
    unclosed = sa.text("closed_at IS NULL")
    op.create_index("ix_waits_open", "waits", ["run_id"], sqlite_where=unclosed, postgresql_where=unclosed)
    connection = op.get_bind()
    at_work = sa.select(_ORDERS).where(_ORDERS.c.status.in_(_AT_WORK), _ORDERS.c.run_id.is_not(None))
    for order in connection.execute(at_work).all():
        for row in _waits(connection, order):
            connection.execute(sa.insert(waits).values(**row))


def downgrade() -> None:
    raise NotImplementedError("what people answered since would be gone; restore a backup instead")


def _waits(connection: sa.Connection, order: Any) -> list[dict[str, Any]]:
    """What the order's current run asked, with what became of it."""
    columns = _STEPS.c.kind, _STEPS.c.body, _STEPS.c.at
    steps = sa.select(*columns).where(_STEPS.c.run_id == order.run_id, _STEPS.c.kind.in_(("approval", "decision")))
    found: dict[str, dict[str, Any]] = {}
    for kind, body, at in connection.execute(steps.order_by(_STEPS.c.run_seq)):
        if kind == "approval":
            found[body["call_id"]] = _asked(order, body, at)
        elif wait := found.get(body["call_id"]):
            answer = "approve" if body["approved"] else "deny"
            wait |= {"answer": answer, "decided_by": body["by"], "closed_at": at}
    told = sa.select(_INBOX.c.body, _INBOX.c.created_at).where(_INBOX.c.run_id == order.run_id)
    for body, at in connection.execute(told.order_by(_INBOX.c.created_at)):
        wait = found.get(body.get("call_id", ""))
        if body.get("kind") == "decide" and wait and wait["answer"] is None:
            answer = "approve" if body["approved"] else "deny"
            wait |= {"answer": answer, "decided_by": "person", "answered_at": at, "comment": body["comment"]}
    return list(found.values())


def _asked(order: Any, body: dict[str, Any], at: Any) -> dict[str, Any]:
    until = datetime.fromisoformat(body["until"]) if body.get("until") else None
    return {
        "organization_id": order.organization_id,
        "order_id": order.id,
        "run_id": order.run_id,
        "subject": body["call_id"],
        "kind": "approval",
        "text": f"May {body['tool']} be run? {body['why']}",
        "choices": ["approve", "deny"],
        "default": "deny",
        "deadline": until,
        "role": "operator",
        "details": {"tool": body["tool"], "why": body["why"]},
        "asked_at": at,
        "answer": None,
        "comment": "",
        "answered_at": None,
        "decided_by": None,
        "closed_at": None,
    }
