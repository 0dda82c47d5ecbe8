"""file_read and file_write: what they show and make, and how they refuse."""

from __future__ import annotations

import os
import socket
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drone.tools.paths import resolve
from drone.tools.wrong_use import WrongUse
from tests.support.toolboxes import Call, call, workspace

__all__ = ["call", "workspace"]


def test_view_numbers_the_lines_of_a_file(call: Call, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\ntwo\r\nthree")

    assert call("file_read", path="a.txt").output == "     1\tone\n     2\ttwo\n     3\tthree"


def test_view_takes_absolute_paths_inside_the_workspace(call: Call, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one")

    assert call("file_read", mode="view", path=str(workspace / "a.txt")).output == "     1\tone"


def test_view_lists_a_directory(call: Call, workspace: Path) -> None:
    (workspace / "sub").mkdir()
    (workspace / "a.txt").write_text("12345")
    (workspace / "link").symlink_to("a.txt")

    assert call("file_read", path=".").output == "a.txt  (5 bytes)\nlink -> a.txt\nsub/"


def test_view_of_a_long_file_says_how_to_go_on(call: Call, workspace: Path) -> None:
    (workspace / "long.txt").write_text("".join(f"line {number}\n" for number in range(1, 10_001)))

    result = call("file_read", path="long.txt")

    assert result.output.endswith("""{"mode": "lines", "path": 'long.txt', "start_line": 401})""")
    assert "line 400\n" in result.output
    assert "line 401\n" not in result.output
    assert (
        call("file_read", mode="lines", path="long.txt", start_line=2001, end_line=2001).output == "  2001\tline 2001"
    )


def test_lines_that_are_asked_for_by_number_may_be_more_than_a_view_shows(call: Call, workspace: Path) -> None:
    (workspace / "long.txt").write_text("".join(f"line {number}\n" for number in range(1, 10_001)))

    shown = call("file_read", mode="lines", path="long.txt", start_line=2).output

    assert shown.splitlines()[0] == "     2\tline 2"
    assert shown.endswith('"start_line": 2002})')


def test_lines_gives_a_range_with_both_ends(call: Call, workspace: Path) -> None:
    (workspace / "a.txt").write_text("1\n2\n3\n4\n")

    assert call("file_read", mode="lines", path="a.txt", start_line=2, end_line=3).output == "     2\t2\n     3\t3"


def test_lines_past_the_end_say_so(call: Call, workspace: Path) -> None:
    (workspace / "a.txt").write_text("1\n")

    assert "fewer than 5 lines" in call("file_read", mode="lines", path="a.txt", start_line=5).output


def test_a_very_long_line_is_cut(call: Call, workspace: Path) -> None:
    (workspace / "a.txt").write_text("x" * 1_000_000 + "\nnext\n")

    result = call("file_read", path="a.txt")

    assert len(result.output) < 2200
    assert result.output.endswith("     2\tnext")


def test_an_empty_file_and_an_empty_directory_are_said_to_be_empty(call: Call, workspace: Path) -> None:
    (workspace / "a.txt").touch()

    assert call("file_read", path="a.txt").output == "(the file is empty)"
    (workspace / "a.txt").unlink()
    assert call("file_read", path=".").output == "(the directory is empty)"


def test_a_file_of_5_gb_is_read_without_being_loaded(call: Call, workspace: Path) -> None:
    with (workspace / "huge.txt").open("wb") as file:
        file.write(b"first\nsecond\n" + b"x" * 20_000)
        file.truncate(5_000_000_000)

    tracemalloc.start()
    result = call("file_read", mode="lines", path="huge.txt", start_line=1, end_line=2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert result.output.startswith("     1\tfirst\n     2\tsecond")
    assert peak < 5_000_000


def test_a_binary_file_is_refused_with_a_hint(call: Call, workspace: Path) -> None:
    (workspace / "a.bin").write_bytes(b"\x7fELF\0\0")

    result = call("file_read", path="a.bin")

    assert result.is_error
    assert "binary file of 6 bytes" in result.output


def test_search_finds_lines_below_a_directory_with_their_numbers(call: Call, workspace: Path) -> None:
    (workspace / "sub").mkdir()
    (workspace / "sub" / "a.py").write_text("import os\ndef f(x):\n    return x\n")
    (workspace / ".git").mkdir()
    (workspace / ".git" / "x").write_text("def f(x)")

    result = call("file_read", mode="search", path=".", search_pattern=r"def \w+\(")

    assert result.output.splitlines() == ["sub/a.py", "2:def f(x):"]


def test_search_that_finds_nothing_is_no_error(call: Call, workspace: Path) -> None:
    result = call("file_read", mode="search", search_pattern="nothing")

    assert (result.output, result.is_error) == ("(no line matches)", False)


@pytest.mark.parametrize("pattern", ["(", "[a", "--help", "-f/etc/passwd", "$(touch sprung)"])
def test_a_pattern_is_only_ever_a_pattern(call: Call, workspace: Path, pattern: str) -> None:
    (workspace / "a.txt").write_text("text\n")

    result = call("file_read", mode="search", search_pattern=pattern)

    assert "root:" not in result.output
    assert not (workspace / "sprung").exists()


def test_find_lists_at_most_200_files_and_says_how_many_more(call: Call, workspace: Path) -> None:
    [(workspace / f"{number:03}.txt").touch() for number in range(250)]
    (workspace / "other.py").touch()

    lines = call("file_read", mode="find", path=".").output.splitlines()

    assert len(lines) == 201
    assert lines[0] == "000.txt"
    assert lines[-1].startswith("(and 51 more")
    assert call("file_read", mode="find", search_pattern="*.py").output == "other.py"


def test_find_names_links_and_does_not_follow_them(call: Call, workspace: Path) -> None:
    (workspace / "out").symlink_to("/etc")

    assert call("file_read", mode="find").output == "out"


@pytest.mark.parametrize("mode", ["view", "lines", "search", "find"])
@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../outside", "out/passwd", "out", "a/../../x", "/", "~/x/../../..", "../work2/a"]
)
def test_no_path_leads_out_of_the_workspace(call: Call, workspace: Path, mode: str, path: str) -> None:
    (workspace / "out").symlink_to("/etc")
    (workspace.parent / "outside").write_text("secret")
    (workspace / "~").mkdir()
    (workspace.parent / "work2").mkdir()
    (workspace.parent / "work2" / "a").write_text("root:")

    result = call("file_read", mode=mode, path=path, start_line=1, search_pattern="root|secret|.")

    assert result.is_error
    assert "root:" not in result.output
    assert "outside the workspace" in result.output or "not found" in result.output


@pytest.mark.parametrize("path", ["/etc/x", "../x", "out/x", "dangling"])
def test_nothing_is_written_outside_the_workspace(call: Call, workspace: Path, path: str) -> None:
    (workspace / "out").symlink_to(workspace.parent)
    (workspace / "dangling").symlink_to(workspace.parent / "x")

    result = call("file_write", path=path, content="x")

    assert result.is_error
    assert [entry.name for entry in workspace.parent.iterdir()] == ["work"]


@given(st.lists(st.sampled_from(["..", ".", "a", "in", "out", "/", "~", "a b"]), min_size=1, max_size=6))
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_path_is_resolved_lies_in_the_workspace(tmp_path: Path, parts: list[str]) -> None:
    (tmp_path / "work" / "in").mkdir(parents=True, exist_ok=True)
    (tmp_path / "work" / "out").unlink(missing_ok=True)
    (tmp_path / "work" / "out").symlink_to("..")

    try:
        found = resolve(tmp_path / "work", "/".join(parts))
    except WrongUse:
        return

    assert found.is_relative_to(tmp_path / "work")


@pytest.mark.parametrize("path", ["a\0b", "x" * 5000, "loop/x"])
def test_a_path_that_cannot_be_is_wrong_use(call: Call, workspace: Path, path: str) -> None:
    (workspace / "loop").symlink_to("loop")

    assert call("file_read", path=path).is_error
    assert call("file_write", path=path, content="").is_error


def test_fifos_sockets_and_devices_are_refused_at_once(call: Call, workspace: Path) -> None:
    os.mkfifo(workspace / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(workspace / "socket"))
        results = [
            call("file_read", path="fifo"),
            call("file_read", path="socket"),
            call("file_write", path="fifo", content=""),
        ]

    assert [result.is_error for result in results] == [True] * 3
    assert all("not a file" in result.output for result in results)


def test_file_write_makes_parents_and_counts_bytes(call: Call, workspace: Path) -> None:
    result = call("file_write", path="a/b/c.txt", content="naïve\r\n")

    assert result.output == "wrote 8 bytes to a/b/c.txt"
    assert (workspace / "a" / "b" / "c.txt").read_bytes() == "naïve\r\n".encode()


def test_file_write_keeps_the_mode_and_leaves_nothing_beside_the_file(call: Call, workspace: Path) -> None:
    (workspace / "run.sh").write_text("old")
    (workspace / "run.sh").chmod(0o755)

    call("file_write", path="run.sh", content="new")

    assert (workspace / "run.sh").stat().st_mode & 0o777 == 0o755
    assert [entry.name for entry in workspace.iterdir()] == ["run.sh"]


def test_file_write_goes_through_a_link_inside_the_workspace(call: Call, workspace: Path) -> None:
    (workspace / "real.txt").write_text("old")
    (workspace / "link").symlink_to("real.txt")

    call("file_write", path="link", content="new")

    assert (workspace / "link").is_symlink()
    assert (workspace / "real.txt").read_text() == "new"


@pytest.mark.parametrize("path", [".", "sub", "file/below"])
def test_file_write_on_a_directory_or_below_a_file_is_wrong_use(call: Call, workspace: Path, path: str) -> None:
    (workspace / "sub").mkdir()
    (workspace / "file").touch()

    result = call("file_write", path=path, content="x")

    assert result.is_error
    assert result.output.startswith("Error: ")


def test_half_a_surrogate_pair_is_wrong_use(call: Call) -> None:
    assert "surrogate" in call("file_write", path="a", content="\ud800").output
