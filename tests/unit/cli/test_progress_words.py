"""What people read of a run that works, or of which nothing comes."""

from __future__ import annotations

from datetime import timedelta

import pytest

from control_plane.operations.orders.progress import in_words, of_beat
from shared.durations import roughly


@pytest.mark.parametrize(
    ("doing_seconds", "quiet_seconds", "words"),
    [
        (3, 3, "shell: npm test"),
        (19, 19, "shell: npm test, for 10 s"),
        (185, 30, "shell: npm test, for 3 min"),
        (185, 119, "shell: npm test, for 3 min"),
        (250, 245, "no progress for 4 min: shell: npm test"),
        (7400, 1, "shell: npm test, for 2 h 3 min"),
    ],
)
def test_a_run_is_said_to_make_no_progress_from_two_minutes_on(
    doing_seconds: float, quiet_seconds: float, words: str
) -> None:
    assert in_words("shell: npm test", doing_seconds, quiet_seconds, "") == words


def test_whoever_waits_for_somebody_may_be_quiet() -> None:
    assert in_words("waiting for a person", 7200, 7200, "person") == "waiting for a person, for 2 h 0 min"


def test_a_run_that_does_nothing_is_said_nothing_of() -> None:
    assert in_words("", 0, 0, "") == ""


def test_what_a_beat_said_is_older_by_its_age() -> None:
    said = {"doing": "shell: npm test", "doing_seconds": 58.0, "quiet_seconds": 1.0, "waits_for": ""}
    assert of_beat(said, timedelta(seconds=4)) == "shell: npm test, for 1 min"


def test_an_older_drones_beat_has_no_durations() -> None:
    assert of_beat({"doing": "thinks"}, timedelta(seconds=3)) == "thinks"


@pytest.mark.parametrize(
    ("seconds", "label"), [(-3, "0 s"), (59.9, "59 s"), (60, "1 min"), (899, "14 min"), (7380, "2 h 3 min")]
)
def test_a_span_that_grows_is_never_said_to_be_longer_than_it_is(seconds: float, label: str) -> None:
    assert roughly(seconds) == label
