"""The next order in the session of an order, with its settings: for a review, a code host, or work to merge in."""

from __future__ import annotations

from typing import cast

from sqlalchemy.orm import Session

from control_plane.core import Caller
from control_plane.db.drones import Drone
from control_plane.db.orders import Order
from control_plane.db.projects import Project, Provider
from control_plane.db.sessions import ChatSession
from control_plane.operations.orders.submitting import MAX_PROMPT, refuse_task_session
from control_plane.orders.draft import Draft
from control_plane.orders.run_settings import limits_again
from shared.budgets import OnLimit
from shared.errors import Precondition, TooLarge
from shared.work_order import ThinkingLevel


def next_turn(db: Session, caller: Caller, order: Order, text: str) -> Draft:
    """The next order in the session of this one, with its settings.

    Raises TooLarge, Conflict for the session of a task, Precondition if the project or the provider was removed.
    """
    project, session = db.get_one(Project, order.project_id), db.get_one(ChatSession, order.session_id)
    refuse_task_session(session)
    drone = db.get(Drone, order.wanted_drone_id) if order.wanted_drone_id else None
    return Draft(
        project=project,
        provider=_alive_provider(db, order, project),
        session=session,
        prompt=fits(text, MAX_PROMPT),
        user=caller.user,
        user_id=caller.user_id,
        mode=order.mode,
        thinking=cast("ThinkingLevel | None", order.thinking),
        reviewer=db.get(Provider, order.reviewer_id) if order.reviewer_id else None,
        keep_raw=order.keep_raw,
        verify=order.verify,
        own_limits=limits_again(order),
        on_limit=cast("OnLimit", order.on_limit),
        priority=order.priority,
        approve=order.approve,
        allow=order.allow,
        max_attempts=order.max_attempts,
        labels=order.wanted_labels,
        drone_id=drone.id if drone is not None and drone.removed_at is None else None,
    )


def fits(text: str, limit: int) -> str:
    size = len(text.encode())
    if size > limit:
        raise TooLarge(
            f"the review has {size:,} bytes; {limit:,} are allowed in one message",
            code="E-REVIEW-SIZE",
            next="shorten the comments, or remove some and send them in a second review",
        )
    return text


def _alive_provider(db: Session, order: Order, project: Project) -> Provider:
    if project.removed_at is not None:
        raise Precondition(
            f"project {project.slug} of order {order.id} was removed",
            code="E-PROJECT-REMOVED",
            next=f"fleet project add {project.slug} --git-url URL    then submit the order there",
        )
    provider = db.get_one(Provider, order.provider_id)
    if provider.removed_at is not None:
        raise Precondition(
            f"provider {provider.name} of order {order.id} was removed",
            code="E-ORDER-PROVIDER",
            next=f"fleet provider add {provider.name} --model MODEL    or: fleet submit 'TEXT' --project "
            f"{project.slug} --session {order.session_id}",
        )
    return provider
