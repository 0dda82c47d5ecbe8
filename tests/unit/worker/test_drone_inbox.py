"""Control messages: each is acted on once, whichever way it comes, and only if the control plane sealed it."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from drone.reporting.uplink import Sealer
from drone.worker.inbox import Inbox
from shared.control import Cancel, ControlMessage, Drain, Say
from shared.envelope import Binding, new_private_key, public_key, seal
from tests.support.clocks import HandClock

FLEET, DRONE = new_private_key(), new_private_key()
CLOCK = HandClock()
SEALER = Sealer("drone0000000", DRONE, public_key(FLEET), CLOCK)
ON = Drain(on=True)


def sealed(text: str, *, drone: str = "drone0000000", sender: bytes = FLEET, run: str = "") -> bytes:
    CLOCK.sleep(0.001)
    binding = Binding(direction="control", drone=drone, run=run)
    return seal(text, binding, sender=sender, recipient=public_key(DRONE), issued_at=CLOCK.now()).encode()


def letter(message_id: str, body: Cancel | Drain | Say = ON, **how: str) -> bytes:
    return sealed(ControlMessage(id=message_id, body=body).model_dump_json(), **how)  # type: ignore[arg-type]


@pytest.fixture
def acted() -> list[str]:
    return []


@pytest.fixture
def inbox(acted: list[str]) -> Inbox:
    return Inbox(SEALER, lambda message: acted.append(message.id))


def test_a_message_is_acted_on_once_whichever_way_and_however_often_it_comes(inbox: Inbox, acted: list[str]) -> None:
    inbox.take(letter("a"))
    inbox.read({b"a": letter("a"), b"b": letter("b")})
    assert (acted, inbox.done()) == (["a", "b"], ("a", "b"))
    inbox.read({b"b": letter("b")})
    assert inbox.done() == ("b",)
    inbox.read({})
    inbox.take(letter("a"))
    assert acted == ["a", "b"]


def test_what_lies_in_the_inbox_is_acted_on_in_the_order_of_its_saying(inbox: Inbox, acted: list[str]) -> None:
    said = {name: letter(name, Say(run_id="run1", text=name), run="run1") for name in ("first", "second", "third")}
    inbox.read({name.encode(): said[name] for name in ("third", "first", "second")})
    assert acted == ["first", "second", "third"]


def test_a_message_that_is_replayed_after_a_restart_has_no_effect_and_a_newer_one_has(tmp_path: Path) -> None:
    acted: list[str] = []

    def booted() -> Inbox:
        return Inbox(SEALER, lambda message: acted.append(message.id), {"drain": tmp_path / "last drain"})

    captured = letter("on")
    before = booted()
    before.take(captured)
    before.take(letter("off", Drain(on=False)))
    after = booted()
    after.read({b"on": captured})
    assert (acted, after.done()) == (["on", "off"], ("on",))
    after.take(letter("newer"))
    assert acted == ["on", "off", "newer"]


def test_a_message_of_somebody_else_for_another_drone_or_run_or_of_an_unknown_kind_is_not_acted_on_and_told_once(
    inbox: Inbox, acted: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    cancel = Cancel(run_id="run1", generation=1)
    refused = [
        sealed(ControlMessage(id="a", body=ON).model_dump_json(), sender=new_private_key()),
        letter("b", drone="drone1111111"),
        letter("c", cancel, run="run2"),
        letter("d", run="run2"),
        sealed(json.dumps({"id": "e", "body": {"kind": "dance"}})),
    ]
    letters = {str(number).encode(): each for number, each in enumerate(refused)}
    with caplog.at_level(logging.ERROR):
        inbox.read(letters)
        inbox.read({**letters, b"f": letter("f", cancel, run="run1")})
    assert (acted, inbox.done()) == (["f"], ("f",))
    assert len(caplog.records) == len(refused)
