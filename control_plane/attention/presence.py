"""Whether a user has one of the pages in front: visible, in a window with the focus.

Pages say so every few seconds. What they said is kept in Redis, so that all processes of the control plane know it, and
expires: a browser that crashes says nothing.
"""

from __future__ import annotations

from control_plane.core import Core
from shared.errors import FleetFault

NEXT_PAGE_S = 5
LASTS_S = 30
"""How long one report counts; pages repeat it twice within this time."""


def page_in_front(core: Core, organization_id: str, user_id: str, page: str) -> None:
    """Record that this page, a random name that it chose, is in front now."""
    key, until = _key(organization_id, user_id), core.clock.now().timestamp() + LASTS_S
    with core.broker.reaching():
        core.broker.redis.zadd(key, {page: until})
        core.broker.redis.expire(key, 2 * LASTS_S)


def page_left(core: Core, organization_id: str, user_id: str, page: str) -> None:
    """Record that this page is no longer in front. It counts for some seconds more: the next page may be loading."""
    until = core.clock.now().timestamp() + NEXT_PAGE_S
    with core.broker.reaching():
        core.broker.redis.zadd(_key(organization_id, user_id), {page: until}, xx=True)


def is_present(core: Core, organization_id: str, user_id: str) -> bool:
    """Whether a page of this organization is in front of the user. False if Redis is unavailable: better told twice."""
    now = core.clock.now().timestamp()
    try:
        with core.broker.reaching():
            return bool(core.broker.redis.zcount(_key(organization_id, user_id), f"({now}", "+inf"))
    except FleetFault:
        return False


def _key(organization_id: str, user_id: str) -> str:
    return f"fleet:presence:{organization_id}:{user_id}"
