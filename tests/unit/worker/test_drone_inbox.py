"""Control messages: each is acted on once, whichever way it comes, and only if the control plane sealed it."""

from __future__ import annotations

import logging

import pytest

from drone.reporting.uplink import Sealer
from drone.worker.inbox import Inbox
from shared.control import Cancel, ControlMessage, Drain
from shared.envelope import Binding, new_private_key, public_key, seal
from tests.support.clocks import HandClock

FLEET, DRONE = new_private_key(), new_private_key()
SEALER = Sealer("drone0000000", DRONE, public_key(FLEET), HandClock())


def letter(
    message_id: str,
    *,
    drone: str = "drone0000000",
    sender: bytes = FLEET,
    body: Cancel | Drain = Drain(on=True),  # noqa: B008 - frozen
    run: str = "",
) -> bytes:
    message = ControlMessage(id=message_id, body=body)
    binding = Binding(direction="control", drone=drone, run=run)
    return seal(
        message.model_dump_json(), binding, sender=sender, recipient=public_key(DRONE), issued_at=HandClock().now()
    ).encode()


@pytest.fixture
def acted() -> list[ControlMessage]:
    return []


@pytest.fixture
def inbox(acted: list[ControlMessage]) -> Inbox:
    return Inbox(SEALER, acted.append)


def test_a_message_that_comes_both_ways_is_acted_on_once(inbox: Inbox, acted: list[ControlMessage]) -> None:
    inbox.take(letter("a"))
    inbox.read({b"a": letter("a")})
    inbox.read({b"a": letter("a")})
    assert [message.id for message in acted] == ["a"]


def test_done_names_what_is_still_in_the_inbox(inbox: Inbox) -> None:
    inbox.read({b"a": letter("a"), b"b": letter("b")})
    assert inbox.done() == ("a", "b")
    inbox.read({b"b": letter("b")})
    assert inbox.done() == ("b",)


def test_a_message_that_left_the_inbox_does_nothing_when_it_is_played_again(
    inbox: Inbox, acted: list[ControlMessage]
) -> None:
    inbox.read({b"a": letter("a")})
    inbox.read({})
    inbox.take(letter("a"))
    assert len(acted) == 1


def test_a_message_of_somebody_else_or_for_another_drone_is_not_acted_on_and_told_once(
    inbox: Inbox, acted: list[ControlMessage], caplog: pytest.LogCaptureFixture
) -> None:
    forged = {b"a": letter("a", sender=new_private_key()), b"b": letter("b", drone="drone1111111")}
    with caplog.at_level(logging.ERROR):
        inbox.read(forged)
        inbox.read(forged)
    assert acted == []
    assert inbox.done() == ()
    assert len(caplog.records) == 2


def test_a_message_about_another_run_than_its_envelope_is_not_acted_on(
    inbox: Inbox, acted: list[ControlMessage], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        inbox.take(letter("a", body=Cancel(run_id="run1", generation=1), run="run2"))
        inbox.take(letter("b", body=Drain(on=True), run="run2"))
    inbox.take(letter("c", body=Cancel(run_id="run1", generation=1), run="run1"))
    assert [message.id for message in acted] == ["c"]
    assert len(caplog.records) == 2
