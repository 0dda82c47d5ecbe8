"""The parts of an order's reason can be told apart again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from control_plane.orders.dispatch import canceling_reason, settled_reason, who_canceled


def test_why_an_order_waited_is_dropped_once_it_runs() -> None:
    assert settled_reason("placed on oka: asked for by name; waits in oka's queue: the drone is busy") == (
        "placed on oka: asked for by name"
    )


def test_a_reason_without_waiting_stays_as_it_is() -> None:
    assert settled_reason("placed on oka: asked for by name") == "placed on oka: asked for by name"


@given(st.text())
def test_who_canceled_is_read_back_whatever_they_wrote(asked: str) -> None:
    assert who_canceled(canceling_reason(asked)) == asked
