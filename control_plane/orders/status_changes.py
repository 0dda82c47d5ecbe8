"""The only way a status changes: one function each for orders, runs, turns and tasks, over `shared.states`.

Each is an `UPDATE … WHERE status = <what the caller saw>`: of two processes that saw the same state, one wins and
the other gets a Conflict, on SQLite and on PostgreSQL alike, without a lock between read and write. For an order, the
generation must also be what the caller saw: the order may have been dispatched and `queued` again in the meantime, and
a caller with the old row would otherwise hand out a generation for the second time.
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
from shared.reasons import OrderFacts
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


def move_order(db: Session, order: Order, to: OrderStatus, because: OrderFacts | None = None, **values: Any) -> None:
    """Move the order to `to` and set the columns in `values`, if it still has the status that `order` shows.

    `because` replaces all earlier facts. None is for a state that the order leaves again in the same transaction.
    Raises Conflict, which names both states, if the table forbids the move or another process was first; `order` then
    shows the state in the database.
    """
    if because is not None:
        values |= facts_columns(because)
    _move(db, order, OrderStatus(order.status), to, ORDER_TRANSITIONS, values)


def explain(db: Session, order: Order, because: OrderFacts) -> bool:
    """Replace the facts of an order that keeps its status; False if another process moved it meanwhile."""
    seen = OrderStatus(order.status)
    return _update_as_seen(db, order, seen, facts_columns(because))


def facts_columns(because: OrderFacts) -> dict[str, Any]:
    """The columns with these facts."""
    return {
        "returned_because": because.returned,
        "placed_because": because.placed,
        "waits_because": because.waits,
        "cancel_asked_by": because.cancel.by if because.cancel else None,
        "cancel_text": because.cancel.text if because.cancel else None,
        "ended_because": because.ended,
    }


def move_run(db: Session, run: Run, to: RunStatus, **values: Any) -> None:
    """As `move_order`, for a run."""
    _move(db, run, RunStatus(run.status), to, RUN_TRANSITIONS, values)


def move_turn(db: Session, turn: Turn, to: TurnStatus, **values: Any) -> None:
    """As `move_order`, for a turn."""
    _move(db, turn, TurnStatus(turn.status), to, TURN_TRANSITIONS, values)


def move_task(db: Session, task: Task, to: TaskStatus, **values: Any) -> None:
    """As `move_order`, for a task; its newest order must also be what `task` shows."""
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
    if _update_as_seen(db, row, seen, {"status": to.value, **values}):
        return
    db.refresh(row)
    raise Conflict(
        f"{word} {row.id} was changed by someone else meanwhile: it was {seen} and is now {row.status}; "
        f"it cannot become {to}",
        code=code,
        next=_look(row),
    )


def _update_as_seen(db: Session, row: Order | Run | Turn | Task, seen: StrEnum, values: Mapping[str, Any]) -> bool:
    """Set the columns, in the database and on `row`, if the database still has the state that `row` shows."""
    # Flush the caller's own changes to the row first, or a later refresh would drop them.
    db.flush()
    statement = update(type(row)).where(*_as_seen(row, seen)).values(dict(values))
    result = db.execute(statement, execution_options={"synchronize_session": False})
    if not isinstance(result, CursorResult) or result.rowcount != 1:
        return False
    for name, value in values.items():
        set_committed_value(row, name, value)
    return True


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
