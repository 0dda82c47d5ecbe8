"""The state of groups in a real broker: one step at a time, in order of urgency, harmless to lose, closed to drones."""

from __future__ import annotations

import hashlib
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from typing import cast

import pytest
import redis

from control_plane.broker.broker import Broker
from control_plane.broker.drone_memory import measure
from control_plane.money.rates.call_log import PART
from control_plane.money.rates.groups import decide, state_key
from control_plane.money.rates.permits import Asker
from control_plane.money.rates.state import GroupState
from shared.names import new_id
from shared.rates import PermitRequest, Tokens
from tests.support.broker import BrokerServer
from tests.support.clocks import HandClock

SOME = Tokens(input_tokens=1000, output_tokens=100)
ASK = PermitRequest(provider="main", expected=SOME)


def asker(run_id: str, org: str = "a", *, rank: int = 1) -> Asker:
    return Asker(run_id, org, "provider", "model", 60, 0, rank)


def ask_often(url: str, who: str, at: int) -> int:
    """What a process of its own may use at this time of the broker: permits, and calls without one."""
    redis.client.Pipeline.time = lambda _: (at, 0)  # type: ignore[method-assign]
    broker = Broker(url)
    try:
        answers = [decide(broker, "group", asker(f"{who}{n}"), ASK) for n in range(15)]
        return sum(answer.granted + answer.free_calls for answer in answers)
    finally:
        broker.close()


def use_up(broker: Broker, clock: HandClock, *, back_in: float) -> None:
    """Let the group look as if its limit had been used up, and were free again in so many seconds, at most 15."""
    at = clock.now().timestamp() - PART + back_in
    state = GroupState(log=[(at, 10.0, 0.0, 0.0, 0.0)])
    broker.redis.set(state_key("group"), state.model_dump_json())


def commands(broker: Broker) -> int:
    """How many commands the broker has executed, without those with which its clients look after their connections."""
    stats = cast("dict[str, dict[str, int]]", broker.redis.info("commandstats"))
    return sum(each["calls"] for name, each in stats.items() if name != "cmdstat_ping")


def test_processes_that_ask_at_the_same_time_do_not_exceed_the_limit(valkey: BrokerServer) -> None:
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert sum(pool.map(ask_often, [valkey.url] * 2, "xy", [1_800_000_000] * 2)) == 10


def test_a_lost_or_unknown_state_is_replaced(broker: Broker, broker_clock: HandClock) -> None:
    use_up(broker, broker_clock, back_in=12.0)
    assert not decide(broker, "group", asker("run"), ASK).granted
    broker.redis.flushall()
    assert decide(broker, "group", asker("run"), ASK).granted
    broker.redis.set(state_key("group"), '{"models": "of another version"}')
    assert decide(broker, "group", asker("run"), ASK).granted


def test_a_drone_cannot_reach_the_state_of_a_group(
    broker: Broker, valkey: BrokerServer, broker_clock: HandClock
) -> None:
    use_up(broker, broker_clock, back_in=60.0)
    drone_id, key = new_id(), state_key("group")
    broker.ensure_user(drone_id, hashlib.sha256(b"secret").hexdigest())
    with redis.Redis(port=valkey.port, username=drone_id, password="secret") as drone:
        for command in (("GET", key), ("SET", key, "{}"), ("DEL", key), ("WATCH", key), ("PUBLISH", key, "x")):
            with pytest.raises(redis.exceptions.NoPermissionError):
                drone.execute_command(*command)
    assert drone_id not in measure(broker), "it counts as memory of a drone"


def test_a_request_with_many_waiting_runs_asks_the_broker_no_more_and_keeps_a_small_state(
    broker: Broker, broker_clock: HandClock
) -> None:
    use_up(broker, broker_clock, back_in=9.0)
    counts = [commands(broker)]
    for number in range(100):
        waiting = decide(broker, "group", asker(f"run{number}", f"org{number % 7}"), ASK).waiting
        assert waiting == number + 1
        counts.append(commands(broker))
    each = [after - before for before, after in pairwise(counts)]
    assert each == [each[0]] * 100
    # The state stays small, and expires.
    assert len(str(broker.redis.get(state_key("group")))) < 30_000
    assert 0 < int(str(broker.redis.ttl(state_key("group")))) <= 7200
