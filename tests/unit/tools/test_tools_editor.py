"""editor: exact to the byte outside the edit, one step back, and a word where a file no longer parses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from drone.tools.syntax import LARGEST
from tests.support.toolboxes import Call, call, workspace

__all__ = ["call", "workspace"]


def replace(call: Call, old: str, new: str) -> str:
    return call("editor", command="str_replace", path="a", old_str=old, new_str=new).output


def test_str_replace_needs_exactly_one_occurrence(call: Call, workspace: Path) -> None:
    (workspace / "a").write_text("one\ntwo\nthree\n")
    for old, words in (
        ("missing", "does not occur"),
        ("o", "occurs 2 times, in lines 1, 2;"),
        ("", "must not be empty"),
    ):
        assert words in replace(call, old, "x"), old
        assert (workspace / "a").read_text() == "one\ntwo\nthree\n", old
    assert "     2\t2\n     3\tthree" in replace(call, "two", "2")
    assert (workspace / "a").read_text() == "one\n2\nthree\n"


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
    # What somebody else did stays.
    (workspace / "b").write_text("theirs")
    assert "changed by something else" in call("editor", command="undo_edit", path="b").output
    assert (workspace / "b").read_text() == "theirs"


def test_wrong_use_is_refused(call: Call, workspace: Path) -> None:
    (workspace / "a").write_text("1\n")
    cases: list[tuple[dict[str, Any], str]] = [
        ({"command": "insert", "path": "a", "insert_line": 5, "new_str": "x"}, "insert_line must be 1 to 2"),
        ({"command": "insert", "path": "a", "new_str": "x"}, "requires"),
        ({"command": "str_replace", "path": "a", "old_str": "x"}, "requires"),
        *(
            ({"command": each, "path": "gone", "old_str": "a", "new_str": "b", "insert_line": 1}, "Error: ")
            for each in ("str_replace", "insert", "undo_edit")
        ),
    ]
    for arguments, words in cases:
        assert words in call("editor", **arguments).output, arguments


NOTE = "no longer parses"


def edited(call: Call, path: str, old: str, new: str) -> str:
    return call("editor", command="str_replace", path=path, old_str=old, new_str=new).output


def test_an_edit_that_breaks_a_file_says_where_and_is_kept(call: Call, workspace: Path) -> None:
    cases: list[tuple[str, tuple[str, str, str], str]] = [
        ("a.py", ("def one():\n    return 1\n", "return 1", "return (1"), "line 2: '(' was never closed"),
        ("a.json", ('{\n"one": 1}\n', "1}", "1,}"), "line 2: "),
        ("a.toml", ("one = 1\n", "= 1", "="), "Invalid value"),
    ]
    for name, edit, why in cases:
        before, old, new = edit
        (workspace / name).write_text(before)

        output = edited(call, name, old, new)

        assert NOTE in output, name
        assert why in output, name
        assert (workspace / name).read_text() == before.replace(old, new), name


def test_inserted_lines_and_whole_files_are_parsed_too_but_not_other_languages_large_files_or_old_errors(
    call: Call, workspace: Path
) -> None:
    (workspace / "a.py").write_text("one = 1\n")
    inserted = call("editor", command="insert", path="a.py", insert_line=2, new_str="if one\n").output
    written = call("file_write", path="sub/b.py", content="def\n").output
    assert "a.py no longer parses: line 2: expected ':'" in inserted
    assert "sub/b.py no longer parses: line 1: invalid syntax" in written
    assert NOTE in call("file_write", path="deep.py", content="(" * 1000 + ")" * 1000).output

    for name, content in (("a.txt", "("), ("a.js", "("), ("c.py", f"({' ' * LARGEST}")):
        assert NOTE not in call("file_write", path=name, content=content).output, name
    (workspace / "tsconfig.json").write_text('{ // a comment\n"strict": true}\n')
    assert NOTE not in edited(call, "tsconfig.json", "true", "false")
    (workspace / "d.py").write_text("one = 1\n")
    assert NOTE not in edited(call, "d.py", "1", "'\\d'"), "a warning is no error"
