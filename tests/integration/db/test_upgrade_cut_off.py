"""An upgrade is one transaction: one that is cut off leaves the database as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event

from control_plane.db.engine import Database
from control_plane.db.upgrade import apply_migrations, current_revision
from tests.support.old_databases import load, rows_of


@pytest.fixture(params=["sqlite", "postgresql"])
def old_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return load(request.param, tmp_path, request)


APART = 17
"""Statements between two cuts: what commits too early is noticed by the next cut, whatever lies between."""


class PowerCut(Exception):
    """Ends an upgrade in the middle."""


@contextmanager
def cut_before(statement: int) -> Iterator[list[str]]:
    """Let the database fail before so many statements; the statements until then."""
    done: list[str] = []

    def count(*arguments: Any) -> None:
        # Those that convert one order after the other are alike.
        if arguments[2].startswith("UPDATE orders") and done[-1:] == ["UPDATE orders"]:
            return
        if len(done) == statement:
            raise PowerCut
        done.append(str(arguments[2])[:13])

    event.listen(Engine, "before_cursor_execute", count)
    try:
        yield done
    finally:
        event.remove(Engine, "before_cursor_execute", count)


def test_an_upgrade_that_is_cut_off_can_be_run_again(old_url: str) -> None:
    before, cut = rows_of(old_url), 0
    while not upgraded_before(old_url, cut):
        assert revision(old_url) == "0003"
        cut += APART
    assert cut > 5 * APART
    after = rows_of(old_url)
    for name, rows in before.items():
        assert [{column: row[column] for column in rows[0]} for row in after[name]] == rows, name
    assert apply_migrations(old_url) == []


def upgraded_before(url: str, statement: int) -> bool:
    """Whether the upgrade ended before it came to this statement; else it was cut off there."""
    try:
        with cut_before(statement):
            apply_migrations(url)
    except PowerCut:
        return False
    return True


def revision(url: str) -> str | None:
    database = Database(url)
    try:
        return current_revision(database)
    finally:
        database.dispose()
