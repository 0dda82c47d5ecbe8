"""docs/screens: a picture of each screen, before and after, that asks no other server for anything."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.support.screens import FOLDER, SCREENS, Screen, index, picture
from tests.support.terminals import terminal


def test_the_page_shows_every_screen_and_no_picture_is_left_over() -> None:
    assert (FOLDER / "README.md").read_text() == index(), "python -m tests.support.screens"
    for folder in ("before", "after"):
        assert {path.stem for path in (FOLDER / folder).glob("*")} == {screen.name for screen in SCREENS}
    assert len(SCREENS) >= 30
    assert {(each.columns, each.light, each.color) for each in SCREENS} >= {
        (80, False, True),
        (120, False, True),
        (80, True, True),
        (120, True, True),
        (80, False, False),
    }


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*/*.svg")), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_picture_needs_nothing_from_elsewhere(path: Path) -> None:
    text = path.read_text()
    ElementTree.fromstring(text)
    assert re.findall(r"url\(\s*[\"']?(?!#)[^)]*|<image|href=", text) == []


def test_a_picture_shows_colors_and_what_has_scrolled_away() -> None:
    with terminal(40, 5) as (shown, stream):
        stream.write("\x1b[1;31mfirst\x1b[0m line\n\x1b[2mfaint\x1b[0m\n" + "more\n" * 10)
    drawn = picture(shown, Screen("test", "fleet orders", 40), "fleet orders")
    words = "".join(ElementTree.fromstring(drawn).itertext()).replace("\xa0", " ")
    assert ("first line" in words, "faint" in words, words.count("more")) == (True, True, 10)
    assert "font-weight: bold" in drawn
