"""What becomes of runs and reports when the broker, the worker or the whole drone goes away and comes back."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import repeat
from pathlib import Path

import pytest

from drone.runs.directory import RunDirectory
from shared.events import Event, Hello
from shared.transcripts import messages_of
from tests.support import wait_until
from tests.support.control_stand_in import ControlPlaneStandIn, Dispatch
from tests.support.drones import DroneUnderTest
from tests.support.ending import wait_for_end
from tests.support.runs import order_for, shell
from tests.support.scripted import ScriptedFactory
from tests.support.transcripts import problems

pytestmark = [pytest.mark.chaos, pytest.mark.apart]
MakeDrone = Callable[..., DroneUnderTest]
SLOW = [shell("echo begun; sleep 300"), {"text": "Done."}]
SHORT = [shell("sleep 4"), {"text": "Done."}]


def started(fleet: ControlPlaneStandIn, sent: list[Dispatch]) -> int:
    return sum("run_started" in fleet.kinds(each) for each in sent)


def printed(fleet: ControlPlaneStandIn, sent: Dispatch) -> bool:
    return any(
        delta.run_id == sent.run_id and "begun" in delta.text
        for delta in fleet.deltas(sent.order.drone_id)
        if delta.kind == "output"
    )


@pytest.fixture
def at_work(
    stand_in: ControlPlaneStandIn, make_drone: MakeDrone, repository: Path, scripted: ScriptedFactory
) -> tuple[DroneUnderTest, Dispatch]:
    """A drone as `drone start` starts it, and the order that it has begun."""
    drone = make_drone()
    drone.start()
    stubborn = scripted([shell("trap '' TERM; echo begun; sleep 300"), {"text": "Done."}])
    sent = stand_in.dispatch(order_for(drone.id, repository, stubborn.url))
    wait_until(lambda: printed(stand_in, sent), seconds=60)
    return drone, sent


def test_two_slots_hold_two_orders_and_leave_three_in_the_queue_through_a_restart_of_the_broker(
    stand_in: ControlPlaneStandIn, make_drone: MakeDrone, repository: Path, scripted: ScriptedFactory
) -> None:
    drone = make_drone(concurrency=2)
    model = scripted(SLOW)
    drone.start_worker()
    sent = [stand_in.dispatch(order_for(drone.id, repository, model.url)) for _ in repeat(None, 5)]
    wait_until(lambda: started(stand_in, sent) == 2, seconds=60)
    assert stand_in.broker.queue_length(drone.id) == 3
    stand_in.restart_broker()
    drone.wait_subscribed()
    assert stand_in.broker.queue_length(drone.id) == 3
    assert started(stand_in, sent) == 2
    wait_until(lambda: max((len(beat.runs) for beat in stand_in.beats(drone.id)), default=0) == 2)


def test_what_was_not_sent_before_a_crash_comes_before_the_hello_of_the_next_boot_and_runs_end_with_their_worker(
    stand_in: ControlPlaneStandIn, make_drone: MakeDrone, repository: Path, scripted: ScriptedFactory
) -> None:
    drone = make_drone(concurrency=2)
    drone.start_worker()
    ends, lost = (stand_in.dispatch(order_for(drone.id, repository, scripted(each).url)) for each in (SHORT, SLOW))
    wait_until(lambda: "tool_call" in stand_in.kinds(ends) and printed(stand_in, lost), seconds=60)
    # The run goes on without the broker.
    stand_in.server.stop()
    wait_until(RunDirectory(drone.home.run_dir(ends.run_id)).end, seconds=60)
    run = drone.run_process(lost.run_id)
    family = [run, *run.children(recursive=True)]
    drone.kill()
    wait_for_end(each.pid for each in family)
    stand_in.server.start()
    drone.start_worker()
    wait_until(lambda: len(stand_in.hellos(drone.id)) == 2, seconds=60)

    *events, hello = stand_in.stream(drone.id)
    assert isinstance(hello, Hello)
    assert {(each.run_id, each.ended) for each in hello.runs} == {(ends.run_id, True), (lost.run_id, True)}
    assert stand_in.ended(ends).status == "success"
    assert sum(isinstance(event, Event) and event.body.kind == "run_ended" for event in events) == 2
    numbers = [event.seq for event in stand_in.events(drone.id, ends.run_id)]
    assert numbers == list(range(1, len(numbers) + 1))

    end = stand_in.ended(lost)
    assert len(family) > 1
    assert (end.status, end.exit_status, end.order_at_fault) == ("failed", "lost", False)
    assert problems(messages_of([event.body for event in stand_in.events(drone.id, lost.run_id)])) == []
    assert end.receipt is not None
    assert end.receipt.found == end.receipt.ended > 0


def test_the_first_signal_lets_a_run_end_and_takes_no_other(
    stand_in: ControlPlaneStandIn, make_drone: MakeDrone, repository: Path, scripted: ScriptedFactory
) -> None:
    drone = make_drone()
    drone.start()
    model = scripted([shell("echo begun; sleep 6"), {"text": "Done."}])
    sent = stand_in.dispatch(order_for(drone.id, repository, model.url))
    wait_until(lambda: printed(stand_in, sent), seconds=60)
    drone.terminate()
    wait_until(lambda: stand_in.beats(drone.id)[-1].leaving)
    waiting = stand_in.dispatch(order_for(drone.id, repository, model.url))
    assert drone.wait(seconds=60) == 0
    assert (stand_in.ended(sent).status, stand_in.kinds(waiting)) == ("success", [])
    assert stand_in.broker.queue_length(drone.id) == 1
    assert stand_in.beats(drone.id)[-1].stopping
    assert stand_in.broker.lease(drone.id) is None
    assert "press Ctrl-C again (or send SIGTERM) to return their orders" in drone.stderr()


def test_the_second_signal_gives_a_run_back_also_while_the_broker_is_away_and_what_is_unsent_follows(
    stand_in: ControlPlaneStandIn, at_work: tuple[DroneUnderTest, Dispatch]
) -> None:
    drone, sent = at_work
    drone.terminate()
    wait_until(lambda: stand_in.beats(drone.id)[-1].leaving)
    stand_in.server.stop()
    drone.terminate()
    assert drone.wait(seconds=90) == 0
    assert drone.processes() == []
    stand_in.server.start()
    drone.start()
    end = stand_in.ended(sent, seconds=60)
    assert (end.status, end.give_back) == ("preempted", True)
    drone.wait_consuming()
    wait_until(lambda: not stand_in.beats(drone.id)[-1].leaving)


def test_the_third_signal_ends_a_drone_at_once(
    stand_in: ControlPlaneStandIn, at_work: tuple[DroneUnderTest, Dispatch]
) -> None:
    drone, _ = at_work
    for said in ("ends after the current runs", "current runs return their orders", "killing the remaining processes"):
        drone.terminate()
        wait_until(partial(drone.said, said))
    assert drone.wait(seconds=60) == 0
    assert drone.processes() == []


@pytest.mark.long
def test_a_drone_stops_while_its_broker_holds_the_connection_and_answers_nothing(
    stand_in: ControlPlaneStandIn, at_work: tuple[DroneUnderTest, Dispatch]
) -> None:
    drone, _ = at_work
    stand_in.server.freeze()
    code = drone.stop(seconds=120)
    stand_in.server.thaw()
    assert code == 0
    assert drone.processes() == []
