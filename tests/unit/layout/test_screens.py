"""docs/screens: a picture of each screen, before and after, that asks no other server for anything."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from tests.support.screens import FOLDER, SCREENS, index


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


def test_a_picture_needs_nothing_from_elsewhere() -> None:
    texts = {path.name: path.read_text() for path in FOLDER.glob("*/*.svg")}
    assert {
        name for name, text in texts.items() if ElementTree.fromstring(text).tag.rpartition("}")[2] != "svg"
    } == set()
    loads = re.compile(r"url\(\s*[\"']?(?!#)[^)]*|<image|href=")
    assert {name: found for name, text in texts.items() if (found := loads.findall(text))} == {}
