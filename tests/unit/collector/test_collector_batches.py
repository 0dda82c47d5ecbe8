"""How many events a collector takes in at once: as many as go in within a moment, so that heartbeats get through."""

from __future__ import annotations

from control_plane.collector.reader import next_batch


def test_batches_shrink_while_they_take_long_and_grow_again_up_to_the_usual_size() -> None:
    assert [next_batch(100, 1.5), next_batch(50, 9.0), next_batch(6, 2.0)] == [50, 25, 5]
    assert [next_batch(25, 0.1), next_batch(80, 0.1), next_batch(40, 0.6)] == [50, 100, 40]
