"""Several supervisors, one that leads; and what it keeps in order beside the orders."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import event

from control_plane.core.background.timings import Timings
from control_plane.db.access import LoginLink
from control_plane.db.installation import Lease
from control_plane.db.orders import Order
from control_plane.supervisor import _OPEN_WORK, _OUTBOXES
from control_plane.supervisor.cleaning import clean
from control_plane.supervisor.placing import refresh_reasons
from shared.names import new_id
from tests.support.broker import BrokerServer
from tests.support.planes import QUICK, Plane


def leader(plane: Plane) -> str | None:
    return next((owner.holder for owner in plane.rows(Lease, Lease.name == "leader")), None)


@pytest.mark.dialects
def test_one_of_two_supervisors_leads_and_the_other_follows_it(plane: Plane) -> None:
    first = plane.supervisor()
    leads = plane.until(lambda: leader(plane))
    plane.supervisor()
    assert leader(plane) == leads
    plane.stop(first)
    plane.until(lambda: leader(plane) not in {leads, None})


def test_the_lease_of_a_dead_leader_runs_out(plane: Plane) -> None:
    dead = plane.core.clock.now() + timedelta(seconds=1)
    with plane.core.database.write() as db:
        db.add(Lease(name="leader", holder="dead", expires_at=dead))
    plane.supervisor()
    plane.until(lambda: leader(plane) != "dead")
    assert plane.core.clock.now() >= dead


def test_a_supervisor_that_takes_over_makes_users_again_and_those_of_removed_drones_go_at_once(
    plane: Plane, valkey: BrokerServer
) -> None:
    oka, stray = plane.drone(), new_id()
    first = plane.supervisor()
    plane.supervisor(users_every=600.0)
    plane.stop(first)
    plane.core.broker.ensure_user(stray, "0" * 64)
    valkey.redis.acl_deluser(oka.id)
    plane.round(QUICK.owner_ttl / 4)
    assert oka.id in valkey.redis.acl_users()
    assert stray not in valkey.redis.acl_users()


def test_two_supervisors_publish_each_order_once(plane: Plane) -> None:
    oka = plane.drone()
    plane.supervisor(unclaimed_after=60), plane.supervisor(unclaimed_after=60)
    order_ids = {plane.submit(drone="oka") for _ in range(10)}
    plane.until(lambda: all(plane.dispatch(order_id).published_at for order_id in order_ids))
    assert oka.queued() == 10


def test_what_had_its_time_is_cleaned_away_and_orders_stay(plane: Plane) -> None:
    old = plane.core.clock.now() - timedelta(days=8)
    order_id = plane.submit()
    plane.edit(Order, order_id, created_at=old, idempotency_key="key")
    link = {"role": "admin", "secret_hash": "x", "created_at": old, "expires_at": old}
    with plane.core.database.write() as db:
        db.add(LoginLink(id=new_id(), organization_id=plane.admin.organization_id, **link))
    clean(plane.core)
    assert plane.rows(LoginLink) == []
    assert plane.rows(Order)[0].idempotency_key is None


def test_the_reasons_of_many_waiting_orders_take_as_many_statements_as_those_of_few(plane: Plane) -> None:
    plane.drone()
    statements, counts = list[Any](), []
    event.listen(plane.core.database.engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
    for number in (2, 6):
        for _ in range(number):
            plane.submit()
        statements.clear()
        assert refresh_reasons(plane.core) == []
        counts.append(len(statements))
    assert counts[0] == counts[1] > 0


def test_an_idle_supervisor_asks_for_all_that_may_be_due_in_two_statements(plane: Plane) -> None:
    plane.drone()
    plane.supervisor(**asdict(Timings()))
    plane.pass_time(70)
    statements: list[str] = []
    event.listen(plane.core.database.engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
    plane.pass_time(60)
    asked = [each for each in statements if not each.startswith("BEGIN")]
    # The two, every 0.5 and every 2 s; quotas and queues every 2 s; leases, and what is due once a minute.
    assert 60 / 0.5 + 60 / 2 < len(asked) < 300


def test_each_loop_without_an_interval_is_woken_by_what_is_due(plane: Plane) -> None:
    without = {loop.name for loop in plane.supervisor().loops if loop.every is None}
    assert without == {*_OPEN_WORK, *_OUTBOXES}
