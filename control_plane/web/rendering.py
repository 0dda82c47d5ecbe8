"""Pages from templates: every inserted value is escaped, times and figures are in words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse

from shared.durations import duration_label
from shared.terminal.output import iso

TEMPLATES = Path(__file__).parent / "templates"
SHOWN_PATCH_LINES = 3000
_CONTROL = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours and cursor movements
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles and links
    r"|\x1b[@-Z\\-_]"
    r"|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
)


def page(
    name: str, context: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None
) -> HTMLResponse:
    """The template `name` filled with `context`."""
    return HTMLResponse(environment().get_template(name).render(context), status, headers)


def error_page(problem: Mapping[str, Any], headers: Mapping[str, str]) -> HTMLResponse:
    """A problem document as a page: the same four parts."""
    return page("error.html", {"problem": problem, "caller": None}, problem["status"], headers)


@cache
def environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        ago=ago,
        clock=clock,
        duration=duration_label,
        iso=iso,
        money=money,
        patch_lines=patch_lines,
        plain=plain,
        words=words,
    )
    return environment


# --- filters ---------------------------------------------------------------------------------------


def plain(text: str) -> str:
    """`text` as a page can show it: without terminal codes, and with only the last state of an overwritten line."""
    lines = (line.rstrip("\r").rpartition("\r")[2] for line in _CONTROL.sub(_keep_breaks, text).split("\n"))
    return "\n".join(lines)


def _keep_breaks(found: re.Match[str]) -> str:
    # "Erase the line" is how progress bars return to its start.
    return "\r" if found.group().endswith("K") else ""


def ago(moment: datetime | None, now: datetime) -> str:
    """How long since `moment`: `3 s ago`, `5 min ago`, `2 h ago`, `4 d ago`; `never` for None."""
    if moment is None:
        return "never"
    seconds = max(0, int((now - moment).total_seconds()))
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit} ago"
    return f"{seconds} s ago"


def clock(moment: datetime | None) -> str:
    """The time of day, UTC."""
    return moment.strftime("%H:%M:%S") if moment else ""


def money(usd: float | None) -> str:
    """`$0.0312`; an unknown price is not zero."""
    if usd is None:
        return "price unknown"
    return f"${usd:.2f}" if usd == 0 or usd >= 1 else f"${usd:.4f}"


def words(status: str) -> str:
    """A state as people read it: `awaiting approval`."""
    return status.replace("_", " ")


def patch_lines(patch: str) -> list[tuple[str, str]]:
    """Each line of a patch with the kind that colours it: file, hunk, add, del or same."""
    shown, in_hunk = [], False
    for line in plain(patch).removesuffix("\n").split("\n")[:SHOWN_PATCH_LINES]:
        # "--- " names a file only outside a hunk; inside, it is a line that began with two dashes.
        in_hunk = line.startswith("@@") or (in_hunk and not line.startswith("diff "))
        shown.append((_IN_HUNK.get(line[:1], "same") if in_hunk else "file", line))
    return shown


_IN_HUNK = {"@": "hunk", "+": "add", "-": "del"}
