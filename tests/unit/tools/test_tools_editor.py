"""editor: exact to the byte outside the edit, one step back, and a word where a file no longer parses."""

from __future__ import annotations

from pathlib import Path

from drone.tools.syntax import LARGEST
from tests.support.toolboxes import Call

MIXED = b"a\r\nb\r\nc\nd\r\n"


def replace(call: Call, old: str, new: str, path: str = "a") -> str:
    return call("editor", command="str_replace", path=path, old_str=old, new_str=new).output


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
    cases: list[tuple[bytes, int, str, bytes]] = [
        (b"1\n2\n", 1, "new", b"new\n1\n2\n"),
        (b"1\n2\n", 2, "new", b"1\nnew\n2\n"),
        (b"1\n2\n", 3, "new", b"1\n2\nnew"),
        (b"1\n2", 3, "new", b"1\n2\nnew"),
        (b"1\r\n2\r\n", 2, "new", b"1\r\nnew\r\n2\r\n"),
        (b"", 1, "new", b"new"),
        (b"a\rb\n", 2, "new", b"a\rb\nnew"),
        # Lines end like the line at their place, and stand behind a byte order mark.
        (MIXED, 1, "1\n2", b"1\r\n2\r\n" + MIXED),
        (MIXED, 3, "1\n2", b"a\r\nb\r\n1\n2\nc\nd\r\n"),
        (MIXED, 5, "1\n2", MIXED + b"1\r\n2"),
        (b"a\r\nb", 3, "1\n2", b"a\r\nb\r\n1\r\n2"),
        (b"\xef\xbb\xbfa\r\n", 1, "1\n2", b"\xef\xbb\xbf1\r\n2\r\na\r\n"),
        (b"\xef\xbb\xbf", 1, "1\n2", b"\xef\xbb\xbf1\n2"),
    ]
    for before, line, new, after in cases:
        (workspace / "a").write_bytes(before)

        call("editor", command="insert", path="a", insert_line=line, new_str=new)

        assert (workspace / "a").read_bytes() == after, (before, line)


def test_a_text_matches_whatever_ends_its_lines_and_each_keeps_its_end_and_encoding(
    call: Call, workspace: Path
) -> None:
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
        (b"a\rb\rc", ("b", "x\ny"), b"a\rx\ny\rc"),
        (b"\x89PNG\r\n\x1a\n\0end", ("end", "END"), b"\x89PNG\r\n\x1a\n\0END"),
        ("naïve\n".encode("latin-1"), ("ve\n", "f"), "naïf".encode("latin-1")),
        ("naïve\n".encode("latin-1"), ("n", "naï"), "naïve\n".encode("latin-1")),
        ("wide".encode("utf-16"), ("w", "long"), "wide".encode("utf-16")),
        ("wide".encode("utf-32"), ("w", "v"), "wide".encode("utf-32")),
    ]
    for before, (old, new), after in cases:
        (workspace / "a").write_bytes(before)

        output = replace(call, old, new)

        assert (workspace / "a").read_bytes() == after, (before, old, output)


def test_equal_texts_with_other_line_ends_are_one_and_carriage_returns_are_named(call: Call, workspace: Path) -> None:
    (workspace / "a").write_bytes(b"x\ny\r\n\nx\r\ny\n")
    assert "occurs 2 times, in lines 1, 4;" in replace(call, "x\ny", "z")
    assert "the edit changes nothing" in replace(call, "\n\nx", "\r\n\r\nx")
    (workspace / "a").write_bytes(b"x\ry\n")
    assert "carriage returns" in replace(call, "x\ny", "z")
    assert replace(call, "x\ry", "z").startswith("edited")


def test_undo_edit_takes_back_one_edit_of_each_file(call: Call, workspace: Path) -> None:
    (workspace / "a").write_text("one")
    (workspace / "b").write_text("one")
    replace(call, "one", "two")
    replace(call, "one", "two", "b")
    replace(call, "two", "three")

    assert call("editor", command="undo_edit", path="a").output == "undid the last edit of a"
    assert "no edit" in call("editor", command="undo_edit", path="a").output
    assert ((workspace / "a").read_text(), (workspace / "b").read_text()) == ("two", "two")
    # What somebody else did stays.
    (workspace / "b").write_text("theirs")
    assert "changed by something else" in call("editor", command="undo_edit", path="b").output
    assert (workspace / "b").read_text() == "theirs"


NOTE = "no longer parses"


def test_an_edit_that_breaks_a_file_says_where_and_is_kept(call: Call, workspace: Path) -> None:
    cases = [
        ("a.py", "def one():\n    return 1\n", "return 1", "return (1", "line 2: '(' was never closed"),
        ("a.json", '{\n"one": 1}\n', "1}", "1,}", "line 2: "),
        ("a.toml", "one = 1\n", "= 1", "=", "Invalid value"),
    ]
    for name, before, old, new, why in cases:
        (workspace / name).write_text(before)
        output = replace(call, old, new, name)
        assert (NOTE in output, why in output) == (True, True), name
        assert (workspace / name).read_text() == before.replace(old, new), name


def test_insertions_and_whole_files_are_parsed_too_but_not_other_languages_or_large_files(
    call: Call, workspace: Path
) -> None:
    (workspace / "a.py").write_text("one = 1\n")
    inserted = call("editor", command="insert", path="a.py", insert_line=2, new_str="if one\n").output
    written = call("file_write", path="sub/b.py", content="def\n").output
    assert "a.py no longer parses: line 2: expected ':'" in inserted
    assert "sub/b.py no longer parses: line 1: invalid syntax" in written
    assert NOTE not in call("file_write", path="sub/b.py", content="def (\n").output
    assert NOTE in call("file_write", path="deep.py", content="(" * 1000 + ")" * 1000).output

    for name, content in (("a.txt", "("), ("a.js", "("), ("c.py", f"({' ' * LARGEST}")):
        assert NOTE not in call("file_write", path=name, content=content).output, name
    (workspace / "tsconfig.json").write_text('{ // a comment\n"strict": true}\n')
    assert NOTE not in replace(call, "true", "false", "tsconfig.json")
    (workspace / "d.py").write_text("one = 1\n")
    assert NOTE not in replace(call, "1", "'\\d'", "d.py"), "a warning is no error"
