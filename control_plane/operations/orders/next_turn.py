"""Another order with the settings of an order: the next one in its session, for a review, a code host, or work to
merge in; or the request for one that begins anew."""

from __future__ import annotations

from typing import cast

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.contract.declarations.orders import SubmitRequest
from control_plane.contract.validation.checks import shown
from control_plane.core import Caller, Core
from control_plane.core.lookups.ids import full_order_id
from control_plane.db.drones import Drone
from control_plane.db.orders import Order
from control_plane.db.projects import Project, Provider
from control_plane.db.sessions import ChatSession
from control_plane.operations.orders.submitting import MAX_PROMPT, refuse_task_session
from control_plane.orders.draft import MAX_ATTEMPTS, Draft, as_asked
from control_plane.orders.reviewers import NO_REVIEWER, reviewer_again, reviewer_by_default
from control_plane.orders.run_settings import limits_again
from shared.budgets import OnLimit
from shared.errors import NotFound, Precondition, TooLarge
from shared.work_order import Approve, ThinkingLevel

_LEAST_STRICT_FIRST = ("yolo", "risky", "all")
"""The approval modes."""


def next_turn(db: Session, caller: Caller, order: Order, text: str) -> Draft:
    """The next order in the session of this one, with its settings.

    Its approval mode is the stricter one of order and session, and its allowed commands are those of the session.

    Raises TooLarge, Conflict for the session of a task, Precondition if the project or the provider was removed.
    """
    session = db.get_one(ChatSession, order.session_id)
    refuse_task_session(session)
    project = alive_project(db, order)
    drone = db.get(Drone, order.wanted_drone_id) if order.wanted_drone_id else None
    return Draft(
        project=project,
        provider=alive_provider(db, order, project),
        session=session,
        prompt=fits(text, MAX_PROMPT),
        user=caller.user,
        user_id=caller.user_id,
        mode=order.mode,
        thinking=cast("ThinkingLevel | None", order.thinking),
        reviewer=reviewer_again(db, order, project),
        as_asked=as_asked(order),
        verify=order.verify,
        own_limits=limits_again(order),
        on_limit=cast("OnLimit", order.on_limit),
        priority=order.priority,
        # The session may have been restricted since. The order's commands include those that it allowed then.
        approve=max(order.approve, session.approve or "yolo", key=_LEAST_STRICT_FIRST.index),
        max_attempts=order.max_attempts,
        labels=order.wanted_labels,
        drone_id=drone.id if drone is not None and drone.removed_at is None else None,
    )


def request_again(core: Core, caller: Caller, order_id: str) -> SubmitRequest:
    """The request for the same work in a session of its own: the whole prompt, and all that the order itself says.

    What was removed meanwhile is named all the same, so that submitting it says so. Raises NotFound.
    """
    with core.database.read() as db:
        order = db.scalar(
            select(Order).where(
                Order.id == full_order_id(db, caller, order_id), Order.organization_id == caller.organization_id
            )
        )
        if order is None:
            raise NotFound(f"order {shown(order_id)} not found", code="E-ORDER-404", next="fleet orders")
        project = db.get_one(Project, order.project_id)
        drone = db.get(Drone, order.wanted_drone_id) if order.wanted_drone_id else None
        reviewer = db.get(Provider, order.reviewer_id) if order.reviewer_id else None
        unreviewed = NO_REVIEWER if reviewer_by_default(db, project) is not None else None
        limits = dict(limits_again(order).values)
        own = {name: limits.pop(name) for name in tuple(limits) if name in SubmitRequest.model_fields}
        return SubmitRequest.model_construct(
            prompt=order.prompt,
            project=project.slug,
            provider=db.get_one(Provider, order.provider_id).name,
            drone=drone.name if drone is not None else None,
            labels=order.wanted_labels,
            after=order.after,
            base=order.wanted_commit,
            mode=order.mode,
            thinking=cast("ThinkingLevel | None", order.thinking),
            profile=order.profile,
            reviewer=reviewer.name if reviewer is not None else unreviewed,
            priority=order.priority,
            limits=limits,
            on_limit=cast("OnLimit", order.on_limit),
            plan_first=order.plan_first,
            verify=order.verify,
            max_attempts=order.max_attempts if order.max_attempts != MAX_ATTEMPTS else None,
            approve=cast("Approve", order.approve),
            allow=order.allow,
            **as_asked(order),
            **own,
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


def alive_project(db: Session, order: Order) -> Project:
    """The order's project. Raises Precondition if it was removed."""
    project = db.get_one(Project, order.project_id)
    if project.removed_at is not None:
        raise Precondition(
            f"project {project.slug} of order {order.id} was removed",
            code="E-PROJECT-REMOVED",
            next=f"fleet project add {project.slug} --git-url URL    then submit the order there",
        )
    return project


def alive_provider(db: Session, order: Order, project: Project) -> Provider:
    """The order's provider. Raises Precondition if it was removed."""
    provider = db.get_one(Provider, order.provider_id)
    if provider.removed_at is not None:
        raise Precondition(
            f"provider {provider.name} of order {order.id} was removed",
            code="E-ORDER-PROVIDER",
            next=f"fleet provider ls    then: fleet submit 'TEXT' --project {project.slug} --session "
            f"{order.session_id} --provider NAME",
        )
    return provider
