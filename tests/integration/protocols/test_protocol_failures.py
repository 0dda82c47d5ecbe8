"""Every protocol over real HTTP: what each refusal and each broken stream means, and whether it is repeated."""

from __future__ import annotations

from itertools import count

import pytest

from drone.model.errors import RETRIED, ErrorClass
from shared.errors import Preempted
from shared.work_order import Limits
from tests.support.clocks import HandClock
from tests.support.protocols import PROTOCOLS, anthropic
from tests.support.protocols.anthropic import ANTHROPIC
from tests.support.protocols.in_process import read
from tests.support.protocols.played import Played, calling, refusal_of
from tests.support.protocols.spoken import Answer, Refusal, Spoken, SpokenCall, cut, ended, left_open
from tests.support.scripted import silent_for_long

pytestmark = pytest.mark.usefixtures("warm_model")

FULL = Answer("Let me look.", "Where is it?", "c2lnbmVk", (SpokenCall("a1b2c3d4e"),))
REFUSALS = [(each, refusal) for each in PROTOCOLS for refusal in (*each.refusals, *each.breaks)]


def test_each_failure_has_its_class_and_is_repeated_if_it_may_pass() -> None:
    """After the delay that the provider asks for."""
    for protocol, refusal in REFUSALS:
        expected = refusal.error_class, pytest.approx(refusal.retry_after)
        assert failing(protocol, refusal) == expected, (protocol, refusal.said)


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
        for said in (ended(whole, 1), cut(whole, last // 2), ended(whole, last)):
            played = Played(protocol, said)
            assert [retry.error_class for retry in played.retries] == ["server"], (protocol, said.ends, said.pieces)
            assert (played.outcome.response, played.toolbox.ran) == ("Done.", []), protocol


def test_pings_are_signs_of_life() -> None:
    """How long they keep a silent answer alive is tested in tests/unit/model/test_model_stream_reader.py."""
    begun, provider = ANTHROPIC.answer(FULL).pieces[:4], ANTHROPIC.provider("http://127.0.0.1:9")
    signs = [read([*begun, *[anthropic.PING] * pings], provider).call.signs() for pings in (0, 5)]
    assert signs[0] < signs[1]


def test_a_stream_that_falls_silent_is_repeated_and_its_connection_is_closed() -> None:
    for protocol in PROTOCOLS:
        whole = protocol.answer(FULL)
        half = left_open(whole, len(whole.pieces) // 2)
        with calling(protocol, half, protocol.answer(Answer("Here I am.")), clock=HandClock()) as (called, endpoint):
            silent_for_long(called, endpoint.staying.is_set)
            assert called.ask().message.content == "Here I am."
            assert endpoint.left.wait(60)
        assert [step.error_class for step in called.recorder.bodies] == ["timeout"]  # type: ignore[union-attr]


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=str)
def test_a_call_that_is_given_up_closes_its_connection_though_nothing_arrives(protocol: Spoken) -> None:
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
