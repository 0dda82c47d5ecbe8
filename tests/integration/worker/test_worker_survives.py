"""What becomes of runs and reports when the broker, the worker or the whole drone goes away and comes back."""

from __future__ import annotations

import os
import pty
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from drone.runs.directory import RunDirectory
from shared.events import Event, Hello
from shared.transcripts import messages_of
from tests.support import wait_until
from tests.support.control_stand_in import ControlPlaneStandIn, Dispatch
from tests.support.drones import DroneUnderTest, Workshop, worker_below
from tests.support.ending import wait_for_end
from tests.support.runs import shell
from tests.support.scripted import ScriptedFactory
from tests.support.transcripts import problems

pytestmark = [pytest.mark.chaos, pytest.mark.apart]
MakeDrone = Callable[..., DroneUnderTest]
SLOW = [shell("echo begun; sleep 300"), {"text": "Done."}]
SHORT = [shell("sleep 4"), {"text": "Done."}]


@pytest.fixture
def workshop(stand_in: ControlPlaneStandIn, make_drone: MakeDrone, repository: Path) -> Workshop:
    """A drone with two slots, which the test starts."""
    return Workshop(stand_in, make_drone(concurrency=2), repository)


@pytest.fixture
def at_work(workshop: Workshop, scripted: ScriptedFactory) -> Dispatch:
    """An order that the drone has begun, started as `drone start` does."""
    workshop.drone.start()
    stubborn = scripted([shell("trap '' TERM; echo begun; sleep 300"), {"text": "Done."}])
    sent = workshop.submit(stubborn.url)
    wait_until(lambda: workshop.printed(sent, "begun"), seconds=60)
    return sent


def test_two_slots_hold_two_orders_and_leave_three_in_the_queue_through_a_restart_of_the_broker(
    workshop: Workshop, scripted: ScriptedFactory
) -> None:
    fleet, drone, model = workshop.fleet, workshop.drone, scripted(SLOW)

    def started() -> int:
        return sum("run_started" in fleet.kinds(each) for each in sent)

    drone.start_worker()
    sent = [workshop.submit(model.url) for _ in range(5)]
    wait_until(lambda: started() == 2, seconds=60)
    assert fleet.broker.queue_length(drone.id) == 3
    fleet.restart_broker()
    drone.wait_subscribed()
    assert (fleet.broker.queue_length(drone.id), started()) == (3, 2)
    wait_until(lambda: max((len(beat.runs) for beat in fleet.beats(drone.id)), default=0) == 2)


def test_what_was_not_sent_before_a_crash_comes_before_the_hello_of_the_next_boot_and_runs_end_with_their_worker(
    workshop: Workshop, scripted: ScriptedFactory
) -> None:
    fleet, drone = workshop.fleet, workshop.drone
    drone.start_worker()
    ends, lost = (workshop.submit(scripted(each).url) for each in (SHORT, SLOW))
    wait_until(lambda: "tool_call" in fleet.kinds(ends) and workshop.printed(lost, "begun"), seconds=60)
    # The run goes on without the broker.
    fleet.server.stop()
    wait_until(RunDirectory(drone.home.run_dir(ends.run_id)).end, seconds=60)
    run = drone.run_process(lost.run_id)
    family = [run, *run.children(recursive=True)]
    drone.kill()
    wait_for_end(each.pid for each in family)
    fleet.server.start()
    drone.start_worker()
    wait_until(lambda: len(fleet.hellos(drone.id)) == 2, seconds=60)

    *events, hello = fleet.stream(drone.id)
    assert isinstance(hello, Hello)
    assert {(each.run_id, each.ended) for each in hello.runs} == {(ends.run_id, True), (lost.run_id, True)}
    assert fleet.ended(ends).status == "success"
    assert sum(isinstance(event, Event) and event.body.kind == "run_ended" for event in events) == 2
    numbers = [event.seq for event in fleet.events(drone.id, ends.run_id)]
    assert numbers == list(range(1, len(numbers) + 1))

    end = fleet.ended(lost)
    assert len(family) > 1
    assert (end.status, end.exit_status, end.order_at_fault) == ("failed", "lost", False)
    assert problems(messages_of([event.body for event in fleet.events(drone.id, lost.run_id)])) == []
    assert end.receipt is not None
    assert end.receipt.found == end.receipt.ended > 0


def test_a_home_that_is_registered_as_another_drone_sends_nothing_of_what_the_former_one_recorded(
    workshop: Workshop, scripted: ScriptedFactory
) -> None:
    fleet, drone = workshop.fleet, workshop.drone
    drone.start_worker()
    sent = workshop.submit(scripted(SLOW).url)
    wait_until(lambda: workshop.printed(sent, "begun"), seconds=60)
    drone.kill()
    drone.config = fleet.register(drone.home)
    drone.start_worker()
    wait_until(lambda: fleet.hellos(drone.id), seconds=60)
    [hello] = fleet.stream(drone.id)
    assert isinstance(hello, Hello)
    assert hello.runs == ()


def test_the_first_signal_lets_a_run_end_and_takes_no_other(workshop: Workshop, scripted: ScriptedFactory) -> None:
    fleet, drone = workshop.fleet, workshop.drone
    drone.start()
    model = scripted([shell("echo begun; sleep 6"), {"text": "Done."}])
    sent = workshop.submit(model.url)
    wait_until(lambda: workshop.printed(sent, "begun"), seconds=60)
    drone.terminate()
    wait_until(lambda: fleet.beats(drone.id)[-1].leaving)
    waiting = workshop.submit(model.url)
    assert drone.wait(seconds=60) == 0
    assert (fleet.ended(sent).status, fleet.kinds(waiting)) == ("success", [])
    assert fleet.broker.queue_length(drone.id) == 1
    assert fleet.beats(drone.id)[-1].stopping
    assert fleet.broker.lease(drone.id) is None
    assert "press Ctrl-C again (or send SIGTERM) to return their orders" in drone.stderr()


@pytest.mark.parametrize("opened", [pty.openpty, os.pipe])
def test_a_drone_whose_terminal_or_reader_is_gone_replaces_its_worker_and_lets_its_run_end(
    opened: Callable[[], tuple[int, int]],
    workshop: Workshop,
    scripted: ScriptedFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fleet, drone = workshop.fleet, workshop.drone
    monkeypatch.setenv("TERM", "xterm")
    theirs, ours = opened()
    drone.start(stderr=ours)
    os.close(ours)
    wait_until(lambda: len(fleet.hellos(drone.id)) == 1, seconds=60)
    os.close(theirs)
    assert drone.process is not None
    worker_below(drone.process.pid).kill()
    wait_until(lambda: len(fleet.hellos(drone.id)) == 2, seconds=60)
    sent = workshop.submit(scripted([shell("echo begun; sleep 6"), {"text": "Done."}]).url)
    wait_until(lambda: workshop.printed(sent, "begun"), seconds=60)
    drone.terminate()
    assert drone.wait(seconds=60) == 0
    assert fleet.ended(sent).status == "success"


def test_the_second_signal_gives_a_run_back_also_while_the_broker_is_away_and_what_is_unsent_follows(
    workshop: Workshop, at_work: Dispatch
) -> None:
    fleet, drone = workshop.fleet, workshop.drone
    drone.terminate()
    wait_until(lambda: fleet.beats(drone.id)[-1].leaving)
    fleet.server.stop()
    drone.terminate()
    assert drone.wait(seconds=90) == 0
    assert drone.processes() == []
    fleet.server.start()
    drone.start()
    end = fleet.ended(at_work, seconds=60)
    assert (end.status, end.give_back) == ("preempted", True)
    drone.wait_consuming()
    wait_until(lambda: not fleet.beats(drone.id)[-1].leaving)


@pytest.mark.usefixtures("at_work")
def test_the_third_signal_ends_a_drone_at_once(workshop: Workshop) -> None:
    drone = workshop.drone
    for said in ("ends after the current runs", "current runs return their orders", "killing the remaining processes"):
        drone.terminate()
        wait_until(partial(drone.said, said))
    assert drone.wait(seconds=60) == 0
    assert drone.processes() == []


@pytest.mark.long
@pytest.mark.usefixtures("at_work")
def test_a_drone_stops_while_its_broker_holds_the_connection_and_answers_nothing(workshop: Workshop) -> None:
    workshop.fleet.server.freeze()
    code = workshop.drone.stop(seconds=120)
    workshop.fleet.server.thaw()
    assert code == 0
    assert workshop.drone.processes() == []
