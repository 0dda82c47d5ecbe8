"""How a session's tree is drawn: which turn comes after which, how far in, and what stands beside it."""

from __future__ import annotations

from typing import Any

from control_plane.cli.sessions import session_text
from control_plane.contract.documents.session_tree import note_text, places

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
    assert drawn(*(turn(str(number), str(number - 1)) for number in range(10_000)))[-1] == ("9999", 0)
    root, first = places((turn("a", None), note("label", "a", text="good"), note("name", None, to="x")))
    assert [[each["kind"] for each in place.notes] for place in (root, first)] == [["name"], ["label"]]


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
    said = {
        ("leaf", "forked_from"): (note("leaf", "a", forked_from="s0", to="a"), "forked from session s0"),
        ("compaction", "asked"): (note("compaction", "a", asked_by="u", instructions=""), "compaction requested"),
        ("a later kind", ""): (note("hologram", "a"), "hologram"),
    }
    assert {kind: note_text(each).endswith(text) for kind, (each, text) in said.items()} == dict.fromkeys(said, True)
