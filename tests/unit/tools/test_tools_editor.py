"""editor: exact to the byte outside the edit, and one step back."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.toolboxes import Call, call, called, toolbox, workspace

__all__ = ["call", "workspace"]


def replace(call: Call, old: str, new: str) -> str:
    return call("editor", command="str_replace", path="a", old_str=old, new_str=new).output


def test_str_replace_changes_the_one_occurrence_and_shows_it(call: Call, workspace: Path) -> None:
    (workspace / "a").write_text("one\ntwo\nthree\n")

    shown = replace(call, "two", "2")

    assert (workspace / "a").read_text() == "one\n2\nthree\n"
    assert "     2\t2\n     3\tthree" in shown


@pytest.mark.parametrize(
    ("old", "words"),
    [("missing", "does not occur"), ("o", "occurs 2 times, in lines 1, 2;"), ("", "must not be empty")],
)
def test_str_replace_needs_exactly_one_occurrence(call: Call, workspace: Path, old: str, words: str) -> None:
    (workspace / "a").write_text("one\ntwo\n")

    assert words in replace(call, old, "x")
    assert (workspace / "a").read_text() == "one\ntwo\n"


def test_only_the_first_lines_of_many_occurrences_are_named(call: Call, workspace: Path) -> None:
    (workspace / "a").write_text("x = 1\n" * 100)

    assert "occurs 100 times, in lines 1, 2, 3, 4, 5, …; include" in replace(call, "x = 1", "y")


def test_windows_line_ends_are_kept_though_the_model_writes_plain_ones(call: Call, workspace: Path) -> None:
    (workspace / "a").write_bytes(b"one\r\ntwo\r\nthree\r\n")

    replace(call, "one\ntwo", "1\n2\n2a")

    assert (workspace / "a").read_bytes() == b"1\r\n2\r\n2a\r\nthree\r\n"


def test_a_file_with_mixed_line_ends_is_taken_exactly_as_it_is(call: Call, workspace: Path) -> None:
    (workspace / "a").write_bytes(b"one\r\ntwo\nthree")

    assert "does not occur" in replace(call, "one\ntwo", "x")
    replace(call, "two\nthree", "2\n3")
    assert (workspace / "a").read_bytes() == b"one\r\n2\n3"


def test_bytes_that_are_no_utf_8_survive_an_edit_elsewhere(call: Call, workspace: Path) -> None:
    (workspace / "a").write_bytes(b"\xef\xbb\xbfcaf\xe9\0 one\x0c\x85")

    replace(call, "one", "two")

    assert (workspace / "a").read_bytes() == b"\xef\xbb\xbfcaf\xe9\0 two\x0c\x85"


@pytest.mark.parametrize(
    ("before", "line", "after"),
    [
        (b"1\n2\n", 1, b"new\n1\n2\n"),
        (b"1\n2\n", 2, b"1\nnew\n2\n"),
        (b"1\n2\n", 3, b"1\n2\nnew"),
        (b"1\n2", 3, b"1\n2\nnew"),
        (b"1\r\n2\r\n", 2, b"1\r\nnew\r\n2\r\n"),
        (b"", 1, b"new"),
        (b"a\rb\n", 2, b"a\rb\nnew"),
    ],
)
def test_insert_gives_the_new_text_that_line_number(
    call: Call, workspace: Path, before: bytes, line: int, after: bytes
) -> None:
    (workspace / "a").write_bytes(before)

    call("editor", command="insert", path="a", insert_line=line, new_str="new")

    assert (workspace / "a").read_bytes() == after


def test_insert_past_the_end_is_wrong_use(call: Call, workspace: Path) -> None:
    (workspace / "a").write_text("1\n")

    result = call("editor", command="insert", path="a", insert_line=5, new_str="x")

    assert "insert_line must be 1 to 2" in result.output


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


def test_a_file_that_is_too_large_to_edit_is_refused(call: Call, workspace: Path) -> None:
    with (workspace / "a").open("wb") as file:
        file.truncate(5_000_000_000)

    assert "larger than" in replace(call, "x", "y")


@pytest.mark.parametrize("command", ["str_replace", "insert", "undo_edit"])
def test_a_file_that_is_not_there_is_wrong_use(call: Call, command: str) -> None:
    result = call("editor", command=command, path="nothing", old_str="a", new_str="b", insert_line=1)

    assert result.is_error


@pytest.mark.parametrize(
    "arguments", [{"command": "insert", "new_str": "x"}, {"command": "str_replace", "old_str": "x"}]
)
def test_an_argument_that_the_command_needs_is_named(call: Call, workspace: Path, arguments: dict[str, str]) -> None:
    (workspace / "a").write_text("x")

    assert "requires" in call("editor", path="a", **arguments).output


@given(
    st.text("ab\n\r ", max_size=20),
    st.text("xyz\n", min_size=1, max_size=6),
    st.text("ab\n\r ", max_size=20),
    st.text("cd\n"),
)
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_everything_outside_the_edit_stays_to_the_byte(
    workspace: Path, head: str, old: str, tail: str, new: str
) -> None:
    unique = f"<{old}>"
    (workspace / "a").write_bytes(f"{head}{unique}{tail}\r".encode())

    called(toolbox(workspace), "editor", command="str_replace", path="a", old_str=unique, new_str=new)

    now = (workspace / "a").read_bytes().decode()
    assert now.startswith(head)
    assert now.endswith(f"{tail}\r")
    assert now[len(head) : len(now) - len(tail) - 1].replace("\r\n", "\n") == new
