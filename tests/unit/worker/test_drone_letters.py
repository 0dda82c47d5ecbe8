"""What a control message becomes for the run that it is about, also while that run has no process yet."""

from __future__ import annotations

import json
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import pytest

from drone.reporting.journal import RunIdentity
from drone.reporting.reporter import Reporter
from drone.reporting.uplink import Sealer
from drone.runs.directory import Meta, RunDirectory
from drone.worker.active_runs import Hand, RunInHand
from drone.worker.control_messages import Letters
from drone.worker.inbox import Inbox
from drone.worker.run_messages import Telling
from shared.control import Compact, ControlMessage, Decide, Drain, Say
from shared.envelope import Binding, new_private_key, public_key, seal
from tests.support import wait_until
from tests.support.clocks import HandClock

RUN = "run000000000"
IDENTITY = RunIdentity(RUN, "order0000000", 2)
LONG = "x" * 60_000


class Unused(Reporter):
    """A reporter of a drone that reports nothing."""

    def __init__(self) -> None:
        """It has no stream."""


@pytest.fixture
def run(tmp_path: Path) -> RunInHand:
    """A run in hand whose process is not there yet."""
    directory = RunDirectory(tmp_path / "runs" / RUN)
    directory.create(Meta(IDENTITY.order_id, IDENTITY.generation, "boot00000000", "2026-11-21T12:00:00+00:00"))
    return RunInHand(directory, IDENTITY, HandClock())


@pytest.fixture
def letters(run: RunInHand) -> Letters:
    hand = Hand()
    hand.add(run)
    return Letters(hand, Unused(), lambda _: None)


def act(letters: Letters, *bodies: Say | Decide | Compact | Drain) -> None:
    for number, body in enumerate(bodies):
        letters.act(ControlMessage(id=str(number), body=body))


def heard(run: RunInHand) -> list[dict[str, Any]]:
    """What the run's process is told once it is there."""
    words: list[bytes] = []
    run.attach(words.append)
    return [json.loads(word) for word in words]


def test_words_decisions_and_compactions_wait_for_the_process_in_their_order(letters: Letters, run: RunInHand) -> None:
    act(
        letters,
        Say(run_id=RUN, text="stop", interrupt=True),
        Decide(run_id=RUN, call_id="c1", approved=False, comment="no"),
        Compact(run_id=RUN, instructions="keep the names"),
        Say(run_id=RUN, text="later", after=True),
    )
    assert heard(run) == [
        {"kind": "say", "text": "stop", "after": False, "interrupt": True},
        {"kind": "decide", "call_id": "c1", "approved": False, "comment": "no"},
        {"kind": "compact", "instructions": "keep the names"},
        {"kind": "say", "text": "later", "after": True, "interrupt": False},
    ]


def test_a_word_about_a_run_that_is_not_in_hand_is_nobodys(letters: Letters, run: RunInHand) -> None:
    act(letters, Say(run_id="other0000000", text="x"), Decide(run_id="other0000000", call_id="c", approved=True))
    assert heard(run) == []


def test_a_run_that_does_not_read_holds_nobody_up_and_misses_nothing() -> None:
    ours, theirs = Pipe(duplex=True)
    telling = Telling(ours)
    # Far more than a pipe holds: whoever wrote it straight into the pipe would wait here for ever.
    for number in range(40):
        telling.tell(f"{number} {LONG}".encode())
    words = [theirs.recv_bytes().decode() for _ in range(40)]
    assert [word.partition(" ")[0] for word in words] == [str(number) for number in range(40)]
    telling.close()
    ours.close()
    theirs.close()


def test_telling_ends_when_the_run_is_gone() -> None:
    ours, theirs = Pipe(duplex=True)
    telling = Telling(ours)
    telling.tell(LONG.encode() * 20)
    theirs.close()
    telling.close()
    wait_until(lambda: not telling._thread.is_alive())
    ours.close()


def test_words_that_lie_in_the_inbox_are_acted_on_in_the_order_of_their_saying() -> None:
    fleet, drone, clock = new_private_key(), new_private_key(), HandClock()
    acted: list[str] = []
    inbox = Inbox(Sealer("drone0000000", drone, public_key(fleet), clock), lambda message: acted.append(message.id))

    def letter(name: str) -> bytes:
        clock.sleep(0.001)
        message = ControlMessage(id=name, body=Say(run_id=RUN, text=name))
        binding = Binding(direction="control", drone="drone0000000")
        body = message.model_dump_json()
        return seal(body, binding, sender=fleet, recipient=public_key(drone), issued_at=clock.now()).encode()

    said = {name: letter(name) for name in ("first", "second", "third")}
    inbox.read({name.encode(): said[name] for name in ("third", "first", "second")})
    assert acted == ["first", "second", "third"]
