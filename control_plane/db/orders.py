"""Rows of work orders: the order, its turn, user messages to it, and its dispatches."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, BigInteger, ForeignKey, Index, String, Text, UniqueConstraint, false, text
from sqlalchemy.orm import Mapped, mapped_column

from control_plane.db.base import Id, Owned, Row, Seq
from control_plane.db.types import Fact, ForeignText, UtcDateTime
from shared.reason_text import reason_text
from shared.reasons import CancelAsked, DroneChoice, Ended, OrderFacts, Placed, Returned, Waits
from shared.states import OrderStatus

_UNENDED = text("ended_at IS NULL")
_NEEDED = text("follow_up IS NOT NULL")


class Order(Owned, Row):
    """A work order and its outcome."""

    __tablename__ = "orders"
    __table_args__ = (
        UniqueConstraint("organization_id", "idempotency_key", name="uq_orders_idempotency"),
        # The lists of orders, newest first.
        Index("ix_orders_listed", "organization_id", "number"),
        Index("ix_orders_state", "organization_id", "status", "number"),
        Index("ix_orders_mirrors", "project_id", "drone_id"),
        # Only unended orders, a few among all orders ever: if most rows share one state, an index over all is useless.
        Index("ix_orders_follow_up", "organization_id", "ended_at", sqlite_where=_NEEDED, postgresql_where=_NEEDED),
        Index("ix_orders_unended", "status", "drone_id", sqlite_where=_UNENDED, postgresql_where=_UNENDED),
    )
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    number: Mapped[int] = mapped_column(Seq, index=True)
    """Order of submission in the installation."""
    user: Mapped[str] = mapped_column(String(128), default="")
    """Who submitted it, as named at that time: a person, else the token."""
    user_id: Mapped[str | None] = mapped_column(Id)
    """That person, also once they were removed; None: a token that belongs to no user."""
    project_id: Mapped[str] = mapped_column(Id, ForeignKey("projects.id"), index=True)
    session_id: Mapped[str] = mapped_column(Id, ForeignKey("sessions.id"), index=True)
    provider_id: Mapped[str] = mapped_column(Id, ForeignKey("providers.id"))
    model: Mapped[str] = mapped_column(String(255))
    reviewer_id: Mapped[str | None] = mapped_column(Id)
    """The provider whose model reads the change before it is delivered; None: it is not reviewed."""
    mode: Mapped[str] = mapped_column(String(16))
    mode_definition: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    """`shared.work_order.ModeDefinition` and `read_only`, when it was submitted; None: a built-in mode."""
    thinking: Mapped[str | None] = mapped_column(String(8))
    """`shared.work_order.ThinkingLevel` when it was submitted; None: the model's default."""
    priority: Mapped[int] = mapped_column(default=0)
    approve: Mapped[str] = mapped_column(String(16), default="yolo")
    allow: Mapped[list[str]] = mapped_column(default=list)
    verify: Mapped[list[str] | None] = mapped_column(JSON(none_as_null=True))
    """The commands that verify its work; None: those of its project."""
    profile: Mapped[str | None] = mapped_column(String(64))
    """The name of the profile that filled what its request did not set."""
    keep_raw: Mapped[bool] = mapped_column(default=False, server_default=false())
    """Whether the provider's raw answers are kept."""
    ticket: Mapped[str | None] = mapped_column(String(200))
    """What its change is for: commits and the pull request name it."""
    limits: Mapped[dict[str, Any]]
    """`shared.work_order.Limits`, as they apply to its runs."""
    limit_sources: Mapped[dict[str, Any]] = mapped_column(default=dict, server_default="{}")
    """`shared.limits.LimitLevel` of each limit that is not the default."""
    on_limit: Mapped[str] = mapped_column(String(8), default="stop", server_default="stop")
    """`shared.budgets.OnLimit`: what happens when its money is used up."""
    plan_first: Mapped[bool] = mapped_column(default=False, server_default=false())
    """A person approves its plan before anything is changed."""
    prompt: Mapped[str] = mapped_column(Text)
    purpose: Mapped[str] = mapped_column(String(16), default="work")
    """`shared.work_order.Purpose`: work on the project, or a small service for the control plane."""
    asked: Mapped[dict[str, Any] | None]
    """The input of a service."""
    agent_id: Mapped[str | None] = mapped_column(Id, index=True)
    """The agent whose turn on a task this is."""
    task_id: Mapped[str | None] = mapped_column(String(32), index=True)
    idempotency_key: Mapped[str | None] = mapped_column(String(255))
    request_hash: Mapped[str | None] = mapped_column(String(64))

    after: Mapped[list[str]] = mapped_column(default=list, server_default="[]")
    """Orders that must succeed before this one starts. It builds on the work of the first, unless its session has work
    of its own, and that of the others is merged in.
    """
    wanted_commit: Mapped[str | None] = mapped_column(String(64))
    """The commit to start from; None: the tip of the project's branch, or the work that it builds on."""
    merge_only: Mapped[bool] = mapped_column(default=False, server_default=false())
    """Its model is asked only about conflicts with the work of `after`, and about checks that fail then."""
    group_id: Mapped[str | None] = mapped_column(Id, index=True)
    """The graph, race or batch that it belongs to."""
    group_key: Mapped[str | None] = mapped_column(String(64))
    """Its name there."""
    wanted_drone_id: Mapped[str | None] = mapped_column(Id, ForeignKey("drones.id"))
    wanted_labels: Mapped[dict[str, str]]
    drone_id: Mapped[str | None] = mapped_column(Id, ForeignKey("drones.id"), index=True)
    """Where it currently is, or where it ended."""
    run_id: Mapped[str | None] = mapped_column(Id)
    """The current dispatch; reports from other runs are late."""
    generation: Mapped[int] = mapped_column(default=0)
    attempt: Mapped[int] = mapped_column(default=0)
    lost_runs: Mapped[int] = mapped_column(default=0)
    max_attempts: Mapped[int] = mapped_column(default=3)
    fresh_generation: Mapped[int] = mapped_column(default=0)
    """Runs up to this generation are not resumed: a retry begins from scratch."""
    renewed_generation: Mapped[int] = mapped_column(default=0)
    """Spending of runs up to this generation does not count against the limits: a person resumed the order."""
    grant_until: Mapped[datetime | None]
    """A push grant of the current generation is open until this time."""

    status: Mapped[str] = mapped_column(String(24), index=True)
    returned_because: Mapped[Returned | None] = mapped_column(Fact(Returned))
    placed_because: Mapped[Placed | None] = mapped_column(Fact(Placed))
    waits_because: Mapped[Waits | None] = mapped_column(Fact(Waits))
    cancel_asked_by: Mapped[str | None] = mapped_column(String(128))
    """Empty: a person without a name."""
    cancel_text: Mapped[str | None] = mapped_column(ForeignText)
    ended_because: Mapped[Ended | None] = mapped_column(Fact(Ended))
    exit_status: Mapped[str | None] = mapped_column(String(32))
    verification: Mapped[str | None] = mapped_column(String(24))
    """`shared.outcome.Verification`, once the order has ended."""
    follow_up: Mapped[str | None] = mapped_column(String(16))
    """`control_plane.orders.follow_up.FollowUp`: what it needs from its user, once it has ended."""
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]
    run_again_at: Mapped[datetime | None]
    """When a person last had it run again after its end."""
    traceparent: Mapped[str | None] = mapped_column(String(55))
    """The span that its submission belongs to, as `shared.trace_context.TraceParent` writes it."""
    step_count: Mapped[int] = mapped_column(default=0)

    response: Mapped[str | None] = mapped_column(ForeignText)
    branch: Mapped[str | None] = mapped_column(String(255))
    base_commit: Mapped[str | None] = mapped_column(String(64))
    head_commit: Mapped[str | None] = mapped_column(String(64))
    pushed: Mapped[bool] = mapped_column(default=False)
    push_error: Mapped[str | None] = mapped_column(ForeignText)
    left_out: Mapped[list[str]] = mapped_column(default=list)
    """What of the work could not be delivered, each with the reason."""
    late_refs: Mapped[list[str]]
    result_run_id: Mapped[str | None] = mapped_column(Id)
    """The run that produced this patch and bundle."""
    patch_sha256: Mapped[str | None] = mapped_column(String(64))
    patch_bytes: Mapped[int] = mapped_column(default=0)
    branch_patch_sha256: Mapped[str | None] = mapped_column(String(64))
    """What a pull request of the branch would show. None: it has nothing."""
    files_changed: Mapped[int | None]
    lines_added: Mapped[int | None]
    """Of text files; None before its work was delivered."""
    lines_removed: Mapped[int | None]
    bundle_sha256: Mapped[str | None] = mapped_column(String(64))
    pull_request: Mapped[dict[str, Any] | None]
    """`declarations.pull_requests.PullRequestDocument`, if one was requested."""
    receipt: Mapped[dict[str, Any] | None]

    @property
    def facts(self) -> OrderFacts:
        """Why the order is in its state."""
        asked = self.cancel_asked_by is not None
        return OrderFacts(
            returned=self.returned_because,
            placed=self.placed_because,
            waits=self.waits_because,
            cancel=CancelAsked(by=self.cancel_asked_by or "", text=self.cancel_text or "") if asked else None,
            ended=self.ended_because,
        )

    @property
    def reason(self) -> str:
        """Why the order is in its state, and what would change that, in one sentence for people."""
        return reason_text(OrderStatus(self.status), self.facts)


REASON = (
    Order.status,
    Order.returned_because,
    Order.placed_because,
    Order.waits_because,
    Order.cancel_asked_by,
    Order.cancel_text,
    Order.ended_because,
)
"""The columns that `Order.reason` is rendered from."""


class Turn(Owned, Row):
    """The user's view of an order in its session; written when the order is submitted (G-009)."""

    __tablename__ = "turns"
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    session_id: Mapped[str] = mapped_column(Id, ForeignKey("sessions.id"), index=True)
    order_id: Mapped[str] = mapped_column(Id, ForeignKey("orders.id"), unique=True)
    user: Mapped[str] = mapped_column(String(128), default="")
    prompt: Mapped[str] = mapped_column(Text)
    provider: Mapped[str] = mapped_column(String(64))
    model: Mapped[str] = mapped_column(String(255))
    mode: Mapped[str] = mapped_column(String(16))
    status: Mapped[str] = mapped_column(String(16))
    response: Mapped[str | None] = mapped_column(ForeignText)
    stats: Mapped[dict[str, Any]]
    created_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]


class SteeringMessage(Owned, Row):
    """A user's message to an order; every run of the order that begins afresh receives it."""

    __tablename__ = "words"
    number: Mapped[int] = mapped_column(Seq, primary_key=True, autoincrement=True)
    order_id: Mapped[str] = mapped_column(Id, ForeignKey("orders.id"), index=True)
    user: Mapped[str] = mapped_column(String(128), default="")
    text: Mapped[str] = mapped_column(Text)
    after: Mapped[bool] = mapped_column(default=False)
    interrupt: Mapped[bool] = mapped_column(default=False)
    run_id: Mapped[str | None] = mapped_column(Id)
    """The dispatch whose order already contains it; other runs receive it through the drone's inbox."""
    alone: Mapped[bool] = mapped_column(default=False, server_default=false())
    """The model answers it before it is given the next message."""
    take_back_at: Mapped[datetime | None]
    """When it was to be taken back: no further run receives it."""
    taken_back: Mapped[bool] = mapped_column(default=False, server_default=false())
    """It is certain that no run gave it to its model."""
    at: Mapped[datetime]


class Dispatch(Owned, Row):
    """The outbox: one row for each time an order goes onto a drone's queue.

    Its id is the run's id and Celery's task id.
    """

    __tablename__ = "dispatches"
    __table_args__ = (Index("ix_dispatches_open", "organization_id", "closed_at"),)
    id: Mapped[str] = mapped_column(Id, primary_key=True)
    order_id: Mapped[str] = mapped_column(Id, ForeignKey("orders.id"), index=True)
    drone_id: Mapped[str] = mapped_column(Id, ForeignKey("drones.id"), index=True)
    generation: Mapped[int]
    created_at: Mapped[datetime]
    published_at: Mapped[datetime | None] = mapped_column(UtcDateTime, index=True)
    claimed_at: Mapped[datetime | None]
    closed_at: Mapped[datetime | None] = mapped_column(UtcDateTime, index=True)
    """The run ended, or the dispatch was revoked."""
    allowance_number: Mapped[int] = mapped_column(default=0, server_default="0")
    """Of the run's last request for money; one that arrives after a later one has no effect."""
    money_awaited_since: Mapped[datetime | None]
    """The run waits for money that others hold; who has waited longest is served first."""
    money_asked_at: Mapped[datetime | None]
    money_awaited_nusd: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    """What it needs at least."""
    choice: Mapped[DroneChoice | None] = mapped_column(Fact(DroneChoice))
    """How its drone was chosen."""
