"""Pages from templates: every inserted value is escaped and has nothing hidden, times and figures are in words."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import HTMLResponse

from shared.durations import duration_label
from shared.terminal.ansi import safe_lines, uncolored
from shared.terminal.output import iso
from shared.visible_text import visible, visible_prose

TEMPLATES = Path(__file__).parent / "templates"
SHOWN_PATCH_LINES = 3000


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
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        ago=ago,
        clock=clock,
        duration=duration_label,
        iso=iso,
        money=money,
        output_text=output_text,
        patch_lines=patch_lines,
        visible=visible,
        words=words,
    )
    return environment


def _shown(value: object) -> object:
    """Every inserted text without hidden characters; markup stays, because its texts have been through here."""
    return visible_prose(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


# --- filters ---------------------------------------------------------------------------------------


def output_text(output: str) -> str:
    """The output of a command as a terminal would show it at the end: without codes and overwritten text."""
    return "\n".join(map(uncolored, safe_lines(output)))


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
    """Each line of a patch with the kind that colours it: file, hunk, add, del or same.

    A line ends at a line feed only, as for git: anything else that looks like an end of line is marked.
    """
    shown, in_hunk = [], False
    for line in map(visible, patch.removesuffix("\n").split("\n")[:SHOWN_PATCH_LINES]):
        # "--- " names a file only outside a hunk; inside, it is a line that began with two dashes.
        in_hunk = line.startswith("@@") or (in_hunk and not line.startswith("diff "))
        shown.append((_IN_HUNK.get(line[:1], "same") if in_hunk else "file", line))
    return shown


_IN_HUNK = {"@": "hunk", "+": "add", "-": "del"}
