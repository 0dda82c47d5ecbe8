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


MIXED = b"a\r\nb\r\nc\nd\r\n"


def test_a_text_matches_whatever_ends_its_lines_and_each_line_keeps_its_end(call: Call, workspace: Path) -> None:
    cases: list[tuple[bytes, tuple[str, str], bytes]] = [
        (MIXED, ("a\nb\n", "a\nB\n"), b"a\r\nB\r\nc\nd\r\n"),
        (MIXED, ("b\nc\nd", "b\nC\nd"), b"a\r\nb\r\nC\nd\r\n"),
        (MIXED, ("b\r\nc\r\n", "B\r\nC\r\n"), b"a\r\nB\r\nC\nd\r\n"),
        (MIXED, ("c", "c1\nc2"), b"a\r\nb\r\nc1\nc2\nd\r\n"),
        (MIXED, ("d", "d1\nd2"), b"a\r\nb\r\nc\nd1\r\nd2\r\n"),
        (MIXED, ("c\nd\n", "c\nx\ny\nd\n"), b"a\r\nb\r\nc\nx\ny\nd\r\n"),
        (MIXED, ("b\nc\nd\n", "d\n"), b"a\r\nd\r\n"),
        (MIXED, ("b\nc\n", "x\nb\nc\n"), b"a\r\nx\r\nb\r\nc\nd\r\n"),
        (MIXED, ("\nb\n", "-"), b"a-c\nd\r\n"),
        (MIXED, ("a\nb\nc\nd\n", ""), b""),
        (b"a\r\nb", ("b", "b\nc\n"), b"a\r\nb\r\nc\r\n"),
        (b"a\nb\n", ("a\r\nb\r\n", "A\r\nB\r\n"), b"A\nB\n"),
        (b"a\r\nb\r\n", ("a\nb", "a\nx\r\nb"), b"a\r\nx\r\nb\r\n"),
        (b"a\r\r\nb\n", ("a\r\n", "A\n"), b"A\r\nb\n"),
        (b"\xef\xbb\xbfa\nb\n", ("\ufeffa\n", "A\n"), b"\xef\xbb\xbfA\nb\n"),
        (b"a\nb\n", ("a\n", "\ufeffA\n"), b"A\nb\n"),
        (b"only", ("only", "1\n2"), b"1\n2"),
    ]
    for before, (old, new), after in cases:
        (workspace / "a").write_bytes(before)

        output = replace(call, old, new)

        assert (workspace / "a").read_bytes() == after, (before, old, output)


def test_equal_texts_with_other_line_ends_are_not_told_apart_and_carriage_returns_are_named(
    call: Call, workspace: Path
) -> None:
    (workspace / "a").write_bytes(b"x\ny\r\n\nx\r\ny\n")
    assert "occurs 2 times, in lines 1, 4;" in replace(call, "x\ny", "z")
    assert "the edit changes nothing" in replace(call, "\n\nx", "\r\n\r\nx")
    (workspace / "a").write_bytes(b"x\ry\n")
    assert "carriage returns" in replace(call, "x\ny", "z")
    assert replace(call, "x\ry", "z").startswith("edited")


def test_inserted_lines_end_like_the_line_at_their_place_and_stand_behind_a_byte_order_mark(
    call: Call, workspace: Path
) -> None:
    cases: list[tuple[bytes, int, bytes]] = [
        (MIXED, 1, b"1\r\n2\r\n" + MIXED),
        (MIXED, 3, b"a\r\nb\r\n1\n2\nc\nd\r\n"),
        (MIXED, 5, MIXED + b"1\r\n2"),
        (b"a\r\nb", 3, b"a\r\nb\r\n1\r\n2"),
        (b"\xef\xbb\xbfa\r\n", 1, b"\xef\xbb\xbf1\r\n2\r\na\r\n"),
        (b"\xef\xbb\xbf", 1, b"\xef\xbb\xbf1\n2"),
    ]
    for before, line, after in cases:
        (workspace / "a").write_bytes(before)

        call("editor", command="insert", path="a", insert_line=line, new_str="1\n2")

        assert (workspace / "a").read_bytes() == after, (before, line)


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
