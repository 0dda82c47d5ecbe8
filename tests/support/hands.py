"""A user's hands in a browser: the same acts by mouse, and by a keyboard alone."""

from __future__ import annotations

from dataclasses import dataclass

from playwright.sync_api import Locator, Page

_MOST_STEPS = 400
"""Of the Tab key, after which a target counts as unreachable."""
_HAS_FOCUS = "element => element === document.activeElement"


@dataclass
class Mouse:
    """Clicks and types, and counts both."""

    page: Page
    count: int = 0

    def press(self, target: Locator) -> None:
        """Press a link, a button or what opens a menu."""
        target.click()
        self.count += 1

    def write(self, target: Locator, text: str) -> None:
        """Replace what a field contains."""
        target.fill(text)
        self.count += 1

    def choose(self, target: Locator, label: str) -> None:
        """Choose an option of a list by the beginning of its label."""
        value = target.locator("option", has_text=label).first.get_attribute("value")
        target.select_option(value)
        self.count += 1


class Keyboard(Mouse):
    """Goes from element to element with Tab, as a user without a mouse does."""

    def press(self, target: Locator) -> None:
        self._reach(target)
        self.page.keyboard.press("Enter")
        self.count += 1

    def write(self, target: Locator, text: str) -> None:
        self._reach(target)
        self.page.keyboard.press("Control+A")
        self.page.keyboard.type(text)
        self.count += 1

    def choose(self, target: Locator, label: str) -> None:
        self._reach(target)
        self.page.keyboard.type(label)
        self.count += 1

    def _reach(self, target: Locator) -> None:
        target.wait_for()
        for _ in range(_MOST_STEPS):
            if target.evaluate(_HAS_FOCUS):
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"Tab does not reach {target}")
