"""The format of an exported organization: a kind of line for each kind of row, ordered so that references come first.

No line contains secrets: sealed columns, credentials and tokens are left out, and the last line lists them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, get_args, get_type_hints

from pydantic import TypeAdapter
from sqlalchemy import JSON, Column, ColumnElement, DateTime, Table
from sqlalchemy.types import TypeDecorator

from control_plane.db import metadata
from control_plane.db.automation import Schedule, Trigger, Webhook
from control_plane.db.base import Owned
from control_plane.db.batches import BatchRow
from control_plane.db.groups import OrderGroup
from control_plane.db.memory import MemoryNote
from control_plane.db.modes import CustomMode
from control_plane.db.orders import Dispatch, Order, SteeringMessage, Turn
from control_plane.db.profiles import Profile
from control_plane.db.projects import Project, Provider
from control_plane.db.reviews import ReviewComment
from control_plane.db.runs import Blob, Run, Step
from control_plane.db.sessions import ChatSession, SessionEntry
from control_plane.db.spending import Budget, Price, SpendingBlock
from control_plane.db.stacks import Stack
from control_plane.db.teams import Agent, Comment, Task
from control_plane.db.waits import Wait
from shared.states import OrderStatus, RunStatus, TaskStatus, TurnStatus

VERSION, OLDEST = 5, 4
"""The format that is written, and the oldest one that is read. 5: without the copy of a project's daily budget and the
sentence of an order's reason."""
HEADER = "dronefleet_export"
DRONE, END = "drone", "end"
TASK = "task"
_OWN = re.compile(r"[0-9a-f]{12}")


@dataclass(frozen=True)
class Kind:
    """One kind of line and the rows behind it."""

    name: str
    model: type[Owned]
    sorted_by: tuple[str, ...]
    left_out: frozenset[str] = frozenset()
    """Columns that are not exported: secrets, and numbers that the import assigns again."""
    refers: Mapping[str, str] = field(default_factory=dict)
    """Columns with the id of another line, and the kind of that line. Lines that foreign keys refer to come first."""
    inside: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """JSON columns, and their keys that hold ids; a list holds nothing else."""
    states: type[StrEnum] | None = None
    """Valid values of `status`."""
    gone: frozenset[str] = frozenset()
    """Columns that only files of the format before this one have; they are ignored."""
    added: Mapping[str, Any] = field(default_factory=dict)
    """Columns that files of the format before this one and the first files of this one lack, and their values there."""
    only: Callable[[Table], ColumnElement[bool]] | None = None
    """Which rows are exported; None: all."""

    @cached_property
    def table(self) -> Table:
        return metadata.METADATA.tables[str(self.model.__tablename__)]  # type: ignore[attr-defined]

    @cached_property
    def columns(self) -> tuple[Column[Any], ...]:
        without = {*self.left_out, "organization_id"}
        return tuple(column for column in self.table.columns if column.name not in without)

    @cached_property
    def shapes(self) -> Mapping[str, TypeAdapter[Any]]:
        """What the JSON columns hold, as their models declare it. A `Fact` that cannot be read is read as None."""
        declared = get_type_hints(self.model)
        plain = (column.name for column in self.columns if isinstance(column.type, JSON))
        return {name: TypeAdapter(get_args(declared[name])[0]) for name in plain}

    def current(self, line: Mapping[str, Any], version: int) -> dict[str, Any]:
        """The line in the format of this version."""
        kept = {name: value for name, value in line.items() if version == VERSION or name not in self.gone}
        return {**self.added, **kept}

    @cached_property
    def times(self) -> tuple[str, ...]:
        """Columns that hold a time."""
        types = {column.name: column.type for column in self.columns}
        return tuple(name for name, type_ in types.items() if isinstance(plain_type(type_), DateTime))

    @cached_property
    def needed(self) -> frozenset[str]:
        """Columns that refer to an earlier line."""
        return frozenset(column.name for column in self.columns if column.foreign_keys and column.name in self.refers)


def _kind(name: str, model: type[Owned], *sorted_by: str, without: str = "", **more: Any) -> Kind:
    return Kind(name, model, sorted_by, frozenset(without.split()), **more)


_CHECK = "check_state check_order_id check_report"
"""What was found on the drones of one fleet says nothing about those of another."""
KINDS: tuple[Kind, ...] = (
    _kind(
        "provider",
        Provider,
        "created_at",
        "id",
        without=f"sealed_key {_CHECK}",
    ),
    _kind(
        "project",
        Project,
        "created_at",
        "id",
        without=f"sealed_git_url {_CHECK}",
        gone=frozenset({"budget_usd_day"}),
        refers={"provider_id": "provider", "reviewer_id": "provider"},
    ),
    _kind("mode", CustomMode, "created_at", "id", refers={"project_id": "project"}),
    _kind(
        "agent",
        Agent,
        "created_at",
        "id",
        refers={"project_id": "project", "boss_id": "agent", "provider_id": "provider", "reviewer_id": "provider"},
    ),
    _kind(
        "session",
        ChatSession,
        "created_at",
        "id",
        without="user_id",
        refers={
            "project_id": "project",
            "leaf_id": "entry",
            "left_leaf_id": "entry",
            "forked_from_id": "session",
            "task_id": TASK,
        },
    ),
    _kind(
        TASK,
        Task,
        "number",
        without="user_id",
        states=TaskStatus,
        refers={"assignee_id": "agent", "project_id": "project", "session_id": "session", "order_id": "order"},
    ),
    _kind(
        "group",
        OrderGroup,
        "created_at",
        "id",
        without="user_id idempotency_key request_hash",
        refers={"winner_id": "order", "judge_id": "order"},
    ),
    _kind(
        "order",
        Order,
        "number",
        without="number user_id idempotency_key request_hash grant_until run_again_at traceparent",
        states=OrderStatus,
        gone=frozenset({"explained", "reason"}),
        added={"ticket": None},
        inside={"pull_request": ("order",), "after": (), "ended_because": ("session",)},
        refers={
            "project_id": "project",
            "session_id": "session",
            "provider_id": "provider",
            "reviewer_id": "provider",
            "agent_id": "agent",
            "task_id": TASK,
            "group_id": "group",
            "wanted_drone_id": DRONE,
            "drone_id": DRONE,
            "run_id": "dispatch",
            "result_run_id": "dispatch",
        },
    ),
    _kind(
        "stack",
        Stack,
        "created_at",
        "id",
        refers={"session_id": "session", "lower_id": "session", "order_id": "order"},
    ),
    _kind("batch_row", BatchRow, "batch_id", "number", refers={"batch_id": "group", "order_id": "order"}),
    _kind("turn", Turn, "created_at", "id", states=TurnStatus, refers={"session_id": "session", "order_id": "order"}),
    _kind(
        "entry",
        SessionEntry,
        "number",
        "id",
        without="number",
        inside={"data": ("run", "from", "to", "forked_from", "by")},
        refers={"session_id": "session", "parent_id": "entry", "order_id": "order"},
    ),
    _kind("dispatch", Dispatch, "created_at", "id", refers={"order_id": "order", "drone_id": DRONE}),
    _kind(
        "run",
        Run,
        "started_at",
        "id",
        without="unsuitable",
        states=RunStatus,
        refers={
            "id": "dispatch",
            "order_id": "order",
            "drone_id": DRONE,
            "agent_id": "agent",
            "task_id": TASK,
            "resumed_run_id": "dispatch",
        },
    ),
    # Before the steps, which name the messages by the numbers that they have where they were exported.
    _kind("word", SteeringMessage, "number", added={"number": 0}, refers={"order_id": "order", "run_id": "dispatch"}),
    _kind(
        "step",
        Step,
        "id",
        without="id",
        inside={"body": ("run_id",)},
        refers={"order_id": "order", "run_id": "run"},
    ),
    # The run of a row that dismisses an item of the inbox is the order or race itself.
    _kind("wait", Wait, "number", without="number", refers={"order_id": "order", "run_id": "dispatch"}),
    _kind("comment", Comment, "id", without="id", refers={"task_id": TASK, "agent_id": "agent", "run_id": "dispatch"}),
    _kind("profile", Profile, "created_at", "id"),
    _kind(
        "memory_note",
        MemoryNote,
        "created_at",
        "id",
        without="user_id",
        refers={"project_id": "project", "order_id": "order"},
    ),
    _kind("schedule", Schedule, "created_at", "id", refers={"last_task_id": TASK}),
    _kind("trigger", Trigger, "created_at", "id", without="sealed_secret", refers={"last_task_id": TASK}),
    _kind("webhook", Webhook, "created_at", "id", without="sealed_secret"),
    _kind("price", Price, "created_at", "id"),
    _kind(
        "budget",
        Budget,
        "created_at",
        "id",
        # Users are not exported.
        only=lambda table: table.c.kind != "user",
    ),
    _kind(
        "block",
        SpendingBlock,
        "id",
        without="id user_id reported_nusd",
        refers={
            "run_id": "dispatch",
            "order_id": "order",
            "project_id": "project",
            "session_id": "session",
            "agent_id": "agent",
            "drone_id": DRONE,
        },
    ),
    _kind(
        "review_comment",
        ReviewComment,
        "number",
        without="number author message_number",
        refers={
            "order_id": "order",
            "sent_order_id": "order",
            "answer_order_id": "order",
            "answer_run_id": "dispatch",
            "parent_id": "review_comment",
        },
        # Pending comments belong to users, who are not exported.
        only=lambda table: table.c.sent_at.is_not(None),
    ),
    _kind("blob", Blob, "run_id", "sha256", refers={"run_id": "dispatch"}),
)
RUN_SETTINGS = frozenset({"project", "agent", "session"})
"""Kinds of lines with settings of runs, as the organization itself has."""
BY_NAME = {kind.name: kind for kind in KINDS}
ORGANIZATION = (
    "name",
    "description",
    "acronym",
    "last_task",
    "project_id",
    "reviewer_id",
    "concurrency",
    "max_hand_offs",
    "paused_at",
    "limits",
    "thinking",
)
"""The exported columns of the organization itself."""
SUMMED = ("input_tokens", "output_tokens", "thinking_tokens", "tool_calls", "duration_ms")


@dataclass
class TransferTotals:
    """Sums over run lines; an import with different sums fails."""

    runs: int = 0
    sums: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SUMMED, 0))
    cost_usd: float = 0.0
    unknown_costs: int = 0

    def add(self, run: Mapping[str, Any]) -> None:
        self.runs += 1
        for name in SUMMED:
            self.sums[name] += run[name]
        self.cost_usd += run["cost_usd"] or 0.0
        self.unknown_costs += run["cost_usd"] is None

    @property
    def document(self) -> dict[str, Any]:
        # Rounded, because a sum of floats depends on their order.
        return {
            "runs": self.runs,
            **self.sums,
            "cost_usd": round(self.cost_usd, 8),
            "unknown_costs": self.unknown_costs,
        }


def plain_type(type_: Any) -> Any:
    """The database type of a column type."""
    return type_.impl if isinstance(type_, TypeDecorator) else type_


def is_id(value: object) -> bool:
    """Whether the value has the format of an id."""
    return isinstance(value, str) and _OWN.fullmatch(value) is not None
