"""Every protocol over real HTTP: what each refusal and each broken stream means, and whether it is repeated."""

from __future__ import annotations

from itertools import count

import pytest

from drone.model.call import ModelCall
from drone.model.errors import RETRIED, ErrorClass
from drone.model.stream_reader import Waits
from shared.errors import Preempted
from shared.work_order import Limits
from tests.support.clocks import HandClock
from tests.support.protocols import PROTOCOLS, anthropic
from tests.support.protocols.anthropic import ANTHROPIC
from tests.support.protocols.played import ONCE, Played, calling, refusal_of
from tests.support.protocols.spoken import Answer, Refusal, Spoken, SpokenCall, cut, ended, left_open
from tests.support.scripted import silent_for_long

pytestmark = pytest.mark.usefixtures("warm_model")

FULL = Answer("Let me look.", "Where is it?", "c2lnbmVk", (SpokenCall("a1b2c3d4e"),))
REFUSALS = [(each, refusal) for each in PROTOCOLS for refusal in (*each.refusals, *each.breaks)]


def test_each_failure_has_its_class_and_is_repeated_if_it_may_pass() -> None:
    """After the delay that the provider asks for."""
    found = [(str(protocol), refusal.said, *failing(protocol, refusal)) for protocol, refusal in REFUSALS]
    assert found == [
        (str(protocol), refusal.said, refusal.error_class, pytest.approx(refusal.retry_after))
        for protocol, refusal in REFUSALS
    ]


def failing(protocol: Spoken, refusal: Refusal) -> tuple[str, float]:
    """The class of a failure, which is repeated if it may pass, and after how long."""
    answer = protocol.answer(Answer("Here I am."))
    with calling(protocol, refusal.said, answer, limits=Limits(base_delay=0), clock=HandClock()) as (called, endpoint):
        if refusal.error_class not in RETRIED - {ErrorClass.CONTEXT_OVERFLOW}:
            failed = refusal_of(called)
            assert len(endpoint.asked) == 1
            return failed.error_class, 0.0
        assert called.ask().message.content == "Here I am."
    (retry,) = called.recorder.bodies
    return retry.error_class, retry.delay_s  # type: ignore[union-attr]


def test_a_stream_that_breaks_anywhere_is_repeated_and_nothing_of_it_is_kept() -> None:
    for protocol in PROTOCOLS:
        whole = protocol.answer(FULL)
        last = len(whole.pieces) - protocol.spare - 1
        for said in (cut(whole, 1), ended(whole, 1), cut(whole, last // 2), cut(whole, last), ended(whole, last)):
            played = Played(protocol, said)
            assert [retry.error_class for retry in played.retries] == ["server"], (protocol, said.ends, said.pieces)
            assert (played.outcome.response, played.toolbox.ran) == ("Done.", []), protocol


def test_a_stream_that_falls_silent_is_repeated_and_its_connection_is_closed() -> None:
    for protocol in PROTOCOLS:
        whole = protocol.answer(FULL)
        half = left_open(whole, len(whole.pieces) // 2)
        with calling(protocol, half, protocol.answer(Answer("Here I am.")), clock=HandClock()) as (called, endpoint):
            silent_for_long(called, endpoint.staying.is_set)
            assert called.ask().message.content == "Here I am."
            assert endpoint.left.wait(60)
        assert [step.error_class for step in called.recorder.bodies] == ["timeout"]  # type: ignore[union-attr]


def test_a_call_that_is_given_up_closes_its_connection_though_nothing_arrives() -> None:
    for protocol in PROTOCOLS:
        give_up(protocol)


def give_up(protocol: Spoken) -> None:
    """Give a call up after its first piece, and wait until its connection is closed."""
    with calling(protocol, left_open(protocol.answer(FULL), 1)) as (called, endpoint):
        idle = count(1)

        def check() -> None:
            # It is called when nothing arrived for a while: the second time, all that was sent has arrived.
            if endpoint.staying.is_set() and next(idle) == 2:
                raise Preempted

        called.controls.check = check  # type: ignore[method-assign]
        with pytest.raises(Preempted):
            called.ask()
        assert endpoint.left.wait(60)


def test_pings_keep_a_silent_answer_alive_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    waits, clock, seen = Waits(connect=60, first=60, between=60, alive=300), HandClock(), {0}
    signs_of = ModelCall.signs

    def signs(call: ModelCall) -> int:
        """Between two pings that were noticed, 20 seconds pass."""
        if (found := signs_of(call)) not in seen:
            seen.add(found)
            clock.sleep(20)
        return found

    monkeypatch.setattr(ModelCall, "signs", signs)
    pinging = left_open(ANTHROPIC.answer(FULL), 4, anthropic.PING)
    with calling(ANTHROPIC, pinging, limits=ONCE, waits=waits, clock=clock) as (called, _):
        assert refusal_of(called).error_class == "timeout"
    assert clock.passed > waits.alive > waits.between
