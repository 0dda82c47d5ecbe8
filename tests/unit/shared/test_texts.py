"""Texts of people and models: closing questions, titles, durations, trailers, and marks for what would be hidden."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drone.runs.delivery import commit_message
from shared.closing_question import closes_with_question
from shared.durations import duration_label, in_units, kept_for, parse_duration
from shared.errors import Invalid
from shared.titles import LONGEST, title
from shared.trailers import has_trailers, trailers_of
from shared.visible_text import visible, visible_prose
from shared.work_order import WorkOrder
from tests.support.repositories import work_order

QUESTIONS = [
    *("Which database should I use?", "I looked at both.\n\nWhich one do you prefer?  \n\n", "Shall I go on?!"),
    *("**Should I continue?**", "_Really?_", "> Should I delete `old.py`?", "Is it (as I assume) the *second* one?)"),
    *("Shall I go on? 🙂", "He asked “which one?”", "どちらにしますか\uff1f", "أي واحد تريد؟", "Ποιο προτιμάτε\u037e"),
    *("Which one?\n1. PostgreSQL\n2. SQLite", "Which one do you prefer?\n\n- **A**: fast\n- **B**: small."),
    "Which one?\na) this\nb) that",
]
OTHER_ENDS = [
    *("", " \n ", "Done.", "Why did it fail? An import was missing.", "1. What?\n2. Where?\n3. Done.", "- one\n- two"),
    *("All tests pass!", "See the question above?\n\nI answered it myself.", "a ? b : c"),
]


def test_a_closing_question_is_told_from_any_other_end() -> None:
    found = {text: closes_with_question(text) for text in (*QUESTIONS, *OTHER_ENDS)}
    assert found == {**dict.fromkeys(QUESTIONS, True), **dict.fromkeys(OTHER_ENDS, False)}


def test_a_title_is_the_first_line_without_the_marks_of_a_heading() -> None:
    cases: dict[str, str] = {
        "Fix the parser\nIt fails.": "Fix the parser",
        "# Fix the parser\n\nIt fails.": "Fix the parser",
        "###### Six marks": "Six marks",
        "#\nFix it": "#",
        "#42 is back": "#42 is back",
        "    # four blanks are code": "# four blanks are code",
        "": "",
    }
    assert {text: title(text) for text in cases} == cases
    assert title("x" * (LONGEST + 1)) == "x" * (LONGEST - 1) + "…"
    assert title("x" * LONGEST) == "x" * LONGEST


def test_a_duration_is_said_in_the_units_that_fit_it_and_read_in_its_unit() -> None:
    said = {0: "0 ms", 999: "999 ms", 1000: "1.0 s", 59_940: "59.9 s", 59_960: "1 min 0 s", 245_400: "4 min 5 s"}
    said |= {3_599_600: "1 h 0 min", 7_380_000: "2 h 3 min"}
    assert {milliseconds: duration_label(milliseconds) for milliseconds in said} == said
    typed = {"90s": 90, "30m": 1800, " 1h ": 3600, "7d": 604_800}
    assert {text: parse_duration(text) for text in typed} == typed
    assert [in_units(seconds) for seconds in (90, 1800, 3600, 604_800, 0)] == ["90s", "30m", "1h", "7d", "0"]
    for text in ("", "0", "0s", "-1s", "1", "1 h", "1w", "1.5h", "1h30m", "9999999s"):
        with pytest.raises(Invalid) as refusal:
            parse_duration(text, "--idle 5m")
        assert (refusal.value.code, refusal.value.next) == ("E-DURATION", "--idle 5m"), text


BOTH = ["Assisted-by: openai/x via Dronefleet", "Fleet-Order: 0rder"]


def test_a_project_chooses_its_trailers_and_without_a_choice_work_names_its_order() -> None:
    cases: dict[tuple[str, ...], list[str]] = {
        (): BOTH[1:],
        ("Fleet-Order",): BOTH[1:],
        ("Assisted-by",): BOTH[:1],
        ("Fleet-Order", "Assisted-by"): BOTH,
        ("Signed-off-by", "Assisted-by"): BOTH[:1],
    }
    assert {chosen: trailers_of(chosen, model="openai/x", order_id="0rder", ticket=None) for chosen in cases} == cases
    (line,) = trailers_of(["Assisted-by"], model="x\nSigned-off-by: kim", order_id="0rder", ticket=None)
    assert line == "Assisted-by: x Signed-off-by: kim via Dronefleet"
    texts = ("Fix it\n\nFleet-Order: a\n", "Fix it\n\nFleet-Order: a\n\nThat is all.", "Fix it")
    assert [has_trailers(text) for text in texts] == [True, False, False]


def order(prompt: str, *trailers: str, task: str | None = None) -> WorkOrder:
    made = work_order("file:///r", order_id="0rder0rder00")
    project = made.project.model_copy(update={"trailers": trailers})
    return made.model_copy(update={"prompt": prompt, "project": project, "task": task})


def test_the_drones_commit_says_what_it_is_about_and_carries_the_trailers() -> None:
    made = order("\nFix it\n\nand more", "Assisted-by", "Fleet-Order")
    assert commit_message(made) == (
        f"Fix it\n\nAssisted-by: {made.provider.model} via Dronefleet\nFleet-Order: 0rder0rder00\n"
    )
    for_ticket = made.model_copy(update={"ticket": "PAYM-12"})
    assert commit_message(for_ticket).splitlines()[1:3] == ["", "Refs: PAYM-12"]
    turn = order("# Task PAYM-0001: Mend it\n\nOrganization: payments", task="PAYM-0001")
    assert commit_message(turn).splitlines()[0] == "PAYM-0001: Mend it"


def test_what_hides_something_has_a_mark() -> None:
    cases: dict[str, str] = {
        "evil()\rprint(1)": "evil()␍print(1)",
        "\x1b]0;title\x07": "␛]0;title␇",
        "\x7f\x85\x9b": "␡⟨U+0085⟩⟨U+009B⟩",
        "if admin:\u202e)txet": "if admin:⟨U+202E⟩)txet",
        "a\u200bb\u200cc\u200dd": "a⟨U+200B⟩b⟨U+200C⟩c⟨U+200D⟩d",
        "A\ufe0f\U000e0101": "A⟨U+FE0F⟩⟨U+E0101⟩",
        "⚠\ufe0f\ufe0f\ufe0f": "⚠\ufe0f⟨U+FE0F⟩⟨U+FE0F⟩",
        "\u200dx \u200c": "⟨U+200D⟩x ⟨U+200C⟩",
    }
    assert {text: visible(text) for text in cases} == cases
    assert [text for text in WRITTEN if visible(text) != text] == []
    # Only in prose are two characters one end of a line.
    assert visible("one\r\ntwo") == "one␍\ntwo"
    assert visible_prose("one\r\ntwo\rthree") == "one\ntwo␍three"


WRITTEN = [
    "tab\tand\nline",
    "naïve Ω 日本語 עברית",
    "\N{ARABIC LETTER MEEM}\N{ARABIC LETTER FARSI YEH}\u200c\N{ARABIC LETTER KHAH}",
    "👩\u200d💻 ❤\ufe0f\u200d🔥 1\ufe0f⃣",
]


@given(st.text(st.characters(codec=None)))
def test_no_control_or_format_character_is_left_but_in_its_place(text: str) -> None:
    left = {c for c in visible(text) if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"}}
    # The others have pictures of their own: signs of numbers and of musical or hieroglyphic notation.
    prepended = {c for c in left if 0x600 <= ord(c) <= 0x8E2 or ord(c) in {0x110BD, 0x110CD} or ord(c) >= 0x13430}
    assert left - prepended <= {"\t", "\n", "\u200c", "\u200d"}


def test_data_that_is_kept_for_longer_than_there_are_dates_is_kept() -> None:
    assert kept_for(7) == timedelta(days=7)
    now = datetime(2026, 11, 21, tzinfo=UTC)
    assert [(now - kept_for(days)).year for days in (999_999, 10**12)] == [1926, 1926]
