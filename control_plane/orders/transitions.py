"""The only way a status changes: one function each for orders, runs, turns and tasks, over `shared.states`.

Each is an `UPDATE … WHERE status = <what the caller saw>`: of two processes that saw the same state, one wins and
the other gets a Conflict, on SQLite and on PostgreSQL alike, without a lock held from the reading to the writing. For
an order the generation must be what the caller saw, too: it can go round and be `queued` again in the meantime, and
whoever still holds the old row would otherwise hand out a generation for the second time.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, CursorResult, update
from sqlalchemy.orm import Session
from sqlalchemy.orm.attributes import set_committed_value

from control_plane.db.orders import Order, Turn
from control_plane.db.runs import Run
from control_plane.db.teams import Task
from shared.errors import Conflict
from shared.states import (
    ORDER_TRANSITIONS,
    RUN_TRANSITIONS,
    TASK_TRANSITIONS,
    TURN_TRANSITIONS,
    OrderStatus,
    RunStatus,
    TaskStatus,
    TurnStatus,
)

S = TypeVar("S", bound=StrEnum)


def move_order(db: Session, order: Order, to: OrderStatus, **values: Any) -> None:
    """Move the order to `to` and set the columns in `values`, if it still has the status that `order` shows.

    Raises Conflict that names both states where the table forbids it or another process was first; `order` then
    shows what the database has.
    """
    _move(db, order, OrderStatus(order.status), to, ORDER_TRANSITIONS, values)


def move_run(db: Session, run: Run, to: RunStatus, **values: Any) -> None:
    """As `move_order`, for a run."""
    _move(db, run, RunStatus(run.status), to, RUN_TRANSITIONS, values)


def move_turn(db: Session, turn: Turn, to: TurnStatus, **values: Any) -> None:
    """As `move_order`, for a turn."""
    _move(db, turn, TurnStatus(turn.status), to, TURN_TRANSITIONS, values)


def move_task(db: Session, task: Task, to: TaskStatus, **values: Any) -> None:
    """As `move_order`, for a task; its newest order must be what `task` shows, too."""
    _move(db, task, TaskStatus(task.status), to, TASK_TRANSITIONS, values)


def _move(  # noqa: PLR0913, PLR0917 - the four callers above are the interface
    db: Session,
    row: Order | Run | Turn | Task,
    seen: S,
    to: S,
    table: Mapping[S, frozenset[S]],
    values: Mapping[str, Any],
) -> None:
    word = type(row).__name__.lower()
    code = f"E-{word.upper()}-STATE"
    if to not in table[seen]:
        raise Conflict(f"{word} {row.id} is {seen}; it cannot become {to}", code=code, next=_look(row))
    # What the caller changed on the row by hand goes out first, or the refresh below would drop it.
    db.flush()
    statement = update(type(row)).where(*_as_seen(row, seen)).values(status=to.value, **values)
    result = db.execute(statement, execution_options={"synchronize_session": False})
    if isinstance(result, CursorResult) and result.rowcount == 1:
        for name, value in {"status": to.value, **values}.items():
            set_committed_value(row, name, value)
        return
    db.refresh(row)
    raise Conflict(
        f"{word} {row.id} is {row.status} now, after another hand changed it while it was {seen}; "
        f"it cannot become {to} from there",
        code=code,
        next=_look(row),
    )


def _as_seen(row: Order | Run | Turn | Task, seen: StrEnum) -> tuple[ColumnElement[bool], ...]:
    model = type(row)
    same = model.id == row.id, model.status == seen.value
    if isinstance(row, Order):
        return (*same, Order.generation == row.generation)
    if isinstance(row, Task):
        return (*same, Task.order_id.is_not_distinct_from(row.order_id))
    return same


def _look(row: Order | Run | Turn | Task) -> str:
    if isinstance(row, Task):
        return f"fleet task show {row.id}"
    return f"fleet show {row.id if isinstance(row, Order) else row.order_id}"
