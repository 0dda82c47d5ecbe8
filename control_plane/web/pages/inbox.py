"""The inbox: everything that waits for a user, then what ended while they were away, or how to begin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from control_plane.contract.declarations.projects import ProjectDocument
from control_plane.contract.declarations.providers import ProviderDocument
from control_plane.contract.documents.orders import OrderSummary
from control_plane.core import Caller, Core
from control_plane.operations import budgets, projects, providers
from control_plane.operations.drones import managing
from control_plane.operations.inbox.listing import list_inbox
from control_plane.operations.orders import reading
from control_plane.operations.tasks import reading as tasks
from control_plane.operations.weaknesses import weaknesses
from control_plane.web.access import CallerDep, CoreDep, is_https
from control_plane.web.pages.frame import frame, frame_for, rights
from control_plane.web.rendering import page, wants_part
from shared.names import new_id
from shared.states import TAKES_WORK, OrderStatus

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
    around = frame(request, caller, "inbox", ["inbox", *(GUIDED_BY if guide else ())])
    since = _since(request.cookies.get(VISIT, ""), core.clock.now())
    ended = reading.ended_orders(core, caller, RECENT, since)
    context = {**around, **_waiting(core, caller), "guide": guide, "since": since, "ended": ended}
    response = page("inbox/page.html", context)
    value = f"{int(since.timestamp()) if since else 0}.{int(core.clock.now().timestamp())}"
    secure = is_https(core, request.scope)
    response.set_cookie(VISIT, value, max_age=YEAR_S, httponly=True, samesite="lax", secure=secure)
    return response


def _waiting(core: Core, caller: Caller) -> dict[str, Any]:
    items = list_inbox(core, caller, limit=SHOWN)
    with core.database.read() as db:
        races = reading.orders_of_groups(db, core, caller, [each.race for each in items if each.race])
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


# --- the steps from an empty fleet to a first order, each ticked when it is done ------------------

GUIDED_BY = ("models", "projects", "fleet", "orders")
"""What changes the guide."""
PROMPT = "Read this repository and add a section to its README that says how to run the tests."
"""The proposed first order: every repository has something to say here, and little can go wrong."""


@dataclass(frozen=True)
class FirstUse:
    """How far the fleet is."""

    models: Sequence[ProviderDocument]
    projects: Sequence[ProjectDocument]
    machines: Sequence[str]
    """Names of drones that accept work."""
    order: OrderSummary | None
    """The newest one."""

    @property
    def ready(self) -> bool:
        """Whether an order could run."""
        return bool(self.models and self.projects and self.machines)

    @property
    def done(self) -> int:
        """Steps."""
        return sum((bool(self.models), bool(self.projects), bool(self.machines), self.order is not None))


def first_use(core: Core, caller: Caller) -> dict[str, Any] | None:
    """The guide; None for a fleet on which an order has ended."""
    ended = (OrderStatus.SUCCEEDED, OrderStatus.FAILED)
    if any(reading.list_orders(core, caller, 1, status=each) for each in ended):
        return None
    return guide_of(core, caller)


def guide_of(core: Core, caller: Caller) -> dict[str, Any]:
    """The guide, however far the fleet is."""
    newest = reading.list_orders(core, caller, 1)
    drones = [each.name for each in managing.list_drones(core, caller) if each.status in TAKES_WORK]
    guide = FirstUse(providers.list_(core, caller), projects.list_(core, caller), drones, newest[0] if newest else None)
    return {"steps": guide, "prompt": PROMPT, "key": new_id()}


@router.get("/first-use")
def show_first_use(request: Request, core: CoreDep, caller: CallerDep) -> Response:
    """The guide, also for a fleet that needs it no more."""
    part = wants_part(request)
    around = frame_for(request, caller, "inbox", GUIDED_BY)
    context = {**around, "guide": guide_of(core, caller)}
    return page("first_use/guide.html" if part else "first_use/page.html", context)
