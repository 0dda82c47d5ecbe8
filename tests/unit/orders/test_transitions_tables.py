"""The tables of allowed transitions, pair by pair, against what a move does; on a database in memory."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import pytest
from sqlalchemy import create_engine
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
OWNED = {"organization_id": "o", "order_id": "x", "created_at": NOW}
ENGINE = create_engine("sqlite://")
METADATA.create_all(ENGINE)


def order(status: StrEnum) -> Order:
    """An order that points nowhere: this database does not look."""
    return Order(
        id="order",
        organization_id="o",
        number=1,
        project_id="p",
        session_id="s",
        provider_id="v",
        model="m",
        mode="build",
        limits={},
        prompt="p",
        wanted_labels={},
        late_refs=[],
        status=status,
        created_at=NOW,
    )


def run(status: StrEnum) -> Run:
    return Run(
        id="run",
        organization_id="o",
        order_id="x",
        drone_id="d",
        generation=1,
        attempt=1,
        status=status,
        started_at=NOW,
    )


def turn(status: StrEnum) -> Turn:
    fields = {"session_id": "s", "prompt": "p", "provider": "v", "model": "m", "mode": "build", "stats": {}}
    return Turn(id="turn", status=status, **OWNED, **fields)


def task(status: StrEnum) -> Task:
    fields = {"number": 1, "title": "t", "description": "d", "project_id": "p", "session_id": "s", "limits": {}}
    times = {"queued_at": NOW, "created_at": NOW, "updated_at": NOW}
    return Task(id="OOOO-0001", organization_id="o", status=status, **fields, **times)


def refusal_of(move: Any, row: Any, to: StrEnum) -> Conflict | None:
    """Move a fresh row in a transaction that is thrown away; what it was refused with, if it was."""
    with Session(ENGINE) as db:
        db.add(row)
        db.flush()
        try:
            move(db, row, to)
        except Conflict as conflict:
            return conflict
        db.refresh(row)
        assert row.status == to
        return None


KINDS: dict[str, tuple[Any, Any, Mapping[Any, Any]]] = {
    "order": (move_order, order, ORDER_TRANSITIONS),
    "run": (move_run, run, RUN_TRANSITIONS),
    "turn": (move_turn, turn, TURN_TRANSITIONS),
    "task": (move_task, task, TASK_TRANSITIONS),
}


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_has_a_state_moves_exactly_as_its_table_says(kind: str) -> None:
    """Allowed pairs move; all others are a Conflict that names both states."""
    move, make, table = KINDS[kind]
    states = type(next(iter(table)))
    assert set(table) == set(states)
    wrong = []
    for was in states:
        for to in states:
            refusal = refusal_of(move, make(was), to)
            if (refusal is None) != (to in table[was]):
                wrong.append((was, to))
            assert refusal is None or (was.value in refusal.what and to.value in refusal.what)
    assert wrong == []


def test_an_ended_order_only_goes_back_to_the_queue_and_one_in_hand_can_be_canceled_and_given_back() -> None:
    assert all(ORDER_TRANSITIONS[status] <= {OrderStatus.QUEUED} for status in ENDED)
    assert all({OrderStatus.CANCELING, OrderStatus.QUEUED} <= ORDER_TRANSITIONS[status] for status in IN_HAND)
