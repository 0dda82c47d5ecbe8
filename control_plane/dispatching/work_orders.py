"""From rows to the work order that travels: secrets opened, the session so far, and what the work starts from."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.core import Core
from control_plane.db.models import Dispatch, Order, Organization, Project, Provider, Turn
from control_plane.db.models import Session as Chat
from shared.messages import Message
from shared.states import TurnStatus
from shared.work_order import Base, Limits, OrderProject, OrderProvider, OrderSession, WorkOrder


def work_order(db: Session, core: Core, dispatch: Dispatch) -> WorkOrder:
    """The order as this dispatch's drone is to execute it.

    It holds secrets in clear: seal it, and never store or log it. A context over 64 kB travels inline for now.
    Raises Precondition where a secret cannot be opened.
    """
    order = db.get_one(Order, dispatch.order_id)
    return WorkOrder.model_validate(
        {
            "order_id": order.id,
            "run_id": dispatch.id,
            "generation": dispatch.generation,
            "attempt": order.attempt + 1,
            "drone_id": dispatch.drone_id,
            "organization": db.get_one(Organization, order.organization_id).name,
            "user": order.user,
            "project": _project(core, db.get_one(Project, order.project_id)),
            "session": _session(db.get_one(Chat, order.session_id), order),
            "provider": _provider(db, core, db.get_one(Provider, order.provider_id), model=order.model),
            "limits": Limits.model_validate(order.limits),
            "approve": order.approve,
            "base": base_of(db, order),
            "context": tuple(_context(db, order)),
            "prompt": order.prompt,
            "submitted_at": order.created_at,
        }
    )


def base_of(db: Session, order: Order) -> Base:
    """The head of the session's last earlier order that changed files; empty where none did."""
    earlier = select(Order).where(
        Order.session_id == order.session_id, Order.number < order.number, Order.head_commit.is_not(None)
    )
    last = db.scalar(earlier.order_by(Order.number.desc()).limit(1))
    if last is None:
        return Base()
    return Base(
        commit=last.head_commit,
        branch=last.branch if last.pushed else None,
        bundle=last.bundle_sha256,
        bundle_run=last.result_run_id if last.bundle_sha256 else None,
    )


def _project(core: Core, project: Project) -> OrderProject:
    sealed = project.sealed_git_url
    return OrderProject(
        id=project.id,
        name=project.name,
        slug=project.slug,
        git_url=core.vault.open_at_rest(sealed) if sealed else project.git_url,
        branch=project.branch,
        setup=tuple(project.setup),
        verify=tuple(project.verify),
    )


def _session(chat: Chat, order: Order) -> OrderSession:
    return OrderSession.model_validate({"id": chat.id, "name": chat.name, "mode": order.mode})


def _provider(db: Session, core: Core, provider: Provider, *, model: str | None = None) -> OrderProvider:
    """The provider with its fallbacks; a fallback's own fallbacks are left out, so that no circle arises.

    `model` is the order's own: what the provider was when the order was submitted.
    """
    fallbacks = _fallbacks(db, core, provider) if model else ()
    return OrderProvider(
        name=provider.name,
        model=model or provider.model,
        api_base=provider.api_base,
        api_key=core.vault.open_at_rest(provider.sealed_key) if provider.sealed_key else None,
        key_variable=provider.key_variable,
        params=provider.params,
        fallbacks=tuple(fallbacks),
    )


def _fallbacks(db: Session, core: Core, provider: Provider) -> Iterator[OrderProvider]:
    named = select(Provider).where(
        Provider.organization_id == provider.organization_id,
        Provider.name.in_(provider.fallbacks),
        Provider.removed_at.is_(None),
    )
    found = {each.name: each for each in db.scalars(named)}
    return (_provider(db, core, found[name]) for name in provider.fallbacks if name in found)


def _context(db: Session, order: Order) -> Iterator[Message]:
    """The earlier turns of the session, as question and answer; what a turn did in between is in the repository."""
    earlier = (
        select(Turn, Order.reason)
        .join(Order, Order.id == Turn.order_id)
        .where(Turn.session_id == order.session_id, Order.number < order.number)
    )
    for turn, reason in db.execute(earlier.order_by(Order.number)):
        if turn.status == TurnStatus.PROCESSING:
            continue
        yield Message(role="user", content=turn.prompt)
        # Models expect an answer to every question, also to one whose turn failed or was canceled.
        yield Message(role="assistant", content=turn.response or f"(This turn ended without an answer: {reason})")
