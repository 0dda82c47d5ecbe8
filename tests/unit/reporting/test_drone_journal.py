"""The journal keeps every event that `append` returned for, in order and without a hole, whatever came in between."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drone.reporting import journal
from drone.reporting.journal import Journal, RunIdentity
from shared.events import CommentStep
from tests.support.clocks import HandClock

IDENTITY = RunIdentity("run000000000", "order0000000", 3)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.jsonl"


def written(path: Path, *texts: str) -> None:
    with journal.opened(path, IDENTITY, HandClock()) as writer:
        for text in texts:
            writer.append(CommentStep(text=text))


def texts(path: Path) -> list[str]:
    return [line.event.body.text for line in journal.walk(path) if isinstance(line.event.body, CommentStep)]


def test_events_are_numbered_from_one_by_any_writer_and_carry_the_runs_identity(path: Path) -> None:
    written(path, "a", "b")
    written(path, "c")
    events = [line.event for line in journal.walk(path)]
    assert [event.seq for event in events] == [1, 2, 3]
    assert {(event.run_id, event.order_id, event.generation) for event in events} == {
        ("run000000000", "order0000000", 3)
    }


def test_reading_goes_on_where_it_stopped_or_at_any_event(path: Path) -> None:
    written(path, "a", "b")
    seen = journal.read(path)[-1].end
    written(path, "c")
    assert [line.event.seq for line in journal.read(path, seen)] == [3]
    assert journal.read(path, journal.read(path, seen)[-1].end) == []
    assert [journal.read(path, journal.offset_of(path, seq))[0].event.seq for seq in (2, 1)] == [2, 1]
    assert journal.read(path, journal.offset_of(path, 9)) == []


NOT_AN_EVENT = [b"not JSON", b"{}", b"[]", b'"text"', b"\xff\xfe", b'{"body": {"kin', b"\0" * 100]


def test_a_line_that_a_crash_cut_in_half_is_not_read_and_not_in_the_way(path: Path) -> None:
    written(path, "a", "b")
    path.write_bytes(path.read_bytes()[:-20])
    assert texts(path) == ["a"]
    written(path, "c")
    assert texts(path) == ["a", "c"]
    assert [line.event.seq for line in journal.walk(path)] == [1, 2]


def test_an_event_that_could_not_be_written_leaves_no_hole(path: Path) -> None:
    written(path, "a")
    writer = Journal(path, IDENTITY, HandClock())
    writer.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        writer.append(CommentStep(text="b"))
    assert writer.last_seq == 1


NEWER = {
    "version": 2,
    "run_id": "run000000000",
    "order_id": "order0000000",
    "generation": 3,
    "seq": 2,
    "at": "2031-01-01T00:00:00Z",
    "mood": "hopeful",
    "body": {"kind": "hologram", "points": [1, 2, 3]},
}


def write_line(path: Path, line: bytes) -> None:
    with path.open("ab") as file:
        file.write(line + b"\n")


def test_a_journal_of_a_newer_version_is_read_to_its_end_and_its_lines_are_kept_as_they_stand(path: Path) -> None:
    written(path, "a")
    write_line(path, json.dumps(NEWER).encode())
    written(path, "c")
    lines = list(journal.walk(path))
    assert [line.event.seq for line in lines] == [1, 2, 3]
    assert json.loads(lines[1].text) == NEWER
    assert texts(path) == ["a", "Event of kind 'hologram', which this version does not support.", "c"]
    assert journal.read(path, journal.offset_of(path, 2))[0].text == lines[1].text


def test_a_line_that_is_no_event_of_any_version_ends_the_journal(path: Path) -> None:
    newer = {**NEWER, "seq": 1, "body": {"kind": "comment", "text": "a", "tone": "kind"}}
    for line in [*NOT_AN_EVENT, json.dumps({**NEWER, "seq": 0}).encode()]:
        path.unlink(missing_ok=True)
        # Fields that a newer version added to a known event are no matter.
        write_line(path, json.dumps(newer).encode())
        write_line(path, line)
        assert texts(path) == ["a"]
        written(path, "b")
        assert texts(path) == ["a", "b"]


@given(st.lists(st.text(), max_size=6), st.integers(min_value=0, max_value=400))
def test_whatever_is_cut_off_what_is_left_is_a_beginning_of_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, said: list[str], cut: int
) -> None:
    path = tmp_path_factory.mktemp("journal") / "journal.jsonl"
    written(path, *said)
    whole = path.read_bytes()
    path.write_bytes(whole[: max(0, len(whole) - cut)])
    left = texts(path)
    assert left == said[: len(left)]
