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
from tests.support.endpoints import Endpoint
from tests.support.protocols import PROTOCOLS, anthropic
from tests.support.protocols.anthropic import ANTHROPIC
from tests.support.protocols.played import ONCE, Played, refusal_of
from tests.support.protocols.spoken import Answer, Refusal, Spoken, SpokenCall, cut, ended, left_open
from tests.support.scripted import Called
from tests.support.silence import silent_for_long

pytestmark = pytest.mark.usefixtures("warm_model")

FULL = Answer("Let me look.", "Where is it?", "c2lnbmVk", (SpokenCall("a1b2c3d4e"),))
EVERY_REFUSAL = [(each, refusal) for each in PROTOCOLS for refusal in (*each.refusals, *each.breaks)]


def test_each_failure_has_its_class_and_is_repeated_if_it_may_pass() -> None:
    found = [(str(protocol), str(refusal), class_of(protocol, refusal)) for protocol, refusal in EVERY_REFUSAL]
    assert found == [(str(protocol), str(refusal), refusal.error_class) for protocol, refusal in EVERY_REFUSAL]


def class_of(protocol: Spoken, refusal: Refusal) -> str:
    """The class of a failure, which is repeated if it may pass."""
    with Endpoint(refusal.said, protocol.answer(Answer("Here I am."))) as endpoint:
        called = Called("", protocol.provider(endpoint.url), limits=Limits(base_delay=0))
        if refusal.error_class in RETRIED - {ErrorClass.CONTEXT_OVERFLOW} and not refusal.retry_after:
            assert called.ask().message.content == "Here I am."
            (found,) = (step.error_class for step in called.recorder.bodies)  # type: ignore[union-attr]
        else:
            called.limits = called.model.limits = ONCE
            found = refusal_of(called).error_class
            assert len(endpoint.asked) == 1
        called.model.close()
    return str(found)


def test_the_delay_that_a_refusal_asks_for_is_kept() -> None:
    for protocol, refusal in ((each, refusal) for each, refusal in EVERY_REFUSAL if refusal.retry_after):
        with Endpoint(refusal.said, protocol.answer(Answer("Here I am."))) as endpoint:
            called = Called("", protocol.provider(endpoint.url), limits=Limits(base_delay=0), clock=HandClock())
            called.ask()
            called.model.close()
        (delay,) = (step.delay_s for step in called.recorder.bodies)  # type: ignore[union-attr]
        assert delay == pytest.approx(refusal.retry_after), (protocol, refusal)


def test_a_stream_that_breaks_anywhere_is_repeated_and_nothing_of_it_is_kept() -> None:
    for protocol in PROTOCOLS:
        whole = protocol.answer(FULL)
        last = len(whole.pieces) - protocol.spare - 1
        broken = [kind(whole, place) for place in {1, last // 2, last} for kind in (cut, ended)]
        for each in broken:
            played = Played(protocol, each)
            assert [retry.error_class for retry in played.retries] == ["server"], (each.ends, len(each.pieces))
            assert (played.outcome.response, played.toolbox.ran) == ("Done.", [])


def test_a_stream_that_falls_silent_is_repeated_and_its_connection_is_closed() -> None:
    for protocol in PROTOCOLS:
        whole = protocol.answer(FULL)
        with Endpoint(left_open(whole, len(whole.pieces) // 2), protocol.answer(Answer("Here I am."))) as endpoint:
            called = Called("", protocol.provider(endpoint.url), clock=HandClock())
            silent_for_long(called, endpoint.staying.is_set)
            assert called.ask().message.content == "Here I am."
            assert endpoint.left.wait(60)
            called.model.close()
        assert [step.error_class for step in called.recorder.bodies] == ["timeout"]  # type: ignore[union-attr], protocol


def test_a_call_that_is_given_up_closes_its_connection_though_nothing_arrives() -> None:
    for protocol in PROTOCOLS:
        give_up(protocol)


def give_up(protocol: Spoken) -> None:
    """Give a call up after its first piece, and wait until its connection is closed."""
    whole = protocol.answer(FULL)
    with Endpoint(left_open(whole, 1)) as endpoint:
        called, idle = Called("", protocol.provider(endpoint.url)), count(1)

        def check() -> None:
            # It is called when nothing arrived for a while: the second time, all that was sent has arrived.
            if endpoint.staying.is_set() and next(idle) == 2:
                raise Preempted

        called.controls.check = check  # type: ignore[method-assign]
        with pytest.raises(Preempted):
            called.ask()
        assert endpoint.left.wait(60)
        called.model.close()


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
    with Endpoint(left_open(ANTHROPIC.answer(FULL), 4, anthropic.PING)) as endpoint:
        called = Called("", ANTHROPIC.provider(endpoint.url), limits=ONCE, waits=waits, clock=clock)
        assert refusal_of(called).error_class == "timeout"
        called.model.close()
    assert clock.passed > waits.alive > waits.between
