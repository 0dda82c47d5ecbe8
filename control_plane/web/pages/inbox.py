"""The inbox: everything that waits for a user, then what ended while they were away, or how to begin."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from control_plane.core import Caller, Core
from control_plane.documents.orders import OrderSummary
from control_plane.operations import budgets
from control_plane.operations.drones import managing
from control_plane.operations.inbox.listing import list_inbox
from control_plane.operations.orders import reading
from control_plane.operations.tasks import reading as tasks
from control_plane.operations.weaknesses import weaknesses
from control_plane.web.access import CallerDep, CoreDep, is_https
from control_plane.web.pages.first_use import TOPICS as FIRST_USE
from control_plane.web.pages.first_use import first_use
from control_plane.web.pages.frame import frame, rights
from control_plane.web.rendering import page, wants_part

router = APIRouter(include_in_schema=False)
SHOWN = 100
RECENT = 20
VISIT = "fleet-visit"
"""Cookie of this browser: when the visit before the present one ended, and when it last looked."""
AWAY = timedelta(minutes=30)
YEAR_S = 365 * 86400
LONGEST = 40


@router.get("/")
def inbox(request: Request, core: CoreDep, caller: CallerDep) -> Response:
    """What waits, then what ended since the last visit."""
    if wants_part(request):
        return page("inbox/waiting.html", {**rights(core, caller), **_waiting(core, caller)})
    guide = first_use(core, caller)
    around = frame(request, caller, "inbox", ["inbox", *(FIRST_USE if guide else ())])
    since = _since(request.cookies.get(VISIT, ""), core.clock.now())
    context = {**around, **_waiting(core, caller), "guide": guide, "since": since, "ended": _ended(core, caller, since)}
    response = page("inbox/page.html", context)
    value = f"{int(since.timestamp()) if since else 0}.{int(core.clock.now().timestamp())}"
    secure = is_https(core, request.scope)
    response.set_cookie(VISIT, value, max_age=YEAR_S, httponly=True, samesite="lax", secure=secure)
    return response


def _waiting(core: Core, caller: Caller) -> dict[str, Any]:
    items = list_inbox(core, caller, limit=SHOWN)
    races = reading.orders_of_groups(core, caller, [each.race for each in items if each.race])
    drones = managing.list_drones(core, caller) if any(each.kind == "drone" for each in items) else []
    failed = (
        tasks.list_(core, caller, status="failed", limit=SHOWN) if any(each.kind == "task" for each in items) else []
    )
    return {
        "items": items,
        "failed": {each.id for each in failed},
        "candidates": {race: [each for each in orders if each.head_commit] for race, orders in races.items()},
        "draining": {each.name for each in drones if each.draining},
        "weaknesses": weaknesses(core),
        "pressing": budgets.pressing(core, caller.organization_id),
    }


def _since(cookie: str, now: datetime) -> datetime | None:
    """When the visit before this one ended; None: this is the first visit of this browser."""
    ended, _, looked = cookie.partition(".")
    if not (ended.isdecimal() and looked.isdecimal() and len(cookie) <= LONGEST):
        return None
    last = datetime.fromtimestamp(min(int(looked), now.timestamp()), UTC)
    if now - last > AWAY:
        return last
    return datetime.fromtimestamp(min(int(ended), now.timestamp()), UTC) if int(ended) else None


def _ended(core: Core, caller: Caller, since: datetime | None) -> Sequence[OrderSummary]:
    """The newest orders that ended since then."""
    ended = [each for each in reading.list_orders(core, caller, RECENT * 2) if each.ended_at]
    return [each for each in ended if since is None or each.ended_at is None or each.ended_at > since][:RECENT]
