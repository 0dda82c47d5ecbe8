"""docs/pages: a picture of each page, on a desk and on a phone."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "docs" / "pages"


def test_the_page_shows_every_picture_that_the_journey_takes_and_no_other_is_left() -> None:
    shown = re.findall(r"\(([a-z-]+\.png)\)", (FOLDER / "README.md").read_text())
    journey = (ROOT / "tests" / "browser" / "test_journey.py").read_text()
    taken = {*re.findall(r'picture\("([a-z-]+)"\)', journey), *re.findall(r'^        "([a-z]+)": f?"/', journey, re.M)}
    assert sorted(shown) == sorted(f"{name}-{size}.png" for name in taken for size in ("wide", "narrow"))
    assert {path.name for path in FOLDER.glob("*.png")} == set(shown)
