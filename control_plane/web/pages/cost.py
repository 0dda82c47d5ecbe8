"""What runs have spent, as charts with tables, and the budgets."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, get_args
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Request
from starlette.responses import Response

from control_plane.contract.declarations.costs import By, CostDocument, CostFilter
from control_plane.contract.validation.invalid_requests import checked
from control_plane.core import Caller, Core
from control_plane.operations import budgets, costs
from control_plane.web.access import CallerDep, CoreDep
from control_plane.web.pages.frame import frame_for
from control_plane.web.problems import problem_of
from control_plane.web.rendering import page, wants_part
from shared.errors import Invalid

router = APIRouter(include_in_schema=False)
DAYS = 30
RANGES = (("7", "7 days"), ("30", "30 days"), ("90", "90 days"), ("all", "all time"))
DIMENSIONS: Sequence[By] = tuple(each for each in get_args(By) if each != "day")
MOST_DAYS = 120
"""More of them would be bars too thin to read."""
COLUMNS = ("by", "name", "id", "spent_usd", "reserved_usd", "runs", "unknown_costs")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True)
class CostView:
    """What the address asks for."""

    range: str = str(DAYS)
    since: str = ""
    until: str = ""
    zone: str = "UTC"

    @classmethod
    def of(cls, query: Mapping[str, str]) -> CostView:
        given = {name: query[name].strip()[:64] for name in ("range", "since", "until", "zone") if query.get(name)}
        return cls(**given)

    def filter(self, now: datetime) -> dict[str, Any]:
        """The filter of the operation. Raises Invalid."""
        since = self.since or self._from(now)
        given = {"since": since or None, "until": self.until or None, "zone": self.zone}
        return checked(CostFilter, given, form="correct the address").model_dump(exclude={"by"})

    def address(self, path: str, **more: str) -> str:
        return f"{path}?{urlencode({name: value for name, value in {**asdict(self), **more}.items() if value})}"

    def _from(self, now: datetime) -> str:
        if not self.range.isdecimal() or self.until:
            return ""
        try:
            today = now.astimezone(ZoneInfo(self.zone)).date()
            return (today - timedelta(days=int(self.range[:5]) - 1)).isoformat()
        except (KeyError, ValueError, OverflowError):
            # An unknown zone is refused with a sentence by the operation.
            return ""


@router.get("/cost")
def cost(request: Request, core: CoreDep, caller: CallerDep) -> Response:
    """Cost by day and by everything else, in the range and zone that the address names."""
    part = wants_part(request)
    around = frame_for(request, caller, "cost", ["cost"])
    view, problem = CostView.of(request.query_params), None
    try:
        shown = _shown(core, caller, view)
    except Invalid as error:
        problem, view = problem_of(request.scope, error).model_dump(), CostView()
        shown = _shown(core, caller, view)
    context = {**around, **shown, "view": view, "ranges": RANGES, "problem": problem}
    context["part"] = view.address("/cost")
    return page("cost/charts.html" if part else "cost/page.html", context, problem["status"] if problem else 200)


@router.get("/cost.csv")
def cost_csv(request: Request, core: CoreDep, caller: CallerDep) -> Response:
    """The same sums as rows for a spreadsheet. Raises Invalid."""
    given = CostView.of(request.query_params).filter(core.clock.now())
    rows = [each for by in ("day", *DIMENSIONS) for each in costs.list_(core, caller, by=by, **given)]
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    writer.writerows([_cell(getattr(each, name)) for name in COLUMNS] for each in rows)
    headers = {"Content-Disposition": 'attachment; filename="cost.csv"', "Cache-Control": "no-store"}
    return Response(text.getvalue(), headers=headers, media_type="text/csv; charset=utf-8")


def _cell(value: object) -> object:
    """A text that a spreadsheet does not take for a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def _shown(core: Core, caller: Caller, view: CostView) -> dict[str, Any]:
    given = view.filter(core.clock.now())
    days = costs.list_(core, caller, by="day", **given)
    sums = {by: costs.list_(core, caller, by=by, **given) for by in DIMENSIONS if by != "organization"}
    return {
        "days": days,
        "chart": _chart(days, given, core.clock.now()),
        "sums": {by: _shares(found) for by, found in sums.items()},
        "total": sum(each.spent_usd for each in days),
        "reserved": sum(each.reserved_usd for each in days),
        "unknown": sum(each.unknown_costs for each in days),
        "budgets": budgets.list_(core, caller),
    }


def _chart(days: Sequence[CostDocument], given: Mapping[str, Any], now: datetime) -> _Bars | None:
    """A bar for each day of the range, also for those without cost."""
    if not any(each.spent_usd for each in days):
        return None
    spent = {each.name or "": each.spent_usd for each in days}
    zone = str(given["zone"])
    first = _day(given["since"] or min(spent), zone)
    last = _day(given["until"] or max(*spent, _today(now, zone)), zone)
    first = max(first, last - timedelta(days=MOST_DAYS - 1))
    dates = [(first + timedelta(days=n)).isoformat() for n in range((last - first).days + 1)]
    return _bars_of_days([(each, spent.get(each, 0.0)) for each in dates])


def _day(text: str, zone: str) -> date:
    """Of a day, or of a time in any form that the operation takes: the day in the zone."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is not None:
        # The first and the last day that a date can be have no day before or after them.
        with suppress(OverflowError):
            moment = moment.astimezone(ZoneInfo(zone))
    return moment.date()


def _today(now: datetime, zone: str) -> str:
    return now.astimezone(ZoneInfo(zone) if zone != "UTC" else UTC).date().isoformat()


# --- bars as positions in a drawing: a template draws them, beside a table with the same numbers --

_WIDTH, _HEIGHT = 720, 160
_GAP = 0.25
"""Part of a bar's place that stays empty."""
_LABELS = 6


@dataclass(frozen=True)
class _Bar:
    """One bar, in the drawing's units; `height` 0 is no bar."""

    label: str
    value: float
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class _Bars:
    """A chart: its bars, the labels below it, and the lines behind it with their values."""

    bars: Sequence[_Bar]
    labels: Sequence[tuple[float, str]]
    lines: Sequence[tuple[float, str]]
    width: int = _WIDTH
    height: int = _HEIGHT


def _bars_of_days(days: Sequence[tuple[str, float]]) -> _Bars:
    """A bar for each day."""
    top = _nice_top(max(value for _, value in days))
    place = _WIDTH / len(days)
    bars = [_bar(n, name, value, top, place) for n, (name, value) in enumerate(days)]
    every = math.ceil(len(days) / _LABELS)
    labels = [(bar.x + bar.width / 2, _short(bar.label)) for bar in bars[::every]]
    lines = [(_HEIGHT * (1 - part), f"${top * part:g}") for part in (0.0, 0.5, 1.0)]
    return _Bars(bars, labels, lines)


def _nice_top(value: float) -> float:
    """The next of 1, 2, 5, 10, … that is not below the value: where the axis ends."""
    if value <= 0:
        return 1.0
    scale = 10.0 ** math.floor(math.log10(value))
    return next(step * scale for step in (1, 2, 5, 10) if step * scale >= value * 0.999999)


def _shares(sums: Sequence[CostDocument]) -> list[tuple[CostDocument, float, float]]:
    """Each sum with what was spent and what is reserved, in percent of the largest of both together."""
    largest = max((each.spent_usd + each.reserved_usd for each in sums), default=0.0) or 1.0
    return [(each, 100 * each.spent_usd / largest, 100 * each.reserved_usd / largest) for each in sums]


def _bar(number: int, name: str, value: float, top: float, place: float) -> _Bar:
    height = max(1.0, _HEIGHT * value / top) if value > 0 else 0.0
    return _Bar(
        name, value, round(place * (number + _GAP / 2), 2), round(_HEIGHT - height, 2), place * (1 - _GAP), height
    )


def _short(day: str) -> str:
    """`2026-11-25` as `11-25`."""
    return day[5:]
