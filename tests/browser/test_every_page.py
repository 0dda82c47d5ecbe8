"""What holds on every page: no accessibility problem, no error, nothing from elsewhere, no sideways scrolling."""

from __future__ import annotations

from typing import Literal

import pytest
from sqlalchemy import update

from control_plane.db.drones import Drone
from control_plane.db.orders import Order
from control_plane.db.projects import Project
from control_plane.db.teams import Task
from control_plane.lookups.organizations import system_caller
from tests.browser.conftest import Person, first_of
from tests.support.axe import need_axe, scrolls_sideways, violations
from tests.support.filled import fill

PAGES = (
    "/",
    "/first-use",
    "/tasks",
    "/tasks?view=list",
    "/agents",
    "/orders",
    "/orders/new",
    "/orders/{orders}",
    "/orders/{orders}?panel=log",
    "/orders/{orders}?panel=details",
    "/orders/{orders}/changes",
    "/orders/{orders}/checks",
    "/compare?order={orders}",
    "/graphs",
    "/graphs/{graphs}",
    "/batches",
    "/batches/{batches}",
    "/batches/{batches}/compare?other={batches}",
    "/sessions",
    "/sessions/{sessions}",
    "/tasks/{tasks}",
    "/agents/{agents}",
    "/actions/add_project",
    "/actions/create_schedule",
    "/fleet",
    "/fleet/{drones}",
    "/projects",
    "/models",
    "/automation",
    "/automation/webhooks/{webhooks}",
    "/automation/hosts/{code-hosts}",
    "/cost?range=all",
    "/settings",
    "/settings/access",
    "/settings/attention",
    "/settings/audit",
    "/settings/health",
    "/actions/set_budget",
    "/actions/create_join_token",
    "/actions/edit_project?slug={projects}",
)
WIDTHS = (320, 375, 1280, 1920)
LONG = "x<img src=x onerror=alert(1)>\u202eevil" + "W" * 200


@pytest.mark.timeout(900)
@pytest.mark.parametrize("look", first_of(("light", (320,)), ("light", WIDTHS), ("dark", WIDTHS)), ids=str)
def test_no_page_has_an_accessibility_problem_or_is_too_wide(
    person: Person, look: tuple[Literal["light", "dark"], tuple[int, ...]]
) -> None:
    """Whatever the texts are."""
    need_axe()
    filled = fill(person.api, system_caller(person.api.core), "mark")
    with person.api.core.database.write() as db:
        db.execute(update(Drone).values(version=LONG[:30], host=LONG))
        db.execute(update(Project).values(description=LONG))
        db.execute(update(Order).values(prompt=LONG))
        db.execute(update(Task).values(title=LONG, description=LONG))
    page, (scheme, widths) = person.page, look
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    found = []
    for path in PAGES:
        for width in widths:
            page.set_viewport_size({"width": width, "height": 800})
            answer = page.goto(person.api.url + path.format(**filled.names))
            assert answer is not None
            assert answer.ok, path
            found += [f"{path} at {width}: {each}" for each in violations(page)]
            found += [f"{path} at {width}: wider than the window"] if scrolls_sideways(page) else []
            assert page.locator("img[src=x]").count() == 0
    assert found == [], "\n".join(found)
