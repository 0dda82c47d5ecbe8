"""The pages, and what their forms send to."""

from __future__ import annotations

from starlette.routing import BaseRoute

from control_plane.web.forms import actions, bulk
from control_plane.web.pages import (
    agents,
    answer,
    changes,
    compare,
    configuration,
    cost,
    fleet,
    groups,
    inbox,
    login,
    navigation,
    openid,
    orders,
    panels,
    plans,
    settings,
    tasks,
)

# The first route that fits an address is taken: the list of orders and `/orders/new` come before `/orders/{order_id}`.
PAGES = (
    *(login, openid, navigation, inbox),
    *(orders, plans, changes, panels, compare, groups),
    *(tasks, agents, fleet, configuration, cost, settings, answer),
)


def page_routes() -> list[BaseRoute]:
    """All pages, and what their forms send to."""
    return [route for each in (*PAGES, bulk, actions) for route in each.router.routes]
