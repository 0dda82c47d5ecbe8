"""The browser of tests/browser, for what is measured on pages."""

from tests.browser.conftest import chromium, person, run

__all__ = ["chromium", "person", "run"]
