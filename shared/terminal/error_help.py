"""`help E-…`: the explanation of an error code, from the page that the documents have of all codes."""

from __future__ import annotations

import re
from difflib import get_close_matches
from pathlib import Path

from shared.errors import NotFound

_PACKAGE = Path(__file__).parents[1]
_PAGES = (_PACKAGE / "errors.md", _PACKAGE.parent / "docs" / "errors.md")
"""In an installed distribution, and in a clone."""
_CODE = re.compile(r"[Ee]-[A-Za-z0-9-]+")
_LINK = re.compile(r"\[([^\[\]]+)\]\([^()]*\)")


def is_code(word: str) -> bool:
    """Whether this is written like an error code, in any case."""
    return _CODE.fullmatch(word) is not None


def explanation(code: str) -> str:
    """What the code means and what to do, as plain text. Raises NotFound with similar codes."""
    explained = _explanations()
    wanted = code.upper()
    if wanted not in explained:
        near = get_close_matches(wanted, list(explained))
        raise NotFound(
            f"unknown error code {code[:60]!r}",
            code="E-HELP",
            why=f"did you mean {' or '.join(near)}?" if near else "",
            next="docs/errors.md lists all codes",
        )
    return f"{wanted}\n\n{explained[wanted]}\n"


def _explanations() -> dict[str, str]:
    page = next(path for path in _PAGES if path.exists()).read_text(encoding="utf-8")
    sections = [section.partition("\n") for section in page.split("\n## ")[1:]]
    return {heading.strip(): _LINK.sub(r"\1", text).strip() for heading, _, text in sections}
