"""The page about limits has those that there are, with their defaults."""

from __future__ import annotations

import re

from shared.limits import LIMITS
from tests.support.documents import ROOT


def test_the_page_lists_each_limit_with_its_meaning() -> None:
    text = (ROOT / "docs" / "run-settings.md").read_text()
    listed = re.findall(r"^\| `(\w+)` \| ([^|]*) \|", text, re.MULTILINE)
    assert listed == [(each.name, each.help) for each in LIMITS]
