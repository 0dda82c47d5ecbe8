"""Upgrades of databases written by earlier versions: nothing is lost, and every reason becomes the facts it stated.

The dumps were written by commit 4ef72e0 itself: its operations, its collector and supervisor, and the stand-in drone of
its tests. The prompt of each order describes its history.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from control_plane.db.engine import Database
from control_plane.db.orders import Order
from control_plane.db.upgrade import apply_migrations
from control_plane.db.waits import Wait
from tests.support.old_databases import load, rows_of

RESTARTED = {"code": "drone_restarted", "drone": "ada", "since": None, "today": True}
NEVER_STARTED = {"drone": "dora", "code": "never_started"}
BUSY = {"drone": "mila", "code": "busy", "running": 1, "slots": 1}
FACTS: dict[str, dict[str, Any]] = {
    "succeeded": {"ended": {"code": "run_ended", "detail": "the model stopped"}},
    "succeeded unheard": {"ended": {"code": "run_ended", "detail": "the model stopped", "unheard": 1}},
    "failed": {"ended": {"code": "run_ended", "detail": "The time limit of 1800 s was reached.", "attempts": 0}},
    "failed last attempt": {"ended": {"detail": "the provider cannot be reached", "attempts": 1}},
    "failed lost": {"ended": {"code": "run_ended", "detail": "", "loss": RESTARTED, "attempts": 1}},
    "canceled before": {"ended": {"code": "before_start"}, "cancel": {"by": "kim", "text": "not needed"}},
    "canceled with receipt": {"ended": {"code": "with_receipt"}, "cancel": {"by": "kim", "text": "wrong branch: main"}},
    "canceled after end": {"ended": {"code": "after_end", "detail": "the model stopped"}, "cancel": {"by": "system"}},
    "canceled with loss": {"ended": {"code": "with_loss", "loss": RESTARTED}, "cancel": {"text": "too slow"}},
    "canceling": {"cancel": {"by": "kim", "text": "changed my mind"}},
    "canceling unnamed": {"cancel": {"by": "system", "text": ""}},
    "running": {"placed": {"code": "named", "drone": "oka", "labels": []}, "waits": None},
    "running free choice": {"placed": {"code": "repository", "drone": "ada"}},
    "awaiting": {"waits": {"code": "for_person", "tool": "shell", "why": "It changes files: rm x."}},
    "answer on its way": {"waits": {"code": "answer_on_its_way", "by": "kim", "approved": True, "tool": "shell"}},
    "answered": {"waits": {"code": "answered", "by": "person", "approved": True}},
    "no drone fits": {"waits": {"code": "no_drone_fits", "labels": ["gpu=yes"]}},
    "session waits": {"waits": {"code": "earlier_order"}},
    "named removed": {"waits": {"code": "named_drone_removed", "drone": "sale"}},
    "pausing": {"waits": {"code": "pauses_after_failure", "attempt": 1, "attempts": 3}},
    "assigned never started": {"placed": {"code": "named"}, "waits": {"code": "in_queue", "state": NEVER_STARTED}},
    "assigned busy": {"placed": {"drone": "mila"}, "waits": {"code": "in_queue", "state": BUSY}},
    "taken back": {
        "returned": {"code": "taken_back", "state": {"drone": "nino", "code": "draining"}},
        "placed": {"code": "only_drone", "labels": ["os=linux"]},
    },
    "given back": {
        "returned": {
            "code": "given_back",
            "drone": "oka",
            "detail": "the drone stops",
            "resumes": {"step": None, "why_not": "not_stored"},
        }
    },
    "queued again": {"returned": {"code": "run_failed", "detail": "the provider cannot be reached", "attempt": 1}},
    "queued from checkpoint": {
        "returned": {"code": "run_failed", "attempts": 3, "resumes": {"step": 6, "drone": ""}},
    },
    "taken back removed": {"returned": {"code": "taken_back", "state": {"drone": "lena", "code": "removed"}}},
}
"""Some of the facts of each order, by its prompt."""


@pytest.fixture(params=["sqlite", "postgresql"])
def old_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return load(request.param, tmp_path, request)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def upgraded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """The upgraded database of each kind, for tests that read it."""
    url = load(request.param, tmp_path_factory.mktemp("old"), request)
    apply_migrations(url)
    database = Database(url)
    yield database
    database.dispose()


def orders_by_prompt(database: Database) -> dict[str, Order]:
    with database.read() as db:
        return {order.prompt: order for order in db.scalars(select(Order))}


def test_nothing_is_lost(old_url: str) -> None:
    before = rows_of(old_url)
    apply_migrations(old_url)
    after = rows_of(old_url)
    for name, rows in before.items():
        assert [{column: row[column] for column in rows[0]} for row in after[name]] == rows, name


def test_every_reason_becomes_the_facts_that_it_stated_and_is_rendered_from_them(upgraded: Database) -> None:
    orders = orders_by_prompt(upgraded)
    assert [prompt for prompt, order in orders.items() if order.explained is None or not order.reason] == []
    found = {prompt: part_of(orders[prompt].facts.model_dump(mode="json"), wanted) for prompt, wanted in FACTS.items()}
    assert found == FACTS


def part_of(facts: Any, wanted: Any) -> Any:
    """The facts without the fields that are not asked for."""
    if isinstance(facts, dict) and isinstance(wanted, dict):
        return {name: part_of(facts[name], value) for name, value in wanted.items()}
    return facts


def test_what_waits_for_a_person_can_be_answered(upgraded: Database) -> None:
    with upgraded.read() as db:
        named = db.execute(select(Order.prompt, Wait).join(Wait, Wait.run_id == Order.run_id))
        waits = {prompt: (wait.kind, wait.answer, wait.closed_at is None) for prompt, wait in named}
    assert waits == {
        "awaiting": ("approval", None, True),
        "answer on its way": ("approval", "approve", True),
        "answered": ("approval", "approve", False),
    }
