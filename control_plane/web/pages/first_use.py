"""The steps from an empty fleet to a first order, each ticked when it is done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from control_plane.core import Caller, Core
from control_plane.declarations.projects import ProjectDocument
from control_plane.declarations.providers import ProviderDocument
from control_plane.documents.orders import OrderSummary
from control_plane.operations import projects, providers
from control_plane.operations.drones import managing
from control_plane.operations.orders import reading
from control_plane.web.access import CallerDep, CoreDep
from control_plane.web.pages.frame import frame_for
from control_plane.web.rendering import page, wants_part
from shared.names import new_id
from shared.states import TAKES_WORK, OrderStatus

router = APIRouter(include_in_schema=False)
TOPICS = ("models", "projects", "fleet", "orders")
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
    around = frame_for(request, caller, "inbox", TOPICS)
    context = {**around, "guide": guide_of(core, caller)}
    return page("first_use/guide.html" if part else "first_use/page.html", context)
