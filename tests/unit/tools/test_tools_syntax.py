"""Feedback after an edit: the file is parsed, and only what the edit broke is reported."""

from __future__ import annotations

from pathlib import Path

from drone.tools.syntax import LARGEST
from tests.support.toolboxes import Call, call, workspace

__all__ = ["call", "workspace"]

NOTE = "no longer parses"


def replace(call: Call, path: str, old: str, new: str) -> str:
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

        output = replace(call, name, old, new)

        assert NOTE in output, name
        assert why in output, name
        assert (workspace / name).read_text() == before.replace(old, new), name


def test_what_did_not_parse_before_is_not_reported(call: Call, workspace: Path) -> None:
    (workspace / "tsconfig.json").write_text('{ // a comment\n"strict": true}\n')

    assert NOTE not in replace(call, "tsconfig.json", "true", "false")
    (workspace / "a.py").write_text("one = 1\n")
    assert NOTE not in replace(call, "a.py", "1", "'\\d'")


def test_inserted_lines_and_whole_files_are_parsed_as_well(call: Call, workspace: Path) -> None:
    (workspace / "a.py").write_text("one = 1\n")

    inserted = call("editor", command="insert", path="a.py", insert_line=2, new_str="if one\n").output
    written = call("file_write", path="sub/b.py", content="def\n").output

    assert "a.py no longer parses: line 2: expected ':'" in inserted
    assert "sub/b.py no longer parses: line 1: invalid syntax" in written
    assert NOTE in call("file_write", path="deep.py", content="(" * 1000 + ")" * 1000).output


def test_other_languages_and_large_files_are_not_parsed(call: Call) -> None:
    cases: list[tuple[str, str]] = [("a.txt", "("), ("a.js", "("), ("a.py", f"({' ' * LARGEST}")]
    assert [
        (name, content) for name, content in cases if NOTE in call("file_write", path=name, content=content).output
    ] == []


def test_a_command_that_prints_nothing_says_that_it_succeeded(call: Call) -> None:
    assert call("shell", command="true").output == "(return code 0)\n(the command succeeded and printed nothing)"
    assert call("shell", command="false").output == "(return code 1)"
    assert call("shell", command="echo one").output == "one\n(return code 0)"
