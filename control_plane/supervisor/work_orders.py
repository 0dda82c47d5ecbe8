"""Builds the work order for a drone from rows: opened secrets, the session so far, and the base of the work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.conversations.history import last_work, messages_along, way_of
from control_plane.conversations.resumption import choose, resumed
from control_plane.conversations.run_paths import Segment, path_to
from control_plane.conversations.steering_messages import words_along
from control_plane.core import Core
from control_plane.db.drones import Drone
from control_plane.db.installation import Organization
from control_plane.db.orders import Dispatch, Order
from control_plane.db.projects import Project, Provider
from control_plane.db.sessions import ChatSession as Chat
from control_plane.db.teams import Agent
from control_plane.spending.settlement import money_of
from control_plane.teams.briefing import team_of
from control_plane.teams.unseen_comments import unseen_comments
from shared.blobs import INLINE_CONTEXT, digest
from shared.messages import Message
from shared.work_order import (
    CHECKS,
    Base,
    Limits,
    OrderProject,
    OrderProvider,
    OrderSession,
    Protocol,
    SaidBefore,
    WorkOrder,
)

_PROTOCOL: TypeAdapter[Protocol] = TypeAdapter(Protocol)
_MESSAGES: TypeAdapter[Sequence[Message]] = TypeAdapter(Sequence[Message])


def work_order(db: Session, core: Core, dispatch: Dispatch) -> WorkOrder:
    """The work order for this dispatch's drone, starting from the newest checkpoint that this drone can get.

    It holds secrets in clear: seal it, and never store or log it. A context over 64 kB is stored as a blob when this
    returns, and the drone can read it once it is lent to the run. Raises Precondition if a secret cannot be opened,
    FleetFault if the disk is full.
    """
    order = db.get_one(Order, dispatch.order_id)
    way = way_of(db, order)
    checkpoint = choose(db, order, db.get_one(Drone, dispatch.drone_id))
    path = path_to(db, checkpoint.run.id, checkpoint.step.run_seq) if checkpoint else []
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
            "session": _session(db.get_one(Chat, order.session_id), order, way[-1].id if way else None),
            "provider": _provider(db, core, db.get_one(Provider, order.provider_id), model=order.model),
            "limits": Limits.model_validate(order.limits),
            "money": money_of(db, order),
            "approve": order.approve,
            "allow": tuple(order.allow),
            "base": _base(last_work(db, way)),
            # An agent remembers nothing between its turns: the thread is all that it receives (S-073).
            **_context(core, messages_along(db, way if order.task_id is None else (), path)),
            **_purpose(db, core, order, path),
            "resume": checkpoint is not None,
            "resumed": resumed(db, order, checkpoint) if checkpoint else None,
            "prompt": order.prompt,
            "said": tuple(SaidBefore(text=word.text, after=word.after) for word in words_along(db, dispatch.id, path)),
            "submitted_at": order.created_at,
        }
    )


def _purpose(db: Session, core: Core, order: Order, path: Sequence[Segment]) -> dict[str, Any]:
    """The order's purpose and the fields that belong to it."""
    purpose: dict[str, Any] = {"purpose": order.purpose}
    if order.purpose in CHECKS:
        return purpose
    if order.purpose != "work":
        purpose[order.purpose] = order.asked
    elif team := team_of(db, order):
        more = {"unseen": unseen_comments(db, order, path), "instructions_url": _elsewhere(db, core, order)}
        team = team.model_copy(update=more)
        purpose |= {"agent": team.agent, "task": team.task, "team": team}
    return purpose


def _elsewhere(db: Session, core: Core, order: Order) -> str | None:
    """The repository of the agent's instructions, if it is not the order's own."""
    agent = db.get_one(Agent, order.agent_id)
    if agent.instructions_path is None or agent.project_id in {None, order.project_id}:
        return None
    return _project(core, db.get_one(Project, agent.project_id)).git_url


def _base(last: Order | None) -> Base:
    """The head of the last turn before this one that changed files; empty if none did."""
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
        trailers=tuple(project.trailers),
    )


def _session(chat: Chat, order: Order, leaf: str | None) -> OrderSession:
    return OrderSession.model_validate(
        {"id": chat.id, "name": chat.name, "mode": order.mode, "leaf": leaf, "compact": chat.compact}
    )


def _provider(db: Session, core: Core, provider: Provider, *, model: str | None = None) -> OrderProvider:
    """The provider with its fallbacks; a fallback's own fallbacks are left out, so that there are no cycles.

    `model` is the order's own: the provider's model when the order was submitted.
    """
    fallbacks = _fallbacks(db, core, provider) if model else ()
    return OrderProvider(
        name=provider.name,
        model=model or provider.model,
        api_base=provider.api_base,
        api_key=core.vault.open_at_rest(provider.sealed_key) if provider.sealed_key else None,
        key_variable=provider.key_variable,
        context_window=provider.context_window,
        protocol=_PROTOCOL.validate_python(provider.protocol),
        params=provider.params,
        fallbacks=tuple(fallbacks),
        limited=bool(provider.rpm or provider.tpm),
    )


def _fallbacks(db: Session, core: Core, provider: Provider) -> Iterator[OrderProvider]:
    named = select(Provider).where(
        Provider.organization_id == provider.organization_id,
        Provider.name.in_(provider.fallbacks),
        Provider.removed_at.is_(None),
    )
    found = {each.name: each for each in db.scalars(named)}
    return (_provider(db, core, found[name]) for name in provider.fallbacks if name in found)


def _context(core: Core, messages: Sequence[Message]) -> dict[str, Any]:
    """The session so far: inline in the order, or stored as a blob if it is long."""
    content = _MESSAGES.dump_json(messages)
    if len(content) <= INLINE_CONTEXT:
        return {"context": tuple(messages)}
    name = digest(content)
    core.blobs.store(name, BytesIO(content))
    return {"context_blob": name}
