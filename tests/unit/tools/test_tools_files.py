"""file_read and file_write: what they show and make, and how they refuse."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drone.tools.paths import locate
from drone.tools.wrong_use import WrongUse
from tests.support.toolboxes import Call


def test_view_numbers_the_lines_of_a_file_and_lines_gives_a_range_with_both_ends(call: Call, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\ntwo\r\nthree\nfour")
    numbered = "     1\tone\n     2\ttwo\n     3\tthree\n     4\tfour"
    for path in ("a.txt", str(workspace / "a.txt")):
        assert call("file_read", path=path).output == numbered
    some = call("file_read", mode="lines", path="a.txt", start_line=2, end_line=3).output
    assert some == "     2\ttwo\n     3\tthree"
    assert "fewer than 5 lines" in call("file_read", mode="lines", path="a.txt", start_line=5).output

    (workspace / "long.txt").write_text("".join(f"line {number}\n" for number in range(1, 10_001)))
    viewed = call("file_read", path="long.txt").output
    assert viewed.endswith("""{"mode": "lines", "path": 'long.txt', "start_line": 401})""")
    assert ("line 400\n" in viewed, "line 401\n" in viewed) == (True, False)
    asked_for = call("file_read", mode="lines", path="long.txt", start_line=2).output
    assert asked_for.startswith("     2\tline 2\n")
    assert asked_for.endswith('"start_line": 2002})')
    (workspace / "wide.txt").write_text("x" * 1_000_000 + "\nnext\n")
    wide = call("file_read", path="wide.txt").output
    assert (len(wide) < 2200, wide.endswith("     2\tnext")) == (True, True)


def test_directories_are_listed_links_not_followed_and_empty_and_binary_files_named(
    call: Call, workspace: Path
) -> None:
    (workspace / "a.txt").touch()

    assert call("file_read", path="a.txt").output == "(the file is empty)"
    (workspace / "a.txt").unlink()
    assert call("file_read", path=".").output == "(the directory is empty)"

    (workspace / "sub").mkdir()
    (workspace / "a.bin").write_bytes(b"\x7fELF\0\0")
    (workspace / "link").symlink_to("/etc")
    assert call("file_read", path=".").output == "a.bin  (6 bytes)\nlink -> /etc\nsub/"
    assert call("file_read", mode="find").output == "a.bin\nlink"
    binary = call("file_read", path="a.bin")
    assert (binary.is_error, "binary file of 6 bytes" in binary.output) == (True, True)


def test_search_finds_lines_below_a_directory_with_their_numbers(call: Call, workspace: Path) -> None:
    (workspace / "sub").mkdir()
    (workspace / "sub" / "a.py").write_text("import os\ndef f(x):\n    return x\n")
    (workspace / ".git").mkdir()
    (workspace / ".git" / "x").write_text("def f(x)")

    result = call("file_read", mode="search", path=".", search_pattern=r"def \w+\(")

    assert result.output.splitlines() == ["sub/a.py", "2:def f(x):"]
    nothing = call("file_read", mode="search", search_pattern="nothing")
    assert (nothing.output, nothing.is_error) == ("(no line matches)", False)
    for pattern in ("(", "[a", "--help", "-f/etc/passwd", "$(touch sprung)"):
        assert "root:" not in call("file_read", mode="search", search_pattern=pattern).output, pattern
    assert not (workspace / "sprung").exists()


def test_find_lists_at_most_200_files_and_says_how_many_more(call: Call, workspace: Path) -> None:
    [(workspace / f"{number:03}.txt").touch() for number in range(250)]
    (workspace / "other.py").touch()

    lines = call("file_read", mode="find", path=".").output.splitlines()

    assert len(lines) == 201
    assert lines[0] == "000.txt"
    assert lines[-1].startswith("(and 51 more")
    assert call("file_read", mode="find", search_pattern="*.py").output == "other.py"


@given(st.lists(st.sampled_from(["..", ".", "a", "in", "out", "/", "~", "a b"]), min_size=1, max_size=6))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_path_is_resolved_lies_in_the_workspace(tmp_path: Path, parts: list[str]) -> None:
    (tmp_path / "work" / "in").mkdir(parents=True, exist_ok=True)
    (tmp_path / "work" / "out").unlink(missing_ok=True)
    (tmp_path / "work" / "out").symlink_to("..")

    try:
        found = locate(tmp_path / "work", "/".join(parts)).path
    except WrongUse:
        return

    assert found.is_relative_to(tmp_path / "work")


def test_a_path_that_cannot_be_is_wrong_use(call: Call, workspace: Path) -> None:
    (workspace / "loop").symlink_to("loop")
    (workspace / "sub").mkdir()
    (workspace / "file").touch()

    for path in ("a\0b", "x" * 5000, "loop/x", "file/below"):
        assert call("file_read", path=path).is_error, path
    for path in ("a\0b", "x" * 300, "loop/x", ".", "sub", "file/below"):
        refused = call("file_write", path=path, content="x")
        assert (refused.is_error, refused.output.startswith("Error: ")) == (True, True), path
    assert call("file_write", path="a", content="\ud800").is_error


def test_file_write_keeps_the_line_ends_and_the_byte_order_mark_of_the_file_before(call: Call, workspace: Path) -> None:
    cases: list[tuple[bytes, str, bytes, str]] = [
        (b"one\r\ntwo\r\nthree\r\n", "one\n2\nthree\n", b"one\r\n2\r\nthree\r\n", "CR LF"),
        (b"one\r\ntwo\r\n", "one\r\n2\n", b"one\r\n2\r\n", "CR LF"),
        (b"one\r\ntwo", "1\n2", b"1\r\n2", "CR LF"),
        (b"\xef\xbb\xbfone\ntwo\n", "one\n2\n", b"\xef\xbb\xbfone\n2\n", "byte order mark (utf-8)"),
        (b"\xef\xbb\xbfone\n", "\ufeff1\n", b"\xef\xbb\xbf1\n", "byte order mark (utf-8)"),
        (b"\xef\xbb\xbf1\r\n", "\u00ef\n", b"\xef\xbb\xbf\xc3\xaf\r\n", "mark (utf-8) and line ends (CR LF)"),
        ("\ufeffone\r\n".encode("utf-16-le"), "\u00ef\n", "\ufeff\u00ef\r\n".encode("utf-16-le"), "(utf-16-le)"),
        ("\ufeffone\n".encode("utf-16-be"), "1\n", "\ufeff1\n".encode("utf-16-be"), "(utf-16-be)"),
        ("\ufeffone\n".encode("utf-32-le"), "1\n", "\ufeff1\n".encode("utf-32-le"), "(utf-32-le)"),
        # Nothing to keep, or ends that differ: as given.
        (b"one\ntwo\n", "1\r\n2\r\n", b"1\r\n2\r\n", ""),
        (b"one\r\ntwo\n", "1\n2\n", b"1\n2\n", ""),
        (b"one", "1\n", b"1\n", ""),
        (b"", "\ufeff1\n", b"\xef\xbb\xbf1\n", ""),
        (b"na\xefve\n", "na\u00efve\n", b"na\xc3\xafve\n", ""),
        (b"one\r\n", "1", b"1", ""),
    ]
    for before, content, after, kept in cases:
        (workspace / "a").write_bytes(before)

        output = call("file_write", path="a", content=content).output

        assert (workspace / "a").read_bytes() == after, before
        assert ("kept" in output, kept in output) == (bool(kept), True), output
        assert output.startswith(f"wrote {len(after)} bytes to a"), before


def test_file_write_makes_parents_and_counts_bytes(call: Call, workspace: Path) -> None:
    result = call("file_write", path="a/b/c.txt", content="naïve\r\n")
    assert result.output == "wrote 8 bytes to a/b/c.txt"
    assert (workspace / "a" / "b" / "c.txt").read_bytes() == "naïve\r\n".encode()
    # It keeps the mode, goes through a link inside the workspace, and leaves nothing beside the file.
    (workspace / "run.sh").write_text("old")
    (workspace / "run.sh").chmod(0o755)
    (workspace / "link").symlink_to("run.sh")
    call("file_write", path="link", content="new")
    assert ((workspace / "link").is_symlink(), (workspace / "run.sh").read_text()) == (True, "new")
    assert (workspace / "run.sh").stat().st_mode & 0o777 == 0o755
    assert sorted(entry.name for entry in workspace.iterdir()) == ["a", "link", "run.sh"]
