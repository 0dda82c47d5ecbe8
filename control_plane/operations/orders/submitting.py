"""Submit a work order: check the whole request, then write order, turn and outbox row in one transaction.

When `submit` returns, the order is durable: after any later failure it waits in the queue with a reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import sha256

from sqlalchemy import select
from sqlalchemy.orm import Session as Db

from control_plane.contract.declarations.orders import SubmitRequest
from control_plane.contract.validation.checks import check_commands, check_labels, check_text, shown
from control_plane.core import Caller, Core
from control_plane.core.lookups.drones import find_drone
from control_plane.core.lookups.ids import full_order_id, full_session_id
from control_plane.core.lookups.projects import find_project
from control_plane.core.lookups.providers import find_provider, only_provider
from control_plane.core.lookups.sessions import find_session
from control_plane.db.audit_chain import concerns
from control_plane.db.orders import Order
from control_plane.db.projects import Project, Provider
from control_plane.db.sessions import ChatSession
from control_plane.operations.orders.given_limits import own_limits
from control_plane.orders.conversations.new_session import new_session
from control_plane.orders.draft import MAX_ATTEMPTS, Draft, as_asked, create_order
from control_plane.orders.numbers import lock_numbers
from control_plane.orders.profiles import with_profile
from control_plane.orders.reviewers import reviewer_named
from control_plane.orders.run_settings import OwnLimits
from control_plane.services.titles import ask_title
from shared.errors import Conflict, Invalid, NotFound, Precondition, TooLarge

MAX_PROMPT = 200_000
"""Characters. The prompt is part of every model call; longer text belongs in a file of the repository."""
KEY_LASTS = timedelta(days=7)
MAX_KEY = 255
MAX_ALLOWED = 100
MAX_PATTERN = 2000
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


def check_request(request: SubmitRequest, key: str | None) -> None:
    """Check everything that needs no database. Raises Invalid, or TooLarge for the prompt."""
    if len(request.prompt) > MAX_PROMPT:
        raise TooLarge(
            f"the prompt has {len(request.prompt):,} characters; {MAX_PROMPT:,} are allowed",
            code="E-ORDER-PROMPT-SIZE",
            why="it is sent with every model call",
            next="put the text in a file of the repository and refer to that file in the prompt",
        ).of(request.prompt)
    if not request.prompt.strip():
        raise Invalid("the prompt is empty", code="E-ORDER-PROMPT", next="fleet submit 'what to do' --project SLUG").of(
            request.prompt
        )
    check_text("the prompt", request.prompt, limit=MAX_PROMPT)
    check_labels(request.labels)
    if request.drone is not None and request.labels:
        raise Invalid("a drone and labels cannot both be given", code="E-ORDER-PLACE", next="omit one of them")
    _check_allow(request.allow)
    if request.base is not None and not _COMMIT.fullmatch(request.base):
        raise Invalid(
            f"the base {request.base[:80]!r} is not the full id of a commit",
            code="E-ORDER-BASE",
            why="a short id or a name may mean another commit by the time the order starts",
            next="git rev-parse NAME    prints the full id",
        ).of(request.base)
    own_limits(request)
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
    draft = draft_of(db, core, caller, request)
    if idempotency_key is not None:
        draft = replace(draft, idempotency_key=idempotency_key, request_hash=body_hash)
    order = create_order(db, core, draft)
    ask_title(db, core, order)
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


def draft_of(db: Db, core: Core, caller: Caller, request: SubmitRequest) -> Draft:
    """The request with its names resolved, and with what its profile sets."""
    request = with_profile(db, caller.organization_id, request)
    project = find_project(db, caller.organization_id, request.project)
    provider = _provider(db, caller, request, project)
    drone_id = find_drone(db, caller.organization_id, request.drone).id if request.drone is not None else None
    session = _session(db, core, caller, request, project)
    if request.base is not None and session.leaf_id is not None:
        raise Invalid(
            f"session {session.id} has work of its own, so an order in it cannot start from another commit",
            code="E-ORDER-BASE",
            next="omit the base, or omit the session",
        )
    mode = request.mode or session.mode
    if request.plan_first and mode == "plan":
        raise Invalid(
            "an order in mode plan changes nothing, so its plan needs no approval",
            code="E-ORDER-PLAN",
            next="omit the mode plan, or do not plan first",
        )
    return Draft(
        project=project,
        provider=provider,
        session=session,
        prompt=request.prompt,
        user=caller.user,
        user_id=caller.user_id,
        mode=mode,
        thinking=request.thinking,
        reviewer=reviewer_named(db, project, request.reviewer),
        as_asked=as_asked(request),
        verify=None if request.verify is None else check_commands("verify", request.verify),
        profile=request.profile,
        own_limits=OwnLimits(own_limits(request)),
        on_limit=request.on_limit or "stop",
        plan_first=request.plan_first,
        priority=request.priority,
        approve=request.approve,
        allow=request.allow,
        max_attempts=request.max_attempts or MAX_ATTEMPTS,
        labels=request.labels,
        drone_id=drone_id,
        after=_after(db, caller, request.after, project),
        commit=request.base,
    )


def _after(db: Db, caller: Caller, named: Sequence[str], project: Project) -> list[str]:
    """The ids of the orders that must succeed first. Raises NotFound, and Invalid for one of another project."""
    ids = list(dict.fromkeys(full_order_id(db, caller, each) for each in named))
    for each in ids:
        other = db.scalar(select(Order).where(Order.id == each, Order.organization_id == caller.organization_id))
        if other is None:
            raise NotFound(f"order {shown(each)} not found", code="E-ORDER-404", next="fleet orders")
        if other.project_id != project.id or other.purpose != "work":
            raise Invalid(
                f"order {each} is not an order for project {project.slug}",
                code="E-ORDER-AFTER",
                why="an order starts from the work of the orders before it, in the same repository",
                next=f"fleet orders --project {project.slug}",
            )
    return ids


def _session(db: Db, core: Core, caller: Caller, request: SubmitRequest, project: Project) -> ChatSession:
    """The session given in the request, else a new one."""
    if request.session is not None:
        session = find_session(db, caller.organization_id, full_session_id(db, caller, request.session), project)
        refuse_task_session(session)
        return session
    session = new_session(core, project, request.mode or "build", caller.user_id)
    # The settings of a session's first order apply to the whole session; those of a later order to that order alone.
    session.approve, session.allow, session.thinking = request.approve, list(request.allow), request.thinking
    return session


def refuse_task_session(session: ChatSession) -> None:
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


_ALWAYS_COUNTED = frozenset(
    {
        *("prompt", "project", "session", "provider", "mode", "drone", "labels", "priority", "approve", "allow"),
        *("max_iterations", "cost_limit", "max_run_seconds", "verify_attempts", "approval_timeout"),
    }
)


def _is_default(request: SubmitRequest, name: str) -> bool:
    default = SubmitRequest.model_fields[name].get_default(call_default_factory=True)
    value = getattr(request, name)
    # 0 is a limit, and equals False.
    return value == default and isinstance(value, type(default))


def _hash(request: SubmitRequest) -> str:
    """A hash over every field, in canonical order: equal for two equal requests.

    A field that did not always count does so only if it is set, so that a key outlives an upgrade.
    """
    fields = set(SubmitRequest.model_fields)
    later = {name for name in fields - _ALWAYS_COUNTED if _is_default(request, name)}
    canonical = json.dumps(request.model_dump(mode="json", exclude=later), sort_keys=True, separators=(",", ":"))
    return sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()
