"""editor: exact to the byte outside the edit, and one step back."""

from __future__ import annotations

from pathlib import Path

from tests.support.toolboxes import Call, call, workspace

__all__ = ["call", "workspace"]


def replace(call: Call, old: str, new: str) -> str:
    return call("editor", command="str_replace", path="a", old_str=old, new_str=new).output


def test_str_replace_changes_the_one_occurrence_and_shows_it(call: Call, workspace: Path) -> None:
    (workspace / "a").write_text("one\ntwo\nthree\n")

    shown = replace(call, "two", "2")

    assert (workspace / "a").read_text() == "one\n2\nthree\n"
    assert "     2\t2\n     3\tthree" in shown


def test_str_replace_needs_exactly_one_occurrence(call: Call, workspace: Path) -> None:
    cases: list[tuple[str, str]] = [
        ("missing", "does not occur"),
        ("o", "occurs 2 times, in lines 1, 2;"),
        ("", "must not be empty"),
    ]
    for old, words in cases:
        (workspace / "a").write_text("one\ntwo\n")

        assert words in replace(call, old, "x"), old
        assert (workspace / "a").read_text() == "one\ntwo\n", old


def test_insert_gives_the_new_text_that_line_number(call: Call, workspace: Path) -> None:
    cases: list[tuple[bytes, int, bytes]] = [
        (b"1\n2\n", 1, b"new\n1\n2\n"),
        (b"1\n2\n", 2, b"1\nnew\n2\n"),
        (b"1\n2\n", 3, b"1\n2\nnew"),
        (b"1\n2", 3, b"1\n2\nnew"),
        (b"1\r\n2\r\n", 2, b"1\r\nnew\r\n2\r\n"),
        (b"", 1, b"new"),
        (b"a\rb\n", 2, b"a\rb\nnew"),
    ]
    for before, line, after in cases:
        (workspace / "a").write_bytes(before)

        call("editor", command="insert", path="a", insert_line=line, new_str="new")

        assert (workspace / "a").read_bytes() == after, before


def test_undo_edit_takes_back_one_edit_of_each_file(call: Call, workspace: Path) -> None:
    (workspace / "a").write_text("one")
    (workspace / "b").write_text("one")
    replace(call, "one", "two")
    call("editor", command="str_replace", path="b", old_str="one", new_str="two")
    replace(call, "two", "three")

    assert call("editor", command="undo_edit", path="a").output == "undid the last edit of a"
    assert "no edit" in call("editor", command="undo_edit", path="a").output
    assert ((workspace / "a").read_text(), (workspace / "b").read_text()) == ("two", "two")


def test_undo_edit_does_not_undo_what_somebody_else_did(call: Call, workspace: Path) -> None:
    (workspace / "a").write_text("one")
    replace(call, "one", "two")
    (workspace / "a").write_text("theirs")

    assert "changed by something else" in call("editor", command="undo_edit", path="a").output
    assert (workspace / "a").read_text() == "theirs"


def test_wrong_use_is_refused(call: Call, workspace: Path) -> None:
    (workspace / "a").write_text("1\n")

    assert "insert_line must be 1 to 2" in call("editor", command="insert", path="a", insert_line=5, new_str="x").output
    for arguments in ({"command": "insert", "new_str": "x"}, {"command": "str_replace", "old_str": "x"}):
        assert "requires" in call("editor", path="a", **arguments).output
    for command in ("str_replace", "insert", "undo_edit"):
        assert call("editor", command=command, path="gone", old_str="a", new_str="b", insert_line=1).is_error, command
