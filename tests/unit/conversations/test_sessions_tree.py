"""How a session's tree is drawn: which turn comes after which, how far in, and what stands beside it."""

from __future__ import annotations

from typing import Any

from control_plane.cli.session_text import session_text
from control_plane.documents.session_tree import note_text, places

Doc = dict[str, Any]


def turn(entry: str, parent: str | None, *, on_path: bool = True, **fields: Any) -> Doc:
    shown = {"order": f"order-{entry}", "status": "finished", "prompt": f"do {entry}", "branch": None}
    common = {"kind": "turn", "label": None, "error": False, "is_leaf": False, "data": {}}
    return {"id": entry, "parent": parent, "on_path": on_path, "turn": shown, **common, **fields}


def note(kind: str, parent: str | None, **data: Any) -> Doc:
    return {"id": f"{kind} at {parent}", "parent": parent, "kind": kind, "data": data, "on_path": False}


def session(*entries: Doc, **fields: Any) -> Doc:
    known = {"id": "s", "name": "", "project": "demo", "mode": "build", "approve": None, "allow": []}
    return {**known, "forked_from": None, "compact": None, "leaf": "x", "entries": entries, "unfinished": [], **fields}


def drawn(*entries: Doc) -> list[tuple[str | None, int]]:
    return [(place.entry["id"] if place.entry else None, place.depth) for place in places(entries)]


def test_a_branch_that_was_left_comes_before_the_line_that_goes_on() -> None:
    entries = turn("a", None), turn("b", "a", on_path=False), turn("c", "b", on_path=False), turn("d", "a")
    assert drawn(*entries) == [(None, 0), ("a", 0), ("b", 1), ("c", 1), ("d", 0)]
    none_goes_on = turn("a", None, on_path=False), turn("b", None, on_path=False)
    assert drawn(*none_goes_on) == [(None, 0), ("a", 1), ("b", 0)]
    assert drawn(turn("b", "elsewhere")) == [(None, 0), ("b", 0)]


def test_notes_hang_on_their_turn_and_are_no_places() -> None:
    entries = turn("a", None), note("label", "a", text="good"), note("name", None, to="x")
    root, first = places(entries)
    assert [each["kind"] for each in root.notes] == ["name"]
    assert [each["kind"] for each in first.notes] == ["label"]


def test_a_session_of_ten_thousand_turns_is_drawn() -> None:
    entries = [turn(str(number), str(number - 1)) for number in range(10_000)]
    assert drawn(*entries)[-1] == ("9999", 0)


def test_every_note_is_one_line_for_people() -> None:
    expected: list[tuple[str, Doc, str]] = [
        ("label", {"text": "good"}, "label: good"),
        ("label", {"text": ""}, "label removed"),
        ("leaf", {"from": None, "to": "a"}, "switched here from the root"),
        ("leaf", {"forked_from": "s0", "to": "a"}, "forked from session s0"),
        ("model_change", {"from": "a", "to": "b"}, "model changed from a to b"),
        ("mode_change", {"from": "build", "to": "plan"}, "mode changed from build to plan"),
        ("name", {"from": "", "to": "Parser"}, "renamed to Parser"),
        ("compaction", {"asked_by": "u", "instructions": ""}, "compaction requested"),
        ("compaction", {"asked_by": "u", "instructions": "Brief."}, "compaction requested: Brief."),
        ("compaction", {"cause": "window", "tokens_before": 12_000, "tokens_after": 900}, "12,000 → 900 tokens"),
        ("hologram", {}, "hologram"),
    ]
    told = [note_text(note(kind, "a", **data)) for kind, data, _ in expected]
    assert [said for said, (_, _, text) in zip(told, expected, strict=True) if not said.endswith(text)] == []


def test_a_session_in_the_terminal_tells_the_leaf_labels_errors_and_what_has_not_ended() -> None:
    entries = [
        turn("a", None, label="good"),
        turn("b", "a", on_path=False, error=True),
        turn("c", "a", is_leaf=True),
        note("mode_change", "c", **{"from": "build", "to": "plan"}),
    ]
    waiting = {"order": "order-d", "status": "processing", "prompt": "do d"}
    lines = session_text(session(*entries, compact="Brief.", unfinished=[waiting])).splitlines()
    assert "compact  before the next turn  Brief." in lines
    assert next(line for line in lines if "order-a" in line).endswith("do a  [good]")
    assert "├─ ○  order-b" in lines[lines.index("○ root") + 2]
    assert "not included in the next turn" in lines[lines.index("○ root") + 2]
    assert next(line for line in lines if "order-c" in line).endswith("← the next turn continues here")
    assert "│    mode changed from build to plan" in lines
    assert lines[-1] == "…  order-d  processing  do d"


def test_what_a_model_or_a_person_wrote_does_not_drive_the_terminal() -> None:
    text = session_text(session(turn("a", None, label="x\x1b[2J"), name="\x1b]0;title\x07", leaf=None))
    assert "\x1b" not in text
    assert "the next turn continues here" in text
