"""Whether the final message of an agent is a question to its user."""

from __future__ import annotations

from shared.closing_question import closes_with_question


def test_a_closing_question_is_recognized() -> None:
    cases: list[str] = [
        "Which database should I use?",
        "I looked at both.\n\nWhich one do you prefer?  \n\n",
        "**Should I continue?**",
        "_Really?_",
        "> Should I delete `old.py`?",
        "Is it (as I assume) the *second* one?)",
        "Shall I go on?!",
        "Shall I go on? 🙂",
        "He asked “which one?”",
        "どちらにしますか\uff1f",
        "أي واحد تريد؟",
        "Ποιο προτιμάτε\u037e",
        "Which one?\n1. PostgreSQL\n2. SQLite",
        "Which one do you prefer?\n\n- **A**: fast\n- **B**: small.",
        "Which one?\na) this\nb) that",
    ]
    assert [text for text in cases if not closes_with_question(text)] == []


def test_any_other_end_is_none() -> None:
    cases: list[str] = [
        "",
        " \n ",
        "Done.",
        "Why did it fail? An import was missing.",
        "1. What?\n2. Where?\n3. Done.",
        "- one\n- two",
        "All tests pass!",
        "See the question above?\n\nI answered it myself.",
        "a ? b : c",
    ]
    assert [text for text in cases if closes_with_question(text)] == []
