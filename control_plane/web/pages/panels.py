"""The panels beside a conversation (checks, log, inspector): each is a part of its page, and a page of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from markupsafe import Markup
from starlette.responses import Response

from control_plane.contract.documents.orders import OrderSummary
from control_plane.core import Caller, Core
from control_plane.operations.orders import reading
from control_plane.operations.orders.logs import LogLine, LogPart, OrderLog, lines_of, log_of_order, search
from control_plane.operations.orders.step_reading import StepRange, read_runs, read_steps
from control_plane.operations.orders.trajectories import sent_for
from control_plane.web.access import CallerDep, CoreDep
from control_plane.web.conversation.calls import ShownCall
from control_plane.web.conversation.grouping import body_of
from control_plane.web.conversation.view import checks_of
from control_plane.web.conversation.waterfall import KINDS, waterfall_of
from control_plane.web.markup.terminal import terminal_line, terminal_lines
from control_plane.web.pages.frame import frame, rights
from control_plane.web.presentation import title
from control_plane.web.rendering import page, wants_part

router = APIRouter(prefix="/orders", include_in_schema=False)


def panel_page(
    request: Request, caller: Caller, order: OrderSummary, name: str, context: Mapping[str, Any]
) -> Response:
    """The panel `session/<name>.html`, alone if a script asks for it."""
    core: Core = request.app.state.core
    if wants_part(request):
        return page(f"session/{name}.html", {**rights(core, caller), "order": order, **context})
    around = frame(request, caller, "orders", [f"order:{order.id}"])
    shown = {"order": order, "title": title(order), "panel": name, **context}
    return page("session/panel_page.html", {**around, **shown})


@router.get("/{order_id}/checks")
def order_checks(request: Request, core: CoreDep, caller: CallerDep, order_id: str) -> Response:
    """The project's own commands, as they came out in their last round."""
    order = reading.order_summary(core, caller, order_id)
    checks = [body for step in checks_of(core, caller, order) if (body := body_of(step.model_dump()))]
    shown = [(check, terminal_lines(getattr(check, "output", ""))) for check in checks]
    return panel_page(request, caller, order, "checks", {"shown_checks": shown})


# --- the log: pages of numbered lines, folded by call, with a search on the server ----------------

PAGE_LINES = 250
MOST_PARTS = 60
"""Calls on one page: many have a line or two."""
Number = Annotated[int, Query(ge=0, le=2**53)]
Text = Annotated[str, Query(max_length=200)]


@dataclass(frozen=True)
class ShownLine:
    """A line with its colours."""

    number: int
    html: Markup
    left_out: int

    @classmethod
    def of(cls, line: LogLine) -> ShownLine:
        return cls(line.number, terminal_line(line.text), line.left_out)


@dataclass(frozen=True)
class ShownPart:
    """A call with those of its lines that are on the page."""

    part: LogPart
    gist: str
    lines: list[ShownLine]


@router.get("/{order_id}/log")
def show_log(  # noqa: PLR0913, PLR0917 - the parts of an address
    request: Request,
    core: CoreDep,
    caller: CallerDep,
    order_id: str,
    line: Number = 0,
    call: Number = 0,
    text: Text = "",
    after: Number = 0,
    end: bool = False,
) -> Response:
    """A page of the log: the one with a line or a call, the last one of a running order, or what a search finds.

    With `end`, the last one also if the order has ended: a page that follows the log shows how it ends.
    """
    order = reading.order_summary(core, caller, order_id)
    log = log_of_order(core, caller, order.id)
    ended = order.ended_at is not None
    first = _first(log, line, call, at_end=end or not ended)
    shown: dict[str, Any] = {
        "log": log,
        "text": text,
        "matches": None,
        "parts": [],
        "first": first,
        "previous": _first_of_page(log, first - 1),
    }
    if text:
        matches = search(core, caller, order.id, text, after)
        shown |= {"matches": [ShownLine.of(each) for each in matches.lines], "more": matches.more}
    else:
        shown["parts"] = _parts(core, caller, order.id, log, first)
    last = next((part.lines[-1].number for part in reversed(shown["parts"])), 0)
    follows = not ended and last == log.lines and not text
    shown |= {"last": last, "follows": follows, "at_end": end or follows}
    return panel_page(request, caller, order, "log", shown)


def _first(log: OrderLog, line: int, call: int, *, at_end: bool) -> int:
    """The first line of the page."""
    of_call = next((part.first for part in log.parts if part.seq >= call), 1) if call else 0
    wanted = line or of_call or (_first_of_page(log, log.lines) if at_end else 1)
    return max(1, min(wanted, log.lines))


def _first_of_page(log: OrderLog, last: int) -> int:
    """The first line of the page that ends with this one."""
    parts = log.parts[: log.part_with(last) + 1][-MOST_PARTS:]
    return max(1, last - PAGE_LINES + 1, *(part.first for part in parts[:1]))


def _parts(core: Core, caller: Caller, order_id: str, log: OrderLog, first: int) -> list[ShownPart]:
    wanted: list[tuple[LogPart, range]] = []
    end = first + PAGE_LINES
    for part in log.parts[log.part_with(first) :][:MOST_PARTS]:
        if part.first >= end:
            break
        wanted.append((part, range(max(first, part.first), min(part.last + 1, end))))
    return [
        ShownPart(
            part,
            ShownCall(seq=part.seq, tool=part.tool, arguments=part.arguments).gist,
            [ShownLine.of(each) for each in lines],
        )
        for part, lines in lines_of(core, caller, order_id, wanted)
    ]


# --- the inspector: calls, tools and waits over time, tokens and cost per step, attempts ----------

MOST_ROWS = 120
MOST_SENT = 400
"""Messages in one dialog."""


@router.get("/{order_id}/details")
def show_details(
    request: Request,
    core: CoreDep,
    caller: CallerDep,
    order_id: str,
    before: Annotated[int, Query(ge=1, le=2**53)] = 2**53,
) -> Response:
    """The newest steps with their times; `before` is the step that the page before this one began with."""
    order = reading.order_summary(core, caller, order_id)
    limits = reading.limits_of(core, caller, order.id)
    wanted = StepRange(before=before, kinds=KINDS, limit=MOST_ROWS, newest=True)
    steps = read_steps(core, caller, order.id, wanted)
    shown: dict[str, Any] = {
        "rows": waterfall_of(steps),
        "runs": read_runs(core, caller, order.id),
        "earlier": steps[0].seq if len(steps) == MOST_ROWS else None,
        "limits": limits,
        "is_newest": before == 2**53,
    }
    return panel_page(request, caller, order, "details", shown)


@router.get("/{order_id}/details/sent")
def show_sent(
    request: Request, core: CoreDep, caller: CallerDep, order_id: str, step: Annotated[int, Query(ge=1, le=2**53)]
) -> Response:
    """What the model was sent for the answer in a step, for a dialog."""
    order = reading.order_summary(core, caller, order_id)
    sent = sent_for(core, caller, order.id, step)
    shown: dict[str, Any] = {"step": step, "sent": sent[-MOST_SENT:], "left_out": max(0, len(sent) - MOST_SENT)}
    return panel_page(request, caller, order, "sent", shown)
