"""What a model wrote as a title, made fit for a list."""

from __future__ import annotations

from control_plane.services.titles import MAX_TITLE, cleaned

TITLES = {
    "Fix the parser": "Fix the parser",
    "**Fix the `parser`**": "Fix the `parser",
    '"Fix the parser."': "Fix the parser",
    "\n\n# Title: Fix the parser\n\nIt is about the parser.": "Fix the parser",
    "Fix\tthe \x1b[31mparser\x07": "Fix the [31mparser",
    "Fix \u202ethe parser\u200b": "Fix the parser",
    "": "",
    ' \n"" ** \n': "",
    "x" * 80: f"{'x' * 59}…",
    f"{'word ' * 20}": "word word word word word word word word word word word word…",
    "データベースの選択": "データベースの選択",
}


def test_a_title_is_one_short_line_of_printable_characters() -> None:
    assert {text: cleaned(text) for text in TITLES} == TITLES
    assert max(len(title) for title in TITLES.values()) <= MAX_TITLE + 1
