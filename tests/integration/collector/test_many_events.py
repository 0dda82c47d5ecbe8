"""What a batch of events costs, and that it reaches those who follow; `make bench` measures more of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from control_plane.background.leases import Owners
from control_plane.collector.reader import Reader
from control_plane.collector.stream_leases import Streams
from control_plane.db.runs import Run
from tests.bench.event_flow import bodies, measure
from tests.support.planes import QUICK, Plane


def test_many_events_of_a_run_take_as_many_statements_as_few(any_plane: Plane) -> None:
    oka = any_plane.drone()
    placing = any_plane.supervisor()
    any_plane.submit()
    order = any_plane.until(oka.take)
    any_plane.stop(placing)
    assert oka.claim(order)
    owners = Owners("reader-alone", any_plane.core.clock, 60.0)
    Streams(any_plane.core, owners).share()
    reader = Reader(any_plane.core, owners, oka.id, QUICK)
    oka.report(order, oka.started())
    assert reader.take()

    statements, counts = list[Any](), []
    event.listen(any_plane.core.database.engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
    # SQLAlchemy inserts rows that get numbers of the database together on PostgreSQL only.
    inserts = "INSERT INTO steps"
    for number in (6, 60):
        oka.report(order, *bodies(number))
        statements.clear()
        assert reader.take()
        counts.append(sum(not each.startswith(inserts) for each in statements))
    assert counts[0] == counts[1] > 0
    (run,) = any_plane.rows(Run)
    assert (run.last_seq, run.tool_calls, run.output_tokens) == (67, 22, 22 * 40)


@pytest.mark.timeout(240)
def test_events_of_twenty_runs_reach_the_database_and_those_who_follow_once(tmp_path: Path) -> None:
    flow = measure(tmp_path / "fleet", waiting=600, rate=40.0, seconds=2.0)
    assert flow.lost == 0
