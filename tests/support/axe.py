"""Looks for accessibility problems on a page with axe-core, which `make scripts` installs."""

from __future__ import annotations

import os
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.support.documents import ROOT

AXE = ROOT / ".ci" / "js" / "node_modules" / "axe-core" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def need_axe() -> None:
    """Skip the test on a machine without axe-core; in CI it fails."""
    if not AXE.exists():
        assert not os.environ.get("CI"), "axe-core is not installed; run: make scripts"
        pytest.skip("axe-core is not installed; run: make scripts")


def violations(page: Page, within: str = "html") -> list[str]:
    """Each violation inside the first visible element that the selector finds, as `rule: what (where)`."""
    # As the debugger does it: the policy of the page allows no script from elsewhere.
    page.evaluate(AXE.read_text())
    found: dict[str, Any] = page.evaluate(
        "([within, rules]) => axe.run([...document.querySelectorAll(within)].find(each => each.checkVisibility()), "
        "{runOnly: {type: 'tag', values: rules}, resultTypes: ['violations']})",
        [within, RULES],
    )
    return [
        f"{each['id']}: {each['help']} ({'; '.join(' '.join(node['target']) for node in each['nodes'][:3])})"
        for each in found["violations"]
    ]


def scrolls_sideways(page: Page) -> bool:
    """Whether the page is wider than its window."""
    wide: bool = page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    return wide
