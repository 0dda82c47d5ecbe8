"""The tables of allowed transitions, pair by pair, against what a move does; on a database in memory."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
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
    RunStatus,
    TaskStatus,
    TurnStatus,
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


def assert_as_the_table_says(kind: tuple[Any, Any, Mapping[Any, Any]], was: StrEnum, to: StrEnum) -> None:
    """Allowed pairs move; all others are a Conflict that names both states."""
    move, make, table = kind
    refusal = refusal_of(move, make(was), to)
    assert (refusal is None) == (to in table[was])
    assert refusal is None or (was.value in refusal.what and to.value in refusal.what)


@given(was=st.sampled_from(OrderStatus), to=st.sampled_from(OrderStatus))
def test_an_order_moves_exactly_as_its_table_says(was: OrderStatus, to: OrderStatus) -> None:
    assert_as_the_table_says((move_order, order, ORDER_TRANSITIONS), was, to)


@given(was=st.sampled_from(RunStatus), to=st.sampled_from(RunStatus))
def test_a_run_moves_exactly_as_its_table_says(was: RunStatus, to: RunStatus) -> None:
    assert_as_the_table_says((move_run, run, RUN_TRANSITIONS), was, to)


@given(was=st.sampled_from(TurnStatus), to=st.sampled_from(TurnStatus))
def test_a_turn_moves_exactly_as_its_table_says(was: TurnStatus, to: TurnStatus) -> None:
    assert_as_the_table_says((move_turn, turn, TURN_TRANSITIONS), was, to)


@pytest.mark.parametrize("was", TaskStatus)
@pytest.mark.parametrize("to", TaskStatus)
def test_a_task_moves_exactly_as_its_table_says(was: TaskStatus, to: TaskStatus) -> None:
    assert_as_the_table_says((move_task, task, TASK_TRANSITIONS), was, to)


@pytest.mark.parametrize("table", [ORDER_TRANSITIONS, RUN_TRANSITIONS, TASK_TRANSITIONS, TURN_TRANSITIONS])
def test_every_state_has_its_line_in_the_table(table: Mapping[StrEnum, frozenset[StrEnum]]) -> None:
    assert set(table) == set(type(next(iter(table))))


@given(path=st.lists(st.sampled_from(OrderStatus), max_size=12))
def test_however_an_order_is_pushed_about_it_is_only_ever_where_its_table_leads(path: list[OrderStatus]) -> None:
    walked = walk(path)
    assert [moved for _, _, moved in walked] == [to in ORDER_TRANSITIONS[OrderStatus(was)] for was, to, _ in walked]


def walk(path: list[OrderStatus]) -> list[tuple[str, OrderStatus, bool]]:
    """Where the order was before each push, where it was pushed, and whether it went."""
    row = order(OrderStatus.QUEUED)
    with Session(ENGINE) as db:
        db.add(row)
        db.flush()
        return [(row.status, to, moves(db, row, to)) for to in path]


def moves(db: Session, row: Order, to: OrderStatus) -> bool:
    """Whether the order went there."""
    try:
        move_order(db, row, to)
    except Conflict:
        return False
    return True


@pytest.mark.parametrize("status", sorted(ENDED))
def test_an_order_that_ended_only_goes_back_to_the_queue(status: OrderStatus) -> None:
    assert ORDER_TRANSITIONS[status] <= {OrderStatus.QUEUED}


@pytest.mark.parametrize("status", sorted(IN_HAND))
def test_an_order_in_hand_can_be_canceled_and_given_back(status: OrderStatus) -> None:
    assert {OrderStatus.CANCELING, OrderStatus.QUEUED} <= ORDER_TRANSITIONS[status]
