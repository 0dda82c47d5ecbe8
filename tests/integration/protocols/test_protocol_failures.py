"""Every protocol over real HTTP: what each refusal and each broken stream means, and whether it is repeated."""

from __future__ import annotations

import time

import pytest

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

pytestmark = pytest.mark.usefixtures("warm_model")
everywhere = pytest.mark.parametrize("protocol", PROTOCOLS, ids=str)

SHORT = Waits(connect=2.0, first=1.5, between=1.0, alive=2.5)
FULL = Answer("Let me look.", "Where is it?", "c2lnbmVk", (SpokenCall("a1b2c3d4e"),))
EVERY_REFUSAL = [(each, refusal) for each in PROTOCOLS for refusal in (*each.refusals, *each.breaks)]


@pytest.mark.parametrize(("protocol", "refusal"), EVERY_REFUSAL, ids=str)
def test_each_failure_has_its_class_and_is_repeated_if_it_may_pass(protocol: Spoken, refusal: Refusal) -> None:
    with Endpoint(refusal.said, protocol.answer(Answer("Here I am."))) as endpoint:
        called = Called("", protocol.provider(endpoint.url), limits=Limits(base_delay=0))
        if refusal.error_class in RETRIED - {ErrorClass.CONTEXT_OVERFLOW} and not refusal.retry_after:
            assert called.ask().message.content == "Here I am."
            assert [step.error_class for step in called.recorder.bodies] == [refusal.error_class]  # type: ignore[union-attr]
        else:
            called.limits = called.model.limits = ONCE
            assert refusal_of(called).error_class == refusal.error_class
            assert len(endpoint.asked) == 1
        called.model.close()


@pytest.mark.parametrize(
    ("protocol", "refusal"), [(each, refusal) for each, refusal in EVERY_REFUSAL if refusal.retry_after], ids=str
)
def test_the_delay_that_a_refusal_asks_for_is_kept(protocol: Spoken, refusal: Refusal) -> None:
    with Endpoint(refusal.said, protocol.answer(Answer("Here I am."))) as endpoint:
        called = Called("", protocol.provider(endpoint.url), limits=Limits(base_delay=0), clock=HandClock())
        called.ask()
        called.model.close()
    assert [step.delay_s for step in called.recorder.bodies] == [pytest.approx(refusal.retry_after)]  # type: ignore[union-attr]


@everywhere
def test_a_stream_that_breaks_anywhere_is_repeated_and_nothing_of_it_is_kept(protocol: Spoken) -> None:
    whole = protocol.answer(FULL)
    last = len(whole.pieces) - protocol.spare - 1
    broken = [kind(whole, place) for place in {1, last // 2, last} for kind in (cut, ended)]
    for each in broken:
        played = Played(protocol, each)
        assert [retry.error_class for retry in played.retries] == ["server"], (each.ends, len(each.pieces))
        assert (played.outcome.response, played.toolbox.ran) == ("Done.", [])


@everywhere
def test_a_stream_that_falls_silent_is_repeated_and_its_connection_is_closed(protocol: Spoken) -> None:
    whole = protocol.answer(FULL)
    with Endpoint(left_open(whole, len(whole.pieces) // 2), protocol.answer(Answer("Here I am."))) as endpoint:
        called = Called("", protocol.provider(endpoint.url), waits=SHORT)
        assert called.ask().message.content == "Here I am."
        assert endpoint.left.wait(5)
        called.model.close()
    assert [step.error_class for step in called.recorder.bodies] == ["timeout"]  # type: ignore[union-attr]


@everywhere
def test_a_call_that_is_given_up_closes_its_connection_though_nothing_arrives(protocol: Spoken) -> None:
    whole = protocol.answer(FULL)
    with Endpoint(left_open(whole, 1)) as endpoint:
        called = Called("", protocol.provider(endpoint.url))

        def check() -> None:
            if endpoint.staying.wait(0.01):
                time.sleep(0.2)  # what was sent arrives
                raise Preempted

        called.controls.check = check  # type: ignore[method-assign]
        with pytest.raises(Preempted):
            called.ask()
        assert endpoint.left.wait(5)
        called.model.close()


def test_pings_keep_a_silent_answer_alive_but_not_for_ever() -> None:
    whole = ANTHROPIC.answer(FULL)
    with Endpoint(left_open(whole, 4, anthropic.PING)) as endpoint:
        called = Called("", ANTHROPIC.provider(endpoint.url), limits=ONCE, waits=SHORT)
        began = called.clock.monotonic()
        assert refusal_of(called).error_class == "timeout"
        assert 2.4 < called.clock.monotonic() - began < 10
        called.model.close()
