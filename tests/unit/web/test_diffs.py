"""Patches as rows: what git writes comes through, whatever a drone sends is harmless."""

from __future__ import annotations

import difflib
import re
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from control_plane.contract.declarations.reviews import ReviewCommentDocument
from control_plane.core.patches.hunks import Line, lines_of
from control_plane.core.patches.patch import BinarySizes, FilePatch, read_patch
from control_plane.web.diffs.code_text import LONGEST, code_html
from control_plane.web.diffs.following import Follower, Standing
from control_plane.web.diffs.labels import labels_of, path_key
from control_plane.web.diffs.places import place_keyed, place_written
from control_plane.web.diffs.rows import DiffRow, groups_of, rows_of, without_space
from control_plane.web.diffs.shown import FILES, DiffOptions, shown_files, shown_part
from control_plane.web.diffs.syntax import colours_of
from control_plane.web.diffs.words import changed_words

HEAD = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n"
SIGNS = {"same": b" ", "add": b"+", "del": b"-", "note": b"\\"}


def patch_of(repository: Path, before: dict[str, bytes], after: dict[str, bytes], *options: str) -> list[FilePatch]:
    """What git says about two states of a directory."""
    git = ("git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run([*git[:3], "init", "-q"], check=True)
    commits = []
    for files in (before, after):
        for old in repository.iterdir():
            if old.name != ".git":
                old.unlink()
        for name, content in files.items():
            (repository / name).write_bytes(content)
        subprocess.run([*git, "add", "-A"], check=True)
        subprocess.run([*git, "commit", "-qm", "x", "--allow-empty"], check=True)
        commits.append(subprocess.check_output([*git, "rev-parse", "HEAD"], text=True).strip())
    options = options or ("--no-renames",)
    words = [*git, "diff-tree", "-r", "-p", "--binary", "--full-index", *options, *commits]
    return read_patch(subprocess.check_output(words))


def texts(rows: Sequence[DiffRow]) -> list[bytes]:
    """The lines of a unified view as the patch has them."""
    return [SIGNS[row.sign] + row.first.line.raw for row in rows if row.sign != "hunk"]


def test_git_names_every_kind_of_file(tmp_path: Path) -> None:
    before = {"gone": b"1\n", "caf\u00e9 \u05d0": b"x\n", 'we"ird\t': b"1\n2\n3\n", "blob": b"\0" * 3000, "empty": b""}
    after = {"caf\u00e9 \u05d0": b"y\n", "new\nline": b"", 'moved "': b"1\n2\n3\n", "blob": b"\0" * 3000 + b"1"}
    files = patch_of(tmp_path, before, after, "-M")
    assert {(each.kind, each.path, each.old_path) for each in files} == {
        ("modified", "blob", "blob"),
        ("modified", "caf\u00e9 \u05d0", "caf\u00e9 \u05d0"),
        ("renamed", "new\nline", "empty"),
        ("deleted", "gone", "gone"),
        ("renamed", 'moved "', 'we"ird\t'),
    }
    assert next(each.sizes for each in files if each.is_binary) == BinarySizes(3000, 3001)


def test_a_change_of_mode_a_symlink_and_line_ends_are_said(tmp_path: Path) -> None:
    files = read_patch(
        b"diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n"
        b"diff --git a/link b/link\nnew file mode 120000\nindex 000..111\n--- /dev/null\n+++ b/link\n"
        b"@@ -0,0 +1 @@\n+../secret\n\\ No newline at end of file\n"
        b"diff --git a/w b/w\nindex 0..1 100644\n--- a/w\n+++ b/w\n@@ -1 +1 @@\n-a\r\n+b\r\n"
        b"diff --git a/c b/d\nsimilarity index 90%\ncopy from c\ncopy to d\n"
        b"diff --git a/big b/big\nnew file mode 100644\nGIT binary patch\n"
        b"literal 52428800\nzcm\n\nliteral 0\nHcmV?d00001\n"
    )
    assert [list(labels_of(each)) for each in files] == [
        ["now executable"],
        ["added", "symlink"],
        ["CRLF line ends"],
        ["copied from c (90% the same)"],
        ["added", "binary, 52 MB"],
    ]


TOUGH = [
    b"a",
    b"b",
    b"a b c",
    b"",
    b"\r",
    b"--- x",
    b"++ y",
    b"@@ -1 +1 @@",
    b"diff --git a/x b/x",
    b"\xff\xfe",
    b"\\ No",
]
CONTENT = st.lists(st.sampled_from(TOUGH), max_size=40)


def compared(before: Sequence[bytes], after: Sequence[bytes], *, context: int = 3) -> tuple[FilePatch, list[bytes]]:
    """A patch of two texts, and its lines from the first hunk on; the last line of both has no newline."""
    body = list(difflib.diff_bytes(difflib.unified_diff, before, after, n=context, lineterm=b""))[2:]
    if body:
        body.append(b"\\ No newline at end of file")
    (file,) = read_patch(b"\n".join([HEAD + b"\n".join(body)]) + b"\n")
    return file, body


@given(CONTENT, CONTENT, st.sampled_from([0, 3, 99]))
def test_the_unified_rows_are_the_lines_of_the_patch(before: list[bytes], after: list[bytes], context: int) -> None:
    file, body = compared(before, after, context=context)
    groups = groups_of(list(lines_of(file)), "unified")
    assert texts([row for group in groups for row in group.rows]) == [each for each in body if each[:2] != b"@@"]
    assert (file.plus, file.minus) == tuple(sum(each[:1] == sign for each in body) for sign in (b"+", b"-"))


@given(CONTENT, CONTENT)
def test_each_side_of_the_split_view_has_its_lines_in_their_order(before: list[bytes], after: list[bytes]) -> None:
    file, _ = compared(before, after)
    lines = [line for line in lines_of(file) if line.sign not in {"hunk", "note"}]
    rows = [row for row in rows_of(list(lines_of(file)), "split") if len(row.cells) == 2]
    for column, other in enumerate(("add", "del")):
        cells = [cell.line for row in rows if (cell := row.cells[column]) is not None]
        assert [line for line in cells if line.sign != "note"] == [line for line in lines if line.sign != other]
        assert all(line.old if other == "add" else line.new for line in cells if line.sign != "note")


@given(CONTENT, CONTENT, st.integers(1, 9))
def test_parts_of_a_file_are_the_whole_file(before: list[bytes], after: list[bytes], size: int) -> None:
    file, _ = compared(before, after, context=99)
    shown, start, more = [], 0, True
    while more:
        part = shown_part(file, start, size, DiffOptions())
        shown += [cell for group in part.groups for row in group.rows for cell in row.cells]
        start, more = part.upto, part.more
    whole = shown_part(file, 0, 1000, DiffOptions())
    numbers = [cell.number for group in whole.groups for row in group.rows for cell in row.cells if cell]
    assert [each.number for each in shown if each] == numbers


@given(
    st.binary(max_size=300),
    st.lists(st.sampled_from([HEAD, b"@@ -1,9 +1,9 @@\n", b"+a\n", b"-b\n", b"\\\n"]), max_size=9),
)
def test_no_patch_is_refused_however_wrong_it_is(junk: bytes, parts: list[bytes]) -> None:
    for patch in (junk, HEAD + junk, b"".join(parts) + junk, junk + b"".join(parts)):
        shown_files(read_patch(patch), DiffOptions(view="split"))
        shown_files(read_patch(patch), DiffOptions(opened={0: 50}))


def test_changed_words_are_marked_and_rewritten_lines_are_not() -> None:
    old, new = "    return round(amount, 2)", "    return amount.quantize(CENT)"
    words = changed_words("total = price * 2", "total = price * count")
    assert words == ([(16, 17)], [(16, 21)])
    assert changed_words(old, "import os") is None
    assert changed_words(old, new * 100) is None


def test_an_inserted_line_does_not_shift_the_pairs_after_it() -> None:
    (file,) = read_patch(
        HEAD + b"@@ -1,1 +1,2 @@\n-total = price * 2\n+# doubled, see the contract\n+total = price * 3\n"
    )
    rows = [row for row in rows_of(list(lines_of(file)), "split") if row.sign != "hunk"]
    assert [[cell and cell.line.text for cell in row.cells] for row in rows] == [
        [None, "# doubled, see the contract"],
        ["total = price * 2", "total = price * 3"],
    ]


def test_a_long_unchanged_run_is_folded_and_a_hunk_has_no_more_lines_than_it_announces() -> None:
    same = [b"%d" % number for number in range(30)]
    file, _ = compared([*same, b"x"], [*same, b"y"], context=99)
    groups = [(len(group.rows), group.folded) for group in groups_of(list(lines_of(file)), "unified")]
    assert groups == [(1, False), (3, False), (24, True), (3, False), (3, False)]
    (file,) = read_patch(HEAD + b"@@ -1 +1 @@\n-a\n+b\n-- \n2.40\n")
    assert [line.text for line in lines_of(file)] == ["", "a", "b"]


def test_hidden_characters_are_marked_markup_stays_text_and_a_line_of_a_megabyte_is_cut() -> None:
    html = str(code_html("a\u202eb\rc\u200b<script>", [(0, 3)]))
    assert html.count('class="odd"') == 3
    assert ("⟨U+202E⟩" in html, "␍" in html, "&lt;script&gt;" in html) == (True, True, True)
    assert not re.search("[\u202e\u200b\r]|<script", html)
    html = code_html("x" * 1_000_000)
    assert (len(html) < LONGEST + 100, "998,000 more characters" in html) == (True, True)


def test_a_text_of_many_lines_keeps_its_colour_and_its_places() -> None:
    lines = [Line("add", text, None, number) for number, text in enumerate((b'"""one\r', b"two", b'"""', b"def f():"))]
    names = [[name for *_, name in colours_of("a.py", lines)[each]] for each in range(4)]
    assert names == [*[["hl-string"]] * 3, ["hl-keyword", "hl-name"]]
    assert colours_of("a.unknown", lines) == {}


def test_of_many_lines_and_of_a_file_of_five_megabytes_few_rows_are_shown() -> None:
    many = b"".join(
        b"diff --git a/f%d.py b/f%d.py\n--- a/f%d.py\n+++ b/f%d.py\n@@ -0,0 +1,500 @@\n" % ((number,) * 4)
        + b"+x = 1\n" * 500
        for number in range(40)
    )
    large = HEAD + b"@@ -0,0 +1,500000 @@\n" + b"+123456789\n" * 500_000
    for patch in (many, large):
        shown = shown_files(read_patch(patch), DiffOptions())
        assert {each.file.plus for each in shown} <= {500, 500_000}
        assert sum(len(group.rows) for each in shown for group in each.groups) < 400


def test_of_a_file_that_became_a_symlink_a_place_is_in_the_part_that_has_its_side() -> None:
    deleted = HEAD.replace(b"--- ", b"deleted file mode 100644\n--- ") + b"@@ -1 +0,0 @@\n-a\n"
    added = HEAD.replace(b"--- ", b"new file mode 120000\n--- ") + b"@@ -0,0 +1 @@\n+b\n"
    files, key = read_patch(deleted + added), path_key("x")
    found = [place_written(f"{key}:{side}:1", files) for side in ("old", "new")]
    ids = [each.id for each in shown_files(files, DiffOptions())]
    assert len(set(ids)) == 2
    assert [(place.index, place.section) for place in found if place] == list(enumerate(ids))


def test_a_place_is_a_file_a_line_or_lines_of_one_in_an_address_as_by_its_key() -> None:
    files, key = read_patch(HEAD + b"@@ -1 +1 @@\n-a\n+b\n"), path_key("x")
    for written, keyed, place in (
        (key, f"{key}.file", ("new", None, None)),
        (f"{key}:old:3", f"{key}.old.3", ("old", 3, 3)),
        (f"{key}:new:3-5", f"{key}.new.3-5", ("new", 3, 5)),
        (f"{key}:new:0", f"{key}.new.0", ("new", None, None)),
    ):
        found = place_written(written, files), place_keyed(keyed, files)
        assert [each and (each.path, each.side, each.start, each.end) for each in found] == [("x", *place)] * 2
    nonsense = place_written(f"{key}:both:1", files), place_written(f"{path_key('y')}:new:1", files)
    assert nonsense == (None, None)


def test_thousands_of_files_are_paged() -> None:
    patch = b"".join(b"diff --git a/%d b/%d\nold mode 100644\nnew mode 100755\n" % (n, n) for n in range(FILES + 2))
    shown = shown_files(read_patch(patch), DiffOptions(after=FILES))
    assert [each.file.path for each in shown] == [str(FILES), str(FILES + 1)]


FIRST = [f"line {number}" for number in range(1, 41)]
"""A file as a first turn left it."""
EDITS: dict[str, tuple[list[str], dict[int, int | None]]] = {
    "nothing": (FIRST, {1: 1, 40: 40}),
    "lines above": (["new", "newer", *FIRST], {1: 3, 20: 22, 40: 42}),
    "lines below": ([*FIRST, "new"], {1: 1, 40: 40}),
    "a line between": ([*FIRST[:20], "new", *FIRST[20:]], {20: 20, 21: 22}),
    "a line that goes": ([*FIRST[:19], *FIRST[20:]], {19: 19, 20: None, 21: 20, 40: 39}),
    "a line rewritten": ([*FIRST[:19], "other", *FIRST[20:]], {19: 19, 20: None, 21: 21}),
    "far changes": (
        ["new", *FIRST[:15], *FIRST[16:30], "a", "b", *FIRST[30:]],
        {1: 2, 15: 16, 16: None, 17: 17, 31: 33},
    ),
    "everything": (["other"], {1: None, 40: None}),
    "the first line": (FIRST[1:], {1: None, 2: 1}),
    "the last line": (FIRST[:-1], {39: 39, 40: None}),
}


def changed_by(before: Sequence[str], after: Sequence[str]) -> bytes:
    lines = difflib.unified_diff(before, after, "a/x", "b/x", lineterm="")
    return "\n".join(["diff --git a/x b/x", *lines, ""]).encode()


def commented(line: int, quote: str, **more: object) -> ReviewCommentDocument:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    empty = dict.fromkeys(("commit", "parent", "answer", "done_commit", "sent_to", "answered_at", "answered_in"))
    about = {"path": "x", "side": "new", "start_line": line, "end_line": line, "quote": quote, "order": "first"}
    told = {"id": "c", "user": "u", "mine": True, "place": "x", "status": "sent", "text": "t"}
    return ReviewCommentDocument.model_validate(
        {**empty, **about, **told, "created_at": now, "updated_at": now, "sent_at": now, **more}
    )


def test_a_line_is_followed_through_the_patch_of_a_later_turn() -> None:
    wrong = {}
    for name, (after, expected) in EDITS.items():
        patch = changed_by(FIRST, after)
        follower = Follower(
            "second", True, {each.path: each for each in read_patch(changed_by([], after))}, (("second", patch),)
        )
        found = {line: follower.standing(commented(line, f"+line {line}")) for line in expected}
        told = {line: None if standing.where == "gone" else standing.line for line, standing in found.items()}
        if told != expected:
            wrong[name] = told
    assert wrong == {}


def test_a_line_among_many_that_are_alike_is_followed_and_not_confused_with_another() -> None:
    tail = ["}"] * 10
    before = ["}", "a", "}", "b", "}", "c", *tail]
    cases = {
        "a line above": (["new", *before], 3, Standing(4, "moved")),
        "a line far above": (["new", *before], 14, Standing(15, "moved")),
        "that one goes": (["}", "a", "b", "}", "c", *tail], 3, Standing(0, "gone")),
        "another one goes": (["a", "}", "b", "}", "c", *tail], 5, Standing(4, "moved")),
    }
    wrong = {}
    for name, (after, line, expected) in cases.items():
        turn = changed_by(before, after)
        whole = {each.path: each for each in read_patch(changed_by([], after))}
        found = Follower("second", True, whole, (("second", turn),)).standing(commented(line, "+}"))
        if found != expected:
            wrong[name] = found
    assert wrong == {}


def test_through_several_turns_renumbered_and_outside_of_the_diff() -> None:
    versions = [FIRST, ["one", *FIRST], ["two", "one", *FIRST], [*FIRST[:5], "two", *FIRST[5:]]]
    turns = [(f"turn{n}", changed_by(a, b)) for n, (a, b) in enumerate(pairwise(versions))]
    last = {each.path: each for each in read_patch(turns[-1][1])}
    turn = Follower("turn2", False, last, turns)
    assert turn.standing(commented(30, "+line 30")) == Standing(0, "hidden")
    assert turn.standing(commented(5, "+line 5")) == Standing(5)
    assert turn.standing(commented(7, "+line 5", order="turn1")) == Standing(5, "moved")
    assert turn.standing(commented(5, "-line 5", side="old")) == Standing(0, "gone")
    assert turn.standing(commented(1, "", start_line=None, end_line=None)) == Standing()


BLANKS = {
    "indent": (["a", "b"], ["  a", "  b"], ["same   a", "same   b"]),
    "at the end": (["a  "], ["a"], ["same a"]),
    "within": (["f(a,b)"], ["f(a, b)"], ["same f(a, b)"]),
    "a carriage return": (["a\r"], ["a"], ["same a"]),
    "a real change": (["a"], ["b"], ["del a", "add b"]),
    "both": (["a", "b"], ["  a", "c"], ["same   a", "del b", "add c"]),
    "an empty line more": (["a"], ["a", ""], ["same a", "add "]),
    "only removed": (["a"], [], ["del a"]),
    "only added": ([], ["a"], ["add a"]),
}


def test_lines_that_differ_in_blanks_alone_are_one_unchanged_line_with_both_numbers() -> None:
    wrong = {}
    for name, (old, new, expected) in BLANKS.items():
        lines = [Line("del", text.encode(), old=n) for n, text in enumerate(old, 1)]
        lines += [Line("add", text.encode(), new=n) for n, text in enumerate(new, 1)]
        found = list(without_space(lines))
        if [f"{each.sign} {each.text}" for each in found] != expected:
            wrong[name] = found
        if any(each.old is None or each.new is None for each in found if each.sign == "same"):
            wrong[name] = found
    assert wrong == {}
