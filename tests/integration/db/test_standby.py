"""A PostgreSQL with a standby: writes go to whichever is the primary, and a standby says what it is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import text

from control_plane.db.engine import Database
from shared.errors import Unreachable
from tests.support import wait_until
from tests.support.postgres import ReplicatedPostgres, needs_postgres

pytestmark = [pytest.mark.timeout(180), pytest.mark.apart]


@pytest.fixture
def pair() -> Iterator[ReplicatedPostgres]:
    server = ReplicatedPostgres.create(needs_postgres())
    try:
        server.start()
        server.execute("CREATE TABLE kept (word text)")
        yield server
    finally:
        server.remove()


def write(database: Database, word: str) -> None:
    with database.write() as db:
        db.execute(text("INSERT INTO kept VALUES (:word)"), {"word": word})


def wrote(database: Database, word: str) -> bool:
    try:
        write(database, word)
    except Unreachable:
        return False
    return True


def test_a_standby_says_what_it_is_and_writes_go_to_the_promoted_one_which_has_all_that_was_confirmed(
    pair: ReplicatedPostgres,
) -> None:
    database, standby = Database(pair.url("postgres")), Database(pair.standby.url("postgres"))
    write(database, "before")
    with pytest.raises(Unreachable) as failure:
        write(standby, "x")
    standby.dispose()
    assert failure.value.code == "E-DB-STANDBY"

    pair.fail_over()
    wait_until(lambda: wrote(database, "after"), seconds=60)

    with database.read() as db:
        assert list(db.scalars(text("SELECT word FROM kept ORDER BY word"))) == ["after", "before"]
    database.dispose()
