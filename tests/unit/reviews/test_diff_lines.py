"""The lines of a file in a patch, also in one that a hostile drone made up."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from control_plane.operations.reviews.diff_lines import file_diff, paths_in
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
    assert (found.old[4], found.old[20], found.shown("old")) == ("-    return a - b", "-old end", "2-5, 20-21")


def test_a_binary_file_is_changed_without_lines_and_another_file_is_not_there() -> None:
    binary = file_diff(PATCH, "data.bin")
    assert binary is not None
    assert (binary.new, binary.shown("new")) == ({}, "")
    assert file_diff(PATCH, "other.py") is None
    assert paths_in(PATCH) == ["calc.py", "data.bin"]


def test_content_cannot_pass_for_another_file_and_odd_names_are_read() -> None:
    assert paths_in(TRICKY) == ["notes.md", "with b/space.txt", 'café "q".txt']
    found = file_diff(TRICKY, "notes.md")
    assert found is not None
    assert found.new == {1: "+diff --git a/secret.py b/secret.py", 2: "+@@ -1,9 +1,9 @@", 3: "+two"}


PIECES = some.sampled_from(
    [
        "diff --git a/x b/x\n",
        'diff --git "a/\\777',
        "@@ -1,3 +1,3 @@\n",
        "@@ -999999999 +0,0 @@",
        "+a\n",
        "-b\n",
        "\\",
        "\n",
    ]
)


@given(some.lists(PIECES, max_size=30))
def test_no_patch_is_an_error(pieces: list[str]) -> None:
    paths_in("".join(pieces).encode())
