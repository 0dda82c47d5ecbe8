"""Money: budgets with their periods, the blocks reserved for runs, prices, and the limits of providers.

The daily budget of a project, which was only stored, becomes a budget. What runs cost before becomes their blocks, so
that the ledger agrees with the runs.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from control_plane.db.types import UtcDateTime

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

Id = sa.String(12)
Seq = sa.BigInteger().with_variant(sa.Integer, "sqlite")
ALIVE = sa.text("removed_at IS NULL")
NANODOLLARS = 1_000_000_000


def upgrade() -> None:
    _budgets()
    _blocks()
    _prices()
    op.add_column("runs", sa.Column("assumed_usd", sa.Double, nullable=False, server_default="0"))
    op.add_column("runs", sa.Column("prices", sa.JSON))
    _sum_assumed_costs()
    op.add_column("dispatches", sa.Column("allowance_number", sa.Integer, nullable=False, server_default="0"))
    op.add_column("orders", sa.Column("on_limit", sa.String(8), nullable=False, server_default="stop"))
    for name in ("rpm", "tpm"):
        op.add_column("providers", sa.Column(name, sa.Integer, nullable=False, server_default="0"))
    _keep_project_budgets()
    _keep_costs()


def _budgets() -> None:
    op.create_table(
        "budgets",
        sa.Column("organization_id", Id, nullable=False),
        sa.Column("id", Id, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("target_id", Id, nullable=False),
        sa.Column("per", sa.String(8), nullable=False),
        sa.Column("limit_nusd", sa.BigInteger, nullable=False),
        sa.Column("zone", sa.String(64), nullable=False),
        sa.Column("set_by", sa.String(128), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("removed_at", UtcDateTime),
        sa.PrimaryKeyConstraint("id", name="pk_budgets"),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organizations.id"], name="fk_budgets_organization_id_organizations"
        ),
    )
    op.create_index("ix_budgets_organization_id", "budgets", ["organization_id"])
    op.create_index(
        "uq_budgets_alive",
        "budgets",
        # A user may belong to several organizations, each with a budget of its own for them.
        ["organization_id", "kind", "target_id", "per"],
        unique=True,
        sqlite_where=ALIVE,
        postgresql_where=ALIVE,
    )
    op.create_table(
        "budget_periods",
        sa.Column("budget_id", Id, nullable=False),
        sa.Column("begins_at", UtcDateTime, nullable=False),
        sa.Column("reserved_nusd", sa.BigInteger, nullable=False),
        sa.Column("spent_nusd", sa.BigInteger, nullable=False),
        sa.Column("warned_at", UtcDateTime),
        sa.Column("refused_at", UtcDateTime),
        sa.Column("exhausted_at", UtcDateTime),
        sa.PrimaryKeyConstraint("budget_id", "begins_at", name="pk_budget_periods"),
        sa.ForeignKeyConstraint(["budget_id"], ["budgets.id"], name="fk_budget_periods_budget_id_budgets"),
    )


def _blocks() -> None:
    op.create_table(
        "spending_blocks",
        sa.Column("organization_id", Id, nullable=False),
        sa.Column("id", Seq, autoincrement=True, nullable=False),
        sa.Column("run_id", Id, nullable=False),
        sa.Column("order_id", Id, nullable=False),
        sa.Column("project_id", Id, nullable=False),
        sa.Column("session_id", Id, nullable=False),
        sa.Column("agent_id", Id),
        sa.Column("user_id", Id),
        sa.Column("drone_id", Id, nullable=False),
        sa.Column("model", sa.String(255), nullable=False),
        sa.Column("granted_at", UtcDateTime, nullable=False),
        sa.Column("granted_nusd", sa.BigInteger, nullable=False),
        sa.Column("spent_nusd", sa.BigInteger, nullable=False),
        sa.Column("closed_at", UtcDateTime),
        sa.PrimaryKeyConstraint("id", name="pk_spending_blocks"),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organizations.id"], name="fk_spending_blocks_organization_id_organizations"
        ),
        sa.ForeignKeyConstraint(["run_id"], ["dispatches.id"], name="fk_spending_blocks_run_id_dispatches"),
        sa.ForeignKeyConstraint(["order_id"], ["orders.id"], name="fk_spending_blocks_order_id_orders"),
    )
    for column in ("organization_id", "run_id", "order_id", "project_id", "session_id", "agent_id", "user_id"):
        op.create_index(f"ix_spending_blocks_{column}", "spending_blocks", [column])
    op.create_index("ix_spending_blocks_granted", "spending_blocks", ["organization_id", "granted_at"])


def _prices() -> None:
    op.create_table(
        "prices",
        sa.Column("organization_id", Id, nullable=False),
        sa.Column("id", Id, nullable=False),
        sa.Column("model", sa.String(255), nullable=False),
        sa.Column("input_usd", sa.Double),
        sa.Column("output_usd", sa.Double),
        sa.Column("cache_read_usd", sa.Double),
        sa.Column("cache_write_usd", sa.Double),
        sa.Column("discount_percent", sa.Double, nullable=False),
        sa.Column("set_by", sa.String(128), nullable=False),
        sa.Column("created_at", UtcDateTime, nullable=False),
        sa.Column("removed_at", UtcDateTime),
        sa.PrimaryKeyConstraint("id", name="pk_prices"),
        sa.ForeignKeyConstraint(
            ["organization_id"], ["organizations.id"], name="fk_prices_organization_id_organizations"
        ),
    )
    op.create_index("ix_prices_organization_id", "prices", ["organization_id"])
    op.create_index(
        "uq_prices_alive",
        "prices",
        ["organization_id", "model"],
        unique=True,
        sqlite_where=ALIVE,
        postgresql_where=ALIVE,
    )


def _sum_assumed_costs() -> None:
    """Totals are sums over this index alone, so what they sum is in it."""
    op.drop_index("ix_runs_totals", "runs")
    columns = ["organization_id", "agent_id", "task_id", "cost_usd", "assumed_usd"]
    op.create_index("ix_runs_totals", "runs", [*columns, "input_tokens", "output_tokens", "duration_ms"])


def _keep_project_budgets() -> None:
    projects = sa.table(
        "projects",
        *(sa.column(name) for name in ("id", "organization_id", "budget_usd_day", "created_at", "removed_at")),
    )
    budgets = sa.table(
        "budgets",
        *(sa.column(name) for name in ("organization_id", "id", "kind", "target_id", "per", "zone", "set_by")),
        sa.column("limit_nusd", sa.BigInteger),
        sa.column("created_at", UtcDateTime),
    )
    having = sa.select(projects).where(
        projects.c.budget_usd_day > 0, projects.c.budget_usd_day < 1_000_000, projects.c.removed_at.is_(None)
    )
    connection = op.get_bind()
    for project in connection.execute(having).mappings().all():
        row = {
            "organization_id": project["organization_id"],
            # A project has one budget from here, so its id is unique among budgets too.
            "id": project["id"],
            "kind": "project",
            "target_id": project["id"],
            "per": "day",
            "zone": "UTC",
            "set_by": "",
            "limit_nusd": round(project["budget_usd_day"] * NANODOLLARS),
            "created_at": sa.func.current_timestamp(),
        }
        connection.execute(budgets.insert().values(**row))


def _keep_costs() -> None:
    """Each run that has cost something gets a block on the day on which it began. Active runs get more blocks."""
    runs = sa.table(
        "runs",
        *(sa.column(name) for name in ("id", "organization_id", "order_id", "drone_id", "started_at", "cost_usd")),
    )
    of_order = ("project_id", "session_id", "agent_id", "user_id", "model")
    orders = sa.table("orders", *(sa.column(name) for name in ("id", *of_order)))
    blocks: dict[str, sa.ColumnElement[object]] = {
        "run_id": runs.c.id,
        **{name: runs.c[name] for name in ("organization_id", "order_id", "drone_id")},
        **{name: orders.c[name] for name in of_order},
        "granted_at": runs.c.started_at,
        "granted_nusd": sa.literal_column("0"),
        "spent_nusd": sa.cast(sa.func.round(runs.c.cost_usd * NANODOLLARS), sa.BigInteger),
        "closed_at": runs.c.started_at,
    }
    spent = sa.select(*blocks.values()).join(orders, orders.c.id == runs.c.order_id).where(runs.c.cost_usd > 0)
    table = sa.table("spending_blocks", *(sa.column(name) for name in blocks))
    op.execute(table.insert().from_select(list(blocks), spent.order_by(runs.c.started_at, runs.c.id)))


def downgrade() -> None:
    for name in ("rpm", "tpm"):
        op.drop_column("providers", name)
    op.drop_column("orders", "on_limit")
    op.drop_index("ix_runs_totals", "runs")
    op.drop_column("dispatches", "allowance_number")
    op.drop_column("runs", "prices")
    op.drop_column("runs", "assumed_usd")
    columns = ["organization_id", "agent_id", "task_id", "cost_usd", "input_tokens", "output_tokens", "duration_ms"]
    op.create_index("ix_runs_totals", "runs", columns)
    for table in ("prices", "spending_blocks", "budget_periods", "budgets"):
        op.drop_table(table)
