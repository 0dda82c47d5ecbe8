"""What a control message becomes for the run that it is about, also while that run has no process yet."""

from __future__ import annotations

from pathlib import Path

import pytest

from drone.reporting.journal import RunIdentity
from drone.reporting.reporter import Reporter
from drone.reporting.uplink import Sealer
from drone.runs.directory import Meta, RunDirectory
from drone.runs.pipe import ToRun
from drone.worker.control_messages import ControlActions
from drone.worker.inbox import Inbox
from drone.worker.tracked_runs import TrackedRun, TrackedRuns
from shared.control import Compact, ControlMessage, Decide, Drain, Say
from shared.envelope import Binding, new_private_key, public_key, seal
from tests.support.clocks import HandClock

RUN = "run000000000"
IDENTITY = RunIdentity(RUN, "order0000000", 2)


class Unused(Reporter):
    """A reporter of a drone that reports nothing."""

    def __init__(self) -> None:
        """It has no stream."""


@pytest.fixture
def run(tmp_path: Path) -> TrackedRun:
    """A run in hand whose process is not there yet."""
    directory = RunDirectory(tmp_path / "runs" / RUN)
    directory.create(Meta(IDENTITY.order_id, IDENTITY.generation, "boot00000000", "2026-11-21T12:00:00+00:00"))
    return TrackedRun(directory, IDENTITY, HandClock())


@pytest.fixture
def actions(run: TrackedRun) -> ControlActions:
    runs = TrackedRuns()
    runs.add(run)
    return ControlActions(runs, Unused(), lambda _: None, lambda: None, lambda _: None)


def act(actions: ControlActions, *bodies: Say | Decide | Compact | Drain) -> None:
    for number, body in enumerate(bodies):
        actions.act(ControlMessage(id=str(number), body=body))


def heard(run: TrackedRun) -> list[ToRun]:
    """What the run's process is told once it is there."""
    words: list[ToRun] = []
    run.attach(words.append)
    return words


def test_words_decisions_and_compactions_wait_for_the_process_in_their_order(
    actions: ControlActions, run: TrackedRun
) -> None:
    words = [
        Say(run_id=RUN, text="stop", interrupt=True),
        Decide(run_id=RUN, call_id="c1", approved=False, comment="no"),
        Compact(run_id=RUN, instructions="keep the names"),
        Say(run_id=RUN, text="later", after=True),
    ]
    act(actions, Say(run_id="other0000000", text="of a run that is not in hand"), *words)
    assert heard(run) == words


def test_words_that_lie_in_the_inbox_are_acted_on_in_the_order_of_their_saying() -> None:
    fleet, drone, clock = new_private_key(), new_private_key(), HandClock()
    acted: list[str] = []
    inbox = Inbox(Sealer("drone0000000", drone, public_key(fleet), clock), lambda message: acted.append(message.id))

    def letter(name: str) -> bytes:
        clock.sleep(0.001)
        message = ControlMessage(id=name, body=Say(run_id=RUN, text=name))
        binding = Binding(direction="control", drone="drone0000000", run=RUN)
        body = message.model_dump_json()
        return seal(body, binding, sender=fleet, recipient=public_key(drone), issued_at=clock.now()).encode()

    said = {name: letter(name) for name in ("first", "second", "third")}
    inbox.read({name.encode(): said[name] for name in ("third", "first", "second")})
    assert acted == ["first", "second", "third"]
