"""Submit a work order: check the whole request, then write order, turn and outbox row in one transaction.

When `submit` returns, the order is durable: after any later failure it waits in the queue with a reason.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import cast

from sqlalchemy import select
from sqlalchemy.orm import Session as Db

from control_plane.conversations.new_session import new_session
from control_plane.core import Caller, Core
from control_plane.db.audit_chain import concerns
from control_plane.db.orders import Order
from control_plane.db.projects import Project, Provider
from control_plane.db.sessions import ChatSession
from control_plane.documents.orders import SubmitRequest
from control_plane.lookups.drones import find_drone
from control_plane.lookups.ids import full_session_id
from control_plane.lookups.projects import find_project
from control_plane.lookups.providers import find_provider, only_provider
from control_plane.lookups.sessions import find_session
from control_plane.orders.draft import MAX_ATTEMPTS, Draft, create_order
from control_plane.orders.numbers import lock_numbers
from control_plane.validation.checks import check_labels, check_text
from shared.errors import Conflict, Invalid, Precondition, TooLarge
from shared.work_order import Limits, Mode

MAX_PROMPT = 200_000
"""Characters. The prompt is part of every model call; longer text belongs in a file of the repository."""
KEY_LASTS = timedelta(days=7)
MAX_KEY = 255
MAX_ALLOWED = 100
MAX_PATTERN = 2000


def check_request(request: SubmitRequest, key: str | None) -> None:
    """Check everything that needs no database. Raises Invalid, or TooLarge for the prompt."""
    if len(request.prompt) > MAX_PROMPT:
        raise TooLarge(
            f"the prompt has {len(request.prompt):,} characters; {MAX_PROMPT:,} are allowed",
            code="E-ORDER-PROMPT-SIZE",
            why="it is sent with every model call",
            next="put the text in a file of the repository and refer to that file in the prompt",
        )
    if not request.prompt.strip():
        raise Invalid("the prompt is empty", code="E-ORDER-PROMPT", next="fleet submit 'what to do' --project SLUG")
    check_text("the prompt", request.prompt, limit=MAX_PROMPT)
    check_labels(request.labels)
    if request.drone is not None and request.labels:
        raise Invalid("a drone and labels cannot both be given", code="E-ORDER-PLACE", next="omit one of them")
    _check_allow(request.allow)
    for name in ("cost_limit", "max_run_seconds", "approval_timeout", "progress_timeout"):
        if not math.isfinite(getattr(request, name) or 0):
            raise Invalid(f"{name} must be a finite number", code="E-ORDER-LIMIT", next="0 means no limit")
    if key is not None:
        check_text("the idempotency key", key, limit=MAX_KEY)


def _check_allow(patterns: Sequence[str]) -> None:
    if len(patterns) > MAX_ALLOWED:
        raise Invalid(
            f"{len(patterns)} command patterns given; {MAX_ALLOWED} are allowed",
            code="E-ORDER-ALLOW",
            next="cover similar commands with one pattern: --allow 'git status*'",
        )
    for pattern in patterns:
        check_text("an --allow pattern", pattern, limit=MAX_PATTERN)


def submit_within(
    db: Db, core: Core, caller: Caller, request: SubmitRequest, idempotency_key: str | None
) -> tuple[str, bool]:
    """Create and place the order, or find the one created with this key before. Returns its id, and whether it is new.

    The numbers are locked before the key is looked up, so that of two requests with one key the second sees the first's
    order.
    """
    lock_numbers(db)
    body_hash = _hash(request)
    if idempotency_key is not None:
        before = _submitted_before(db, core.clock.now(), caller, idempotency_key)
        if before is not None:
            _refuse_other_body(before, body_hash)
            concerns(before.id)
            return before.id, False
    draft = _draft(db, core, caller, request)
    if idempotency_key is not None:
        draft = replace(draft, idempotency_key=idempotency_key, request_hash=body_hash)
    order = create_order(db, core, draft)
    concerns(order.id)
    return order.id, True


def _submitted_before(db: Db, now: datetime, caller: Caller, key: str) -> Order | None:
    """The order created with this key within the last 7 days; the key is removed from an older one."""
    made = select(Order).where(Order.organization_id == caller.organization_id, Order.idempotency_key == key)
    order = db.scalar(made)
    if order is not None and now - order.created_at >= KEY_LASTS:
        order.idempotency_key = None
        db.flush()
        return None
    return order


def _refuse_other_body(order: Order, body_hash: str) -> None:
    if order.request_hash != body_hash:
        raise Conflict(
            f"the idempotency key was already used for another request, which created order {order.id}",
            code="E-ORDER-IDEMPOTENCY",
            next="use a new key for a new order",
        )


def _draft(db: Db, core: Core, caller: Caller, request: SubmitRequest) -> Draft:
    """The request with its names resolved."""
    project = find_project(db, caller.organization_id, request.project)
    provider = _provider(db, caller, request, project)
    drone_id = find_drone(db, caller.organization_id, request.drone).id if request.drone is not None else None
    session = _session(db, core, caller, request, project)
    return Draft(
        project=project,
        provider=provider,
        session=session,
        prompt=request.prompt,
        user=caller.user,
        user_id=caller.user_id,
        mode=request.mode or cast("Mode", session.mode),
        limits=_limits(request),
        on_limit=request.on_limit or "stop",
        priority=request.priority,
        approve=request.approve,
        allow=request.allow,
        max_attempts=request.max_attempts or MAX_ATTEMPTS,
        labels=request.labels,
        drone_id=drone_id,
    )


def _session(db: Db, core: Core, caller: Caller, request: SubmitRequest, project: Project) -> ChatSession:
    """The session given in the request, else a new one."""
    if request.session is not None:
        session = find_session(db, caller.organization_id, full_session_id(db, caller, request.session), project)
        _refuse_task_session(session)
        return session
    session = new_session(core, project, request.mode or "build", caller.user_id)
    # The settings of a session's first order apply to the whole session; those of a later order to that order alone.
    session.approve, session.allow = request.approve, list(request.allow)
    return session


def _refuse_task_session(session: ChatSession) -> None:
    """The turns of a task's session are its agents' runs; no other order may run between them."""
    if session.task_id is not None:
        raise Conflict(
            f"session {session.id} belongs to task {session.task_id}",
            code="E-SESSION-TASK",
            why="its turns are the runs of the task's agents",
            next=f"fleet comment {session.task_id} '@AGENT what to do'    or: fleet session fork {session.id}",
        )


def _provider(db: Db, caller: Caller, request: SubmitRequest, project: Project) -> Provider:
    """The requested provider, else the project's, else the organization's only one."""
    if request.provider is not None:
        return find_provider(db, caller.organization_id, request.provider)
    if project.provider_id is not None:
        return db.get_one(Provider, project.provider_id)
    only = only_provider(db, caller.organization_id)
    if only is not None:
        return only
    raise Precondition(
        f"no provider given, and project {project.slug} has no default provider",
        code="E-ORDER-PROVIDER",
        why="the organization has none or more than one",
        next=f"fleet provider ls    then: fleet submit … --provider NAME, or fleet project edit {project.slug} "
        "--provider NAME; to add the first one: fleet provider add NAME --model MODEL",
    )


def _limits(request: SubmitRequest) -> Limits:
    asked = {
        "max_iterations": request.max_iterations,
        "cost_limit": request.cost_limit,
        "max_run_seconds": request.max_run_seconds,
        "verify_attempts": request.verify_attempts,
        "approval_timeout": request.approval_timeout,
        "progress_timeout": request.progress_timeout,
    }
    return Limits.model_validate({name: value for name, value in asked.items() if value is not None})


def _hash(request: SubmitRequest) -> str:
    """A hash over every field, in canonical order: equal for two equal requests.

    Fields added in later versions count only if they are set, so that a key outlives an upgrade.
    """
    later = {name for name in ("progress_timeout", "max_attempts", "on_limit") if getattr(request, name) is None}
    canonical = json.dumps(request.model_dump(mode="json", exclude=later), sort_keys=True, separators=(",", ":"))
    return sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()
