"""Pages from templates: every inserted value is escaped and has nothing hidden, times and figures are in words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse

from control_plane.web import presentation
from control_plane.web.assets import asset
from control_plane.web.forms.commands import command_for
from control_plane.web.markup.terminal import terminal_lines
from shared.durations import duration_label
from shared.terminal.output import iso
from shared.visible_text import visible, visible_prose

TEMPLATES = Path(__file__).parent / "templates"
PART = "text/x-part"
"""What our scripts accept."""
PAGE_ORGANIZATION = "page_organization"
"""Field of every form that posts: the name of the organization that its page shows."""
_FORM = re.compile(r"<form [^<>]*>")


def page(
    name: str, context: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None
) -> HTMLResponse:
    """The template `name` filled with `context`, whose forms send for which organization it was filled."""
    html, caller = str(rendered(name, context)), context.get("caller")
    if caller is not None:
        field = f'<input type="hidden" name="{PAGE_ORGANIZATION}" value="{escape(caller.organization)}">'
        html = _FORM.sub(lambda form: form[0] + field if 'method="post"' in form[0] else form[0], html)
    return HTMLResponse(html, status, headers)


def rendered(name: str, context: Mapping[str, Any]) -> Markup:
    """The template `name` filled with `context`, as a part of a page."""
    return Markup(environment().get_template(name).render(context))  # noqa: S704 - the template has escaped its values


def wants_part(request: Request) -> bool:
    """Whether a page of ours asks for one of its parts, or for a form in a dialog, and not for a whole page."""
    return request.headers.get("accept", "") == PART


def error_page(problem: Mapping[str, Any], headers: Mapping[str, str]) -> HTMLResponse:
    """A problem document as a page: the same four parts."""
    return page("error.html", {**BARE, "problem": problem}, problem["status"], headers)


BARE: Mapping[str, Any] = {"caller": None, "counts": None, "now": None, "versions": None}
"""The context of a page outside the frame."""


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
        duration=duration_label,
        iso=iso,
        money=money,
        terminal_lines=terminal_lines,
        visible=visible,
        words=presentation.words,
        moment=presentation.moment,
        sentence=presentation.sentence,
        shown_state=presentation.shown_state,
        state_kind=presentation.state_kind,
        title_of=presentation.title,
    )
    environment.globals["asset"] = asset
    environment.globals["command_for"] = command_for
    # Macros, for every template without an import.
    environment.globals["ui"] = environment.get_template("macros.html").module
    return environment


def _shown(value: object) -> object:
    """Every inserted text without hidden characters; markup stays, because its texts have been through here."""
    return visible_prose(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


# --- filters ---------------------------------------------------------------------------------------


def money(usd: float | None) -> str:
    """`$0.0312`; an unknown price is not zero."""
    if usd is None:
        return "price unknown"
    return f"${usd:.2f}" if usd == 0 or usd >= 1 else f"${usd:.4f}"
