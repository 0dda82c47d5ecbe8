"""The tables of allowed transitions, pair by pair, against what a move does; on a database in memory."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import pytest
from sqlalchemy import JSON, create_engine
from sqlalchemy.orm import Session

from control_plane.db.metadata import METADATA
from control_plane.db.orders import Order, Turn
from control_plane.db.runs import Run
from control_plane.db.teams import Task
from control_plane.orders.status_changes import move_order, move_run, move_task, move_turn
from shared.errors import Conflict
from shared.states import (
    ENDED,
    IN_HAND,
    ORDER_TRANSITIONS,
    RUN_TRANSITIONS,
    TASK_TRANSITIONS,
    TURN_TRANSITIONS,
    OrderStatus,
)

NOW = datetime(2026, 11, 21, tzinfo=UTC)
ENGINE = create_engine("sqlite://")
METADATA.create_all(ENGINE)


VALUES = {str: "x", int: 1, bool: False}


def row(model: Any, status: StrEnum) -> Any:
    """A row that points nowhere: this database does not look."""
    needed = [each for each in model.__table__.columns if not each.nullable and each.default is None]
    return model(**{each.name: _value(each.type) for each in needed} | {"status": status})


def _value(kind: Any) -> Any:
    return {} if isinstance(kind, JSON) else VALUES.get(kind.python_type, NOW)


def refusal_of(move: Any, fresh: Any, to: StrEnum) -> Conflict | None:
    """Move a fresh row in a transaction that is thrown away; what it was refused with, if it was."""
    with Session(ENGINE) as db:
        db.add(fresh)
        db.flush()
        try:
            move(db, fresh, to)
        except Conflict as conflict:
            return conflict
        db.refresh(fresh)
        assert fresh.status == to
        return None


KINDS: dict[str, tuple[Any, Any, Mapping[Any, Any]]] = {
    "order": (move_order, Order, ORDER_TRANSITIONS),
    "run": (move_run, Run, RUN_TRANSITIONS),
    "turn": (move_turn, Turn, TURN_TRANSITIONS),
    "task": (move_task, Task, TASK_TRANSITIONS),
}


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_has_a_state_moves_exactly_as_its_table_says(kind: str) -> None:
    """Allowed pairs move; all others are a Conflict that names both states."""
    move, model, table = KINDS[kind]
    states = type(next(iter(table)))
    assert set(table) == set(states)
    wrong = []
    for was in states:
        for to in states:
            refusal = refusal_of(move, row(model, was), to)
            if (refusal is None) != (to in table[was]):
                wrong.append((was, to))
            assert refusal is None or (was.value in refusal.what and to.value in refusal.what)
    assert wrong == []


def test_an_ended_order_only_goes_back_to_the_queue_and_one_in_hand_can_be_canceled_and_given_back() -> None:
    assert all(ORDER_TRANSITIONS[status] <= {OrderStatus.QUEUED} for status in ENDED)
    assert all({OrderStatus.CANCELING, OrderStatus.QUEUED} <= ORDER_TRANSITIONS[status] for status in IN_HAND)
