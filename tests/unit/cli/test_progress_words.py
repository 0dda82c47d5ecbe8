"""What people read of a run that works, or of which nothing comes."""

from __future__ import annotations

from datetime import timedelta

from control_plane.operations.orders.progress import in_words, of_beat
from shared.durations import roughly


def test_a_run_is_said_to_make_no_progress_from_two_minutes_on() -> None:
    cases = {
        (3, 3): "shell: npm test",
        (19, 19): "shell: npm test, for 10 s",
        (185, 119): "shell: npm test, for 3 min",
        (250, 245): "no progress for 4 min: shell: npm test",
    }
    assert {each: in_words("shell: npm test", *each, "") for each in cases} == cases
    assert in_words("waiting for a person", 7200, 7200, "person") == "waiting for a person, for 2 h 0 min"
    assert in_words("", 0, 0, "") == ""


def test_what_a_beat_said_is_older_by_its_age() -> None:
    said = {"doing": "shell: npm test", "doing_seconds": 58.0, "quiet_seconds": 1.0, "waits_for": ""}
    assert of_beat(said, timedelta(seconds=4)) == "shell: npm test, for 1 min"
    # The beats of older drones have no durations.
    assert of_beat({"doing": "thinks"}, timedelta(seconds=3)) == "thinks"


def test_a_span_that_grows_is_never_said_to_be_longer_than_it_is() -> None:
    cases: list[tuple[float, str]] = [(-3, "0 s"), (59.9, "59 s"), (60, "1 min"), (899, "14 min"), (7380, "2 h 3 min")]
    wrong = [(seconds, got) for seconds, label in cases if (got := roughly(seconds)) != label]
    assert wrong == []
