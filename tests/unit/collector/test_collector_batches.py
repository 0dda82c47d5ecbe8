"""How many events a collector takes in at once: as many as go in within a moment, so that heartbeats get through."""

from __future__ import annotations

from control_plane.collector.reader import next_batch


def test_a_batch_that_took_long_is_followed_by_one_half_as_large_down_to_a_few() -> None:
    assert [next_batch(100, 1.5), next_batch(50, 9.0), next_batch(6, 2.0)] == [50, 25, 5]


def test_quick_batches_grow_again_up_to_the_usual_size() -> None:
    assert [next_batch(25, 0.1), next_batch(80, 0.1), next_batch(40, 0.6)] == [50, 100, 40]
