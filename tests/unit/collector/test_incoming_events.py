"""How events come in: those that came too early wait for those before them, and a batch takes a moment at most."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from control_plane.collector.held_events import Gaps
from control_plane.collector.reader import next_batch
from shared.events import Event, Phase

RUN = "0" * 12


def event(seq: int) -> Event:
    at = datetime(2026, 11, 21, tzinfo=UTC)
    return Event(run_id=RUN, order_id=RUN, generation=1, seq=seq, at=at, body=Phase(name="working"))


def drained(gaps: Gaps, stored: int) -> list[int]:
    """The seqs that come out when everything up to `stored` is there."""
    found = []
    while held := gaps.take_next(RUN, stored):
        stored = max(stored, held.event.seq)
        found.append(held.event.seq)
    return found


@given(st.permutations(range(2, 9)))
def test_held_events_come_out_in_order_once_the_first_is_there(seqs: list[int]) -> None:
    gaps = Gaps()
    [gaps.hold(str(seq), event(seq)) for seq in seqs]
    assert drained(gaps, 0) == []
    assert drained(gaps, 1) == list(range(2, 9))
    assert not gaps
    # A second hole holds back what lies behind it.
    [gaps.hold(str(seq), event(seq)) for seq in (2, 3, 5)]
    assert drained(gaps, 1) == [2, 3]
    assert gaps.first(RUN).seq == 5


def test_the_wait_begins_anew_when_the_run_moved_on_and_a_gap_is_not_asked_for_at_every_look() -> None:
    gaps = Gaps()
    gaps.hold("a", event(5))
    gaps.note(RUN, stored=1, now=100.0)
    gaps.note(RUN, stored=2, now=150.0)
    assert gaps.waited(RUN, now=160.0) == 10.0
    gaps.asked(RUN, now=100.0)
    assert [gaps.may_ask(RUN, now=now, every=30.0) for now in (129.0, 130.0)] == [False, True]


def test_batches_shrink_while_they_take_long_and_grow_again_up_to_the_usual_size() -> None:
    assert [next_batch(100, 1.5), next_batch(50, 9.0), next_batch(6, 2.0)] == [50, 25, 5]
    assert [next_batch(25, 0.1), next_batch(80, 0.1), next_batch(40, 0.6)] == [50, 100, 40]
