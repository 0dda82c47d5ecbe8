"""What a model wrote as a title, made fit for a list."""

from __future__ import annotations

import pytest

from control_plane.services.titles import MAX_TITLE, cleaned


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Fix the parser", "Fix the parser"),
        ("**Fix the `parser`**", "Fix the `parser"),
        ('"Fix the parser."', "Fix the parser"),
        ("\n\n# Title: Fix the parser\n\nIt is about the parser.", "Fix the parser"),
        ("Fix\tthe \x1b[31mparser\x07", "Fix the [31mparser"),
        ("Fix \u202ethe parser\u200b", "Fix the parser"),
        ("", ""),
        (' \n"" ** \n', ""),
        ("x" * 80, f"{'x' * 59}…"),
        (f"{'word ' * 20}", "word word word word word word word word word word word word…"),
        ("データベースの選択", "データベースの選択"),
    ],
)
def test_a_title_is_one_short_line_of_printable_characters(text: str, title: str) -> None:
    assert cleaned(text) == title
    assert len(cleaned(text)) <= MAX_TITLE + 1
