"""The pages, and what their forms send to."""

from __future__ import annotations

from starlette.routing import BaseRoute

from control_plane.web.forms import actions, bulk
from control_plane.web.pages import (
    agents,
    answer,
    attention,
    automation,
    batches,
    changes,
    compare,
    cost,
    details,
    first_use,
    fleet,
    graphs,
    inbox,
    log,
    login,
    models,
    navigation,
    openid,
    orders,
    plans,
    projects,
    sessions,
    settings,
    tasks,
    transcript,
)

# The first route that fits an address is taken: the list of orders and `/orders/new` come before `/orders/{order_id}`.
PAGES = (
    *(login, openid, navigation, inbox, first_use),
    *(orders, plans, transcript, sessions, changes, log, details, compare, graphs, batches),
    *(tasks, agents, fleet, projects, models, automation, cost, settings, attention, answer),
)


def page_routes() -> list[BaseRoute]:
    """All pages, and what their forms send to."""
    return [route for each in (*PAGES, bulk, actions) for route in each.router.routes]
