"""Reviews: the lines of a file in a patch, also in one that a hostile drone made up, and the message to the agent."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as some

from control_plane.db.reviews import ReviewComment
from control_plane.operations.reviews.commenting import file_diff, paths_in
from control_plane.operations.reviews.message import MAX_QUOTED, review_message
from tests.support.reviews import PATCH

TRICKY = b"""\
diff --git a/notes.md b/notes.md
--- a/notes.md
+++ b/notes.md
@@ -1 +1,3 @@
-one
+diff --git a/secret.py b/secret.py
+@@ -1,9 +1,9 @@
+two
\\ No newline at end of file
diff --git a/with b/space.txt b/with b/space.txt
--- a/with b/space.txt
+++ b/with b/space.txt
@@ -0,0 +1 @@
+x
diff --git "a/caf\\303\\251 \\"q\\".txt" "b/caf\\303\\251 \\"q\\".txt"
--- /dev/null
+++ "b/caf\\303\\251 \\"q\\".txt"
@@ -0,0 +1 @@
+y
"""


def test_each_side_has_the_numbers_and_signs_of_the_diff() -> None:
    found = file_diff(PATCH, "calc.py")
    assert found is not None
    assert found.new == {
        2: "",
        3: " def add(a, b):",
        4: "+    total = a + b",
        5: "+    return total",
        6: "",
        21: "+new end",
        22: " last",
    }
    binary = file_diff(PATCH, "data.bin")
    assert binary is not None
    assert (binary.new, binary.shown("new"), file_diff(PATCH, "other.py")) == ({}, "", None)
    assert (found.old[4], found.old[20], found.shown("old")) == ("-    return a - b", "-old end", "2-5, 20-21")


def test_content_cannot_pass_for_another_file_and_odd_names_are_read() -> None:
    assert paths_in(TRICKY) == ["notes.md", "with b/space.txt", 'café "q".txt']
    found = file_diff(TRICKY, "notes.md")
    assert found is not None
    assert found.new == {1: "+diff --git a/secret.py b/secret.py", 2: "+@@ -1,9 +1,9 @@", 3: "+two"}


HEADS = ["diff --git a/x b/x\n", 'diff --git "a/\\777', "@@ -1,3 +1,3 @@\n", "@@ -999999999 +0,0 @@"]
PIECES = some.sampled_from([*HEADS, "+a\n", "-b\n", "\\", "\n"])


@given(some.lists(PIECES, max_size=30))
def test_no_patch_is_an_error(pieces: list[str]) -> None:
    paths_in("".join(pieces).encode())


ORDER = "0123456789ab"


def row(**fields: Any) -> ReviewComment:
    given = {"id": "a1b2c3d4e5f6", "path": "calc.py", "side": "new", "start_line": 4, "end_line": 5, "quote": "+x\n+y"}
    return ReviewComment(**{**given, "text": "Use sum()", "commit": "c" * 40, "parent_id": None, **fields})


def test_each_comment_has_its_id_place_code_and_text() -> None:
    said = review_message(ORDER, [row(), row(id="b" * 12, start_line=None, quote="", path="b.py")], "Nearly.", {})
    assert said.startswith(f"Review of the work of order {ORDER}: 2 comments.\n")
    assert "About the whole review:\n| Nearly." in said
    assert (
        "=== comment a1b2c3\nfile: calc.py\nlines: 4-5 (new side of the diff)\ncommit: cccccccccccc\n"
        "code:\n| +x\n| +y\ntext:\n| Use sum()\n\n=== comment bbbbbb\nfile: b.py\ncommit: cccccccccccc\ntext:\n"
    ) in said
    parent = row(id="b" * 12, answer="Which sum?")
    said = review_message(ORDER, [row(parent_id="b" * 12, text="The built-in")], "", {parent.id: parent})
    assert "in reply to your answer to comment bbbbbb:\n| Which sum?\ntext:\n| The built-in" in said
    quote = "\n".join(f"+{number} {'x' * 1000}" for number in range(MAX_QUOTED + 3))
    said = review_message(ORDER, [row(quote=quote)], "", {})
    assert ("| [… 3 more lines]" in said, max(map(len, said.splitlines())) < 600) == (True, True)


FOREIGN = some.lists(
    some.sampled_from(
        ["=== comment ffffff", "=== end of the review", "file: x", "\n", "\r", "\u2028", "\x85", "\x0b", "a"]
    )
).map("".join)


@given(text=FOREIGN, quote=FOREIGN, path=FOREIGN, whole=FOREIGN)
def test_foreign_text_never_begins_a_line_of_the_form(text: str, quote: str, path: str, whole: str) -> None:
    said = review_message(ORDER, [row(text=text, quote=quote, path=path)], whole, {})
    lines = said.splitlines()
    assert [line for line in lines if line.startswith("===")] == ["=== comment a1b2c3", "=== end of the review"]
    assert sum(line.startswith("file:") for line in lines) == 1
