"""What a comment asks of the fleet: its text, if it addresses the fleet outside of quotations and code."""

from __future__ import annotations

import re

from control_plane.teams.tags import without_code

_FENCE = re.compile(r"^ {0,3}(```+|~~~+)")


def request_in(text: str, mention: str) -> str | None:
    """The comment without the mention; None if it does not address the fleet.

    A quotation (`> @fleet`), code, and a longer word (`@fleet-admins`, `me@fleet.org`) are no mention.
    """
    word = re.compile(rf"(?<![\w`@/.+-]){re.escape(mention)}(?![\w-])(?!\.\w)", re.IGNORECASE)
    if not word.search(_without_quotes(text)):
        return None
    lines = text.replace("\r\n", "\n").strip()
    first = word.sub("", lines, count=1) if word.match(lines) else lines
    return first.strip(" \t,:\n") or lines


def _without_quotes(text: str) -> str:
    """The text without quotations and code, in which nothing is addressed to the reader."""
    kept: list[str] = []
    fence = ""
    for line in text.splitlines():
        found = _FENCE.match(line)
        if fence:
            fence = "" if found and found[1].startswith(fence) else fence
        elif found:
            fence = found[1]
        elif not line.lstrip().startswith(">") and not line.startswith(("    ", "\t")):
            kept.append(line)
    return without_code("\n".join(kept))
