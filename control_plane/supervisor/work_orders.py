"""Builds the work order for a drone from rows: opened secrets, the session so far, and the base of the work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.core import Core
from control_plane.core.lookups.providers import model_now
from control_plane.db.drones import Drone
from control_plane.db.engine import pause
from control_plane.db.installation import Organization
from control_plane.db.orders import Dispatch, Order, SteeringMessage
from control_plane.db.projects import Project, Provider
from control_plane.db.runs import Step
from control_plane.db.sessions import ChatSession as Chat
from control_plane.db.sessions import SessionEntry
from control_plane.db.teams import Agent
from control_plane.db.types import without_nul
from control_plane.money.spending.settlement import money_of
from control_plane.orders.conversations.history import messages_along, way_of
from control_plane.orders.conversations.left_branches import left_branch
from control_plane.orders.conversations.plan_progress import plan_along
from control_plane.orders.conversations.resumption import choose, resumed
from control_plane.orders.conversations.review_answers import carried_comments
from control_plane.orders.conversations.reviewer_findings import last_review
from control_plane.orders.conversations.run_paths import Segment, path_to
from control_plane.orders.conversations.steering_messages import words_along
from control_plane.orders.conversations.upstream import foundation_of
from control_plane.orders.draft import as_asked
from control_plane.orders.memory_notes import memory_of
from control_plane.orders.races import base_of_race
from control_plane.teams.briefing import team_of
from shared.blobs import INLINE_CONTEXT, digest
from shared.messages import Message
from shared.work_order import (
    CHECKS,
    Base,
    Limits,
    MergedWork,
    OrderProject,
    OrderProvider,
    OrderReviewer,
    OrderSession,
    Protocol,
    RotationOrder,
    SaidBefore,
    ThinkingLevel,
    WorkOrder,
)

_PROTOCOL: TypeAdapter[Protocol] = TypeAdapter(Protocol)
_ROTATION: TypeAdapter[RotationOrder] = TypeAdapter(RotationOrder)
_THINKING: TypeAdapter[ThinkingLevel] = TypeAdapter(ThinkingLevel)
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
    foundation = foundation_of(db, order, way)
    return WorkOrder.model_validate(
        {
            "order_id": order.id,
            "run_id": dispatch.id,
            "generation": dispatch.generation,
            "attempt": order.attempt + 1,
            "drone_id": dispatch.drone_id,
            "organization": db.get_one(Organization, order.organization_id).name,
            "user": order.user,
            "project": _project(core, db.get_one(Project, order.project_id), order),
            "session": _session(db, db.get_one(Chat, order.session_id), order, way),
            "mode": order.mode_definition,
            "provider": _provider(db, core, db.get_one(Provider, order.provider_id), order),
            "limits": Limits.model_validate(order.limits),
            "money": money_of(db, order),
            "approve": order.approve,
            "allow": tuple(order.allow),
            "base": _base(foundation.commit or base_of_race(db, order), foundation.base, _seen(db, way)),
            "merges": (*_merges(foundation.merged), *_branch(order)),
            "merge_only": order.merge_only,
            # An agent remembers nothing between its turns: the thread is all that it receives (S-073).
            **_context(db, core, messages_along(db, way if order.task_id is None else (), path)),
            **_purpose(db, core, order, path),
            "resumed": resumed(db, order, checkpoint) if checkpoint else None,
            "questions": order.purpose == "work",
            "plan": plan_along(db, order, path),
            **as_asked(order),
            "memory": memory_of(db, order) if order.purpose == "work" else None,
            "prompt": order.prompt,
            "reviewer": _reviewer(db, core, order, path),
            "review": carried_comments(db, order, way, path),
            "said": tuple(map(_said, words_along(db, dispatch.id, path))),
            "submitted_at": order.created_at,
        }
    )


def _said(word: SteeringMessage) -> SaidBefore:
    return SaidBefore(text=word.text, after=word.after, message=str(word.number), alone=word.alone)


def _purpose(db: Session, core: Core, order: Order, path: Sequence[Segment]) -> dict[str, Any]:
    """The order's purpose and the fields that belong to it."""
    purpose: dict[str, Any] = {"purpose": order.purpose}
    if order.purpose in CHECKS:
        return purpose
    if order.purpose != "work":
        purpose[order.purpose] = order.asked
    elif team := team_of(db, order):
        more = {"unseen": _unseen_comments(db, order, path), "instructions_url": _elsewhere(db, core, order)}
        team = team.model_copy(update=more)
        purpose |= {"agent": team.agent, "task": team.task, "team": team}
    return purpose


def _unseen_comments(db: Session, order: Order, path: Iterable[Segment]) -> tuple[str, ...]:
    """The comments of the order's earlier runs that are not on `path`, in order of arrival: its next run knows none.

    A comment counts as soon as it is written: it is not undone with the step that was cut off. The run that continues
    must therefore receive it, or it would write it again.
    """
    if order.attempt == 0:
        return ()
    along = {segment.run_id: segment for segment in path}
    comments = select(Step.run_id, Step.run_seq, Step.body).where(
        Step.order_id == order.id, Step.kind == "comment", Step.late.is_(False)
    )
    return tuple(
        without_nul(str(body["text"]))
        for run_id, run_seq, body in db.execute(comments.order_by(Step.seq))
        if body.get("to_task") and not (run_id in along and along[run_id].holds(run_seq))
    )


def _elsewhere(db: Session, core: Core, order: Order) -> str | None:
    """The repository of the agent's instructions, if it is not the order's own."""
    agent = db.get_one(Agent, order.agent_id)
    if agent.instructions_path is None or agent.project_id in {None, order.project_id}:
        return None
    return _git_url(core, db.get_one(Project, agent.project_id))


def _seen(db: Session, way: Sequence[SessionEntry]) -> str | None:
    """What the last turn started from."""
    last = db.get(Order, way[-1].order_id) if way else None
    return last.base_commit if last is not None and last.head_commit is None else None


def _base(given: str | None, before: Order | None, seen: str | None) -> Base:
    """The head of the work that the order builds on, else the commit that it was given, else empty."""
    if before is None:
        return Base(commit=given, given=given is not None)
    return _head_of(before).model_copy(update={"seen": seen})


def _merges(orders: Sequence[Order]) -> Iterator[MergedWork]:
    return (MergedWork(order=each.id, base=_head_of(each)) for each in orders)


def _branch(order: Order) -> Iterator[MergedWork]:
    """The branch that the order merges into its base, if it is there to resolve conflicts with it."""
    merge = (order.asked or {}).get("merge")
    if merge is not None:
        base = Base(commit=merge["commit"], branch=merge["branch"])
        yield MergedWork(order="", base=base, branch=merge["branch"])


def _head_of(order: Order) -> Base:
    return Base(
        commit=order.head_commit,
        branch=order.branch if order.pushed else None,
        unpushed_branch=None if order.pushed else order.branch,
        bundle=order.bundle_sha256,
        bundle_run=order.result_run_id if order.bundle_sha256 else None,
    )


def _git_url(core: Core, project: Project) -> str:
    """The whole URL, with a password that is in it."""
    sealed = project.sealed_git_url
    return core.vault.open_at_rest(sealed, "projects.sealed_git_url") if sealed else project.git_url


def _project(core: Core, project: Project, order: Order) -> OrderProject:
    return OrderProject(
        id=project.id,
        name=project.name,
        slug=project.slug,
        git_url=_git_url(core, project),
        branch=project.branch,
        setup=tuple(project.setup),
        verify=_verify(project, order),
        trailers=tuple(project.trailers),
    )


def _verify(project: Project, order: Order) -> tuple[str, ...]:
    """The order's own commands, else the project's, which say nothing about an order that may only read."""
    if order.verify is not None:
        return tuple(order.verify)
    # The check of a project runs its commands, and is in mode plan.
    reads_only = order.purpose == "work" and _base_mode(order) == "plan"
    return () if reads_only else tuple(project.verify)


def _base_mode(order: Order) -> str:
    """The built-in mode that the order's mode counts as."""
    own = order.mode_definition
    return order.mode if own is None else "plan" if own["read_only"] else "build"


def _session(db: Session, chat: Chat, order: Order, way: Sequence[SessionEntry]) -> OrderSession:
    leaf = way[-1].id if way else None
    return OrderSession.model_validate(
        {
            "id": chat.id,
            "name": chat.name,
            "mode": _base_mode(order),
            "leaf": leaf,
            "compact": chat.compact,
            **left_branch(db, chat, order, way),
        }
    )


def _provider(db: Session, core: Core, provider: Provider, order: Order) -> OrderProvider:
    """The provider with its fallbacks as they are now, with the thinking level of when the order was submitted."""
    fallbacks = []
    for each in _fallbacks(db, provider):
        endpoint = _endpoint(core, each)
        # A service makes small calls, at the model's default.
        level = order.thinking or (endpoint.thinking if order.purpose == "work" else None)
        fallbacks.append(endpoint.model_copy(update={"thinking": level}))
    changed = {"model": model_now(db, order), "thinking": order.thinking, "fallbacks": tuple(fallbacks)}
    return _endpoint(core, provider).model_copy(update=changed)


def _reviewer(db: Session, core: Core, order: Order, path: Sequence[Segment]) -> OrderReviewer | None:
    """The order's reviewer, unless its remarks are in the conversation; with them, if an earlier run paid for them."""
    if order.reviewer_id is None or order.purpose != "work":
        return None
    provider = db.get_one(Provider, order.reviewer_id)
    fallbacks = tuple(_endpoint(core, each) for each in _fallbacks(db, provider))
    own = _endpoint(core, provider).model_copy(update={"fallbacks": fallbacks})
    last = last_review(db, order)
    if last is None:
        return OrderReviewer(provider=own)
    if any(segment.run_id == last.run_id and segment.holds(last.run_seq) for segment in path):
        return None
    return OrderReviewer(provider=own, findings=last.findings)


def _endpoint(core: Core, provider: Provider) -> OrderProvider:
    """The provider without its fallbacks: those of a fallback are left out, so that there are no cycles."""
    return OrderProvider(
        name=provider.name,
        model=provider.model,
        api_base=provider.api_base,
        api_key=core.vault.open_at_rest(provider.sealed_key, "providers.sealed_key") if provider.sealed_key else None,
        key_variable=provider.key_variable,
        context_window=provider.context_window,
        protocol=_PROTOCOL.validate_python(provider.protocol),
        params=provider.params,
        thinking=None if provider.thinking == "auto" else _THINKING.validate_python(provider.thinking),
        limited=bool(provider.rpm or provider.tpm),
        rotation=_ROTATION.validate_python(provider.rotation),
    )


def _fallbacks(db: Session, provider: Provider) -> Iterator[Provider]:
    named = select(Provider).where(
        Provider.organization_id == provider.organization_id,
        Provider.name.in_(provider.fallbacks),
        Provider.removed_at.is_(None),
    )
    found = {each.name: each for each in db.scalars(named)}
    return (found[name] for name in provider.fallbacks if name in found)


def _context(db: Session, core: Core, messages: Sequence[Message]) -> dict[str, Any]:
    """The session so far: inline in the order, or stored as a blob if it is long."""
    content = _MESSAGES.dump_json(messages)
    if len(content) <= INLINE_CONTEXT:
        return {"context": tuple(messages)}
    name = digest(content)
    pause(db)
    core.blobs.store(name, BytesIO(content))
    return {"context_blob": name}
