"""Names in Redis, git and on disk: all built in one place, none a prefix of another."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from shared import names

IDS = st.text("0123456789abcdef", min_size=names.ID_LENGTH, max_size=names.ID_LENGTH)


@given(one=IDS, other=IDS)
def test_no_name_of_one_drone_begins_with_a_name_of_another(one: str, other: str) -> None:
    built = (names.queue, names.events_stream, names.live_channel, names.inbox_key, names.lease_key)
    pairs = [(make(one), make(other)) for make in built]
    assert [left.startswith(right) for left, right in pairs] == [one == other] * len(built)


@given(drone=IDS, run=IDS)
def test_the_drone_can_be_told_from_every_name_that_holds_it(drone: str, run: str) -> None:
    made = [names.events_stream(drone), names.live_channel(drone), names.beat_channel(drone), names.run_key(drone, run)]
    assert {names.drone_of(each) for each in made} == {drone}


def test_a_late_branch_does_not_lie_below_the_orders_own() -> None:
    assert not names.late_branch("abc", 2).startswith(names.branch("abc") + "/")
