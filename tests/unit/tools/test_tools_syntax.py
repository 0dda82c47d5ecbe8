"""Feedback after an edit: the file is parsed, and only what the edit broke is reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from drone.tools.syntax import LARGEST
from tests.support.toolboxes import Call, call, workspace

__all__ = ["call", "workspace"]

NOTE = "no longer parses"


def replace(call: Call, path: str, old: str, new: str) -> str:
    return call("editor", command="str_replace", path=path, old_str=old, new_str=new).output


@pytest.mark.parametrize(
    ("name", "edit", "why"),
    [
        ("a.py", ("def one():\n    return 1\n", "return 1", "return (1"), "line 2: '(' was never closed"),
        ("a.json", ('{\n"one": 1}\n', "1}", "1,}"), "line 2: "),
        ("a.toml", ("one = 1\n", "= 1", "="), "Invalid value"),
    ],
)
def test_an_edit_that_breaks_a_file_says_where_and_is_kept(
    call: Call, workspace: Path, name: str, edit: tuple[str, str, str], why: str
) -> None:
    before, old, new = edit
    (workspace / name).write_text(before)

    output = replace(call, name, old, new)

    assert NOTE in output
    assert why in output
    assert (workspace / name).read_text() == before.replace(old, new)


def test_an_edit_that_leaves_the_file_right_says_nothing(call: Call, workspace: Path) -> None:
    (workspace / "a.py").write_text("one = 1\n")

    assert NOTE not in replace(call, "a.py", "1", "'\\d'")


def test_what_did_not_parse_before_is_not_reported(call: Call, workspace: Path) -> None:
    (workspace / "tsconfig.json").write_text('{ // a comment\n"strict": true}\n')

    assert NOTE not in replace(call, "tsconfig.json", "true", "false")


def test_inserted_lines_and_whole_files_are_parsed_as_well(call: Call, workspace: Path) -> None:
    (workspace / "a.py").write_text("one = 1\n")

    inserted = call("editor", command="insert", path="a.py", insert_line=2, new_str="if one\n").output
    written = call("file_write", path="sub/b.py", content="def\n").output

    assert "a.py no longer parses: line 2: expected ':'" in inserted
    assert "sub/b.py no longer parses: line 1: invalid syntax" in written


def test_nested_code_that_the_parser_cannot_take_is_a_note_and_no_failure(call: Call, workspace: Path) -> None:
    output = call("file_write", path="deep.py", content="(" * 1000 + ")" * 1000).output

    assert output.startswith("wrote 2,000 bytes to deep.py\n")
    assert NOTE in output


@pytest.mark.parametrize(("name", "content"), [("a.txt", "("), ("a.js", "("), ("a.py", f"({' ' * LARGEST}")])
def test_other_languages_and_large_files_are_not_parsed(call: Call, name: str, content: str) -> None:
    assert NOTE not in call("file_write", path=name, content=content).output


def test_a_command_that_prints_nothing_says_that_it_succeeded(call: Call) -> None:
    assert call("shell", command="true").output == "(return code 0)\n(the command succeeded and printed nothing)"
    assert call("shell", command="false").output == "(return code 1)"
    assert call("shell", command="echo one").output == "one\n(return code 0)"


def test_an_output_that_is_cut_says_what_to_do(call: Call) -> None:
    output = call("shell", command="seq 1 5000").output

    assert output.endswith("use head, tail or grep, or write the output to a file and search it)")
