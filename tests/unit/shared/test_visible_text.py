"""Nothing in a foreign text is hidden from its reader."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from shared.visible_text import visible, visible_prose


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


WRITTEN = [
    "tab\tand\nline",
    "naïve Ω 日本語 עברית",
    "\N{ARABIC LETTER MEEM}\N{ARABIC LETTER FARSI YEH}\u200c\N{ARABIC LETTER KHAH}",
    "👩\u200d💻 ❤\ufe0f\u200d🔥 1\ufe0f⃣",
]


def test_what_people_write_stays() -> None:
    wrong = [(text, got) for text in WRITTEN if (got := visible(text)) != text]
    assert wrong == []


def test_only_in_prose_are_two_characters_one_end_of_line() -> None:
    assert visible("one\r\ntwo") == "one␍\ntwo"
    assert visible_prose("one\r\ntwo\rthree") == "one\ntwo␍three"


@given(st.text(st.characters(codec=None)))
def test_no_control_or_format_character_is_left_but_in_its_place(text: str) -> None:
    left = {c for c in visible(text) if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"}}
    # The others have pictures of their own: signs of numbers and of musical or hieroglyphic notation.
    prepended = {c for c in left if 0x600 <= ord(c) <= 0x8E2 or ord(c) in {0x110BD, 0x110CD} or ord(c) >= 0x13430}
    assert left - prepended <= {"\t", "\n", "\u200c", "\u200d"}


def test_marking_twice_changes_nothing_more() -> None:
    once = visible("".join(map(chr, range(0x3000))))
    assert visible(once) == once
