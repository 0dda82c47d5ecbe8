"""Upgrades of databases written by earlier versions: nothing is lost, and every reason becomes the facts it stated.

The dumps were written by commit 4ef72e0 itself: its operations, its collector and supervisor, and the stand-in drone of
its tests. The prompt of each order describes its history.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event, select

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


KINDS = pytest.mark.parametrize("kind", ["sqlite", "postgresql"])


class PowerCut(Exception):
    """Ends an upgrade in the middle."""


@contextmanager
def cut_before(statement: int) -> Iterator[list[str]]:
    """Let the database fail before so many statements of this thread; those until then."""
    done: list[str] = []
    own = threading.get_ident()

    def count(*arguments: Any) -> None:
        if threading.get_ident() != own:
            return
        if len(done) == statement:
            raise PowerCut
        done.append(str(arguments[2]))

    event.listen(Engine, "before_cursor_execute", count)
    try:
        yield done
    finally:
        event.remove(Engine, "before_cursor_execute", count)


@pytest.mark.dialects
@KINDS
def test_nothing_is_lost_and_an_upgrade_that_is_cut_off_leaves_everything_as_it_was(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    (tmp_path / "whole").mkdir()
    url, other = load(kind, tmp_path, request), load(kind, tmp_path / "whole", request)
    # Read first, because the first connection of a process asks the server for its version.
    before = rows_of(url)
    with cut_before(1_000_000) as statements:
        apply_migrations(other)
    # Whatever is stored too early is still there after the last cut.
    for statement in (len(statements) // 2, len(statements) - 1):
        with pytest.raises(PowerCut), cut_before(statement):
            apply_migrations(url)
        assert rows_of(url) == before
    apply_migrations(url)
    after = rows_of(url)
    for name, rows in before.items():
        assert [{column: row[column] for column in rows[0]} for row in after[name]] == rows, name
    assert apply_migrations(url) == []


def part_of(facts: Any, wanted: Any) -> Any:
    """The facts without the fields that are not asked for."""
    if isinstance(facts, dict) and isinstance(wanted, dict):
        return {name: part_of(facts[name], value) for name, value in wanted.items()}
    return facts


@pytest.mark.dialects
@KINDS
def test_every_reason_becomes_the_facts_that_it_stated_and_what_waits_for_a_person_can_be_answered(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    url = load(kind, tmp_path, request)
    apply_migrations(url)
    upgraded = Database(url)
    with upgraded.read() as db:
        orders = {order.prompt: order for order in db.scalars(select(Order))}
        named = db.execute(select(Order.prompt, Wait).join(Wait, Wait.run_id == Order.run_id))
        waits = {prompt: (wait.kind, wait.answer, wait.closed_at is None) for prompt, wait in named}
    assert [prompt for prompt, order in orders.items() if order.explained is None or not order.reason] == []
    found = {prompt: part_of(orders[prompt].facts.model_dump(mode="json"), wanted) for prompt, wanted in FACTS.items()}
    assert found == FACTS
    assert waits == {
        "awaiting": ("approval", None, True),
        "answer on its way": ("approval", "approve", True),
        "answered": ("approval", "approve", False),
    }
    upgraded.dispose()
