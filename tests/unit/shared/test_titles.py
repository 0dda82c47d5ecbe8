"""Titles of prompts."""

from __future__ import annotations

from shared.titles import LONGEST, title


def test_a_title_is_the_first_line_without_the_marks_of_a_heading() -> None:
    cases: dict[str, str] = {
        "Fix the parser\nIt fails.": "Fix the parser",
        "\n  \n  Fix it  \n": "Fix it",
        "# Fix the parser\n\nIt fails.": "Fix the parser",
        "###### Six marks": "Six marks",
        "#\nFix it": "#",
        "#42 is back": "#42 is back",
        "    # four blanks are code": "# four blanks are code",
        "": "",
        " \n\t\n": "",
    }
    assert {text: title(text) for text in cases} == cases


def test_a_long_title_is_cut_with_an_ellipsis() -> None:
    assert title("x" * (LONGEST + 1)) == "x" * (LONGEST - 1) + "…"
    assert title("x" * LONGEST) == "x" * LONGEST
