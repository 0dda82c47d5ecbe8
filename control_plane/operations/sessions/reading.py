"""Read sessions: the list, one session with its tree, and its latest work."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import NamedTuple

from sqlalchemy import ColumnElement, Select, and_, bindparam, func, or_, select
from sqlalchemy.orm import Session as Db

from control_plane.contract.declarations import sessions as declared
from control_plane.contract.declarations.session_documents import (
    EntryDocument,
    HeadDocument,
    SessionDocument,
    SessionSummary,
    TurnDocument,
)
from control_plane.contract.documents.orders import StatsDocument
from control_plane.core import Caller, Core
from control_plane.core.lookups.projects import find_project
from control_plane.core.lookups.sessions import session_of, unfinished
from control_plane.core.lookups.texts import begins, contains_words
from control_plane.core.lookups.users import member_emails, owner_text, require_user
from control_plane.db.orders import Order, Turn
from control_plane.db.projects import Project
from control_plane.db.sessions import ChatSession, SessionEntry
from control_plane.db.stacks import Stack
from control_plane.operations.gateway import performs
from control_plane.operations.row_documents import stats_document
from control_plane.operations.runs.blobs import blob_of_run
from control_plane.orders import totals
from control_plane.orders.conversations.history import last_work, way_to
from control_plane.orders.conversations.places import labels_of, tree_of
from shared.errors import NotFound
from shared.states import ENDED, TurnStatus
from shared.titles import title

MAX_LISTED = 1000
_BEGINNING = 1000
"""Characters of a prompt that are read for its title."""


class _Row(NamedTuple):
    """A session with the other columns of the list."""

    chat: ChatSession
    project: str
    turns: int | None
    began: datetime | None
    ended: datetime | None
    prompt: str | None
    """The beginning of its first prompt, for a session without a name."""
    last_turn: str | None
    """The status of its newest turn."""


@performs(declared.LIST)
def list_(  # noqa: PLR0913 - the filters are the interface
    core: Core,
    caller: Caller,
    project: str | None = None,
    limit: int = 50,
    *,
    text: str | None = None,
    every: bool = False,
    mine: bool = False,
) -> list[SessionSummary]:
    """Sessions, the one with the newest turn first. Raises NotFound for an unknown project.

    Sessions of tasks and of service orders are included only with `every`. With `mine`, only those that the caller's
    user started; raises Invalid for a token without one.
    """
    with core.database.read() as db:
        wanted = _sessions()
        if not every:
            wanted = wanted.where(ChatSession.task_id.is_(None), ~_of_a_service())
        if mine:
            wanted = wanted.where(ChatSession.user_id == require_user(caller))
        if project is not None:
            wanted = wanted.where(ChatSession.project_id == find_project(db, caller.organization_id, project).id)
        if text is not None:
            wanted = wanted.where(or_(_says(text), begins(ChatSession.id, text.lower())))
        own = {"organization": caller.organization_id}
        rows = [_Row(*row) for row in db.execute(wanted.limit(max(1, min(limit, MAX_LISTED))), own)]
        running = _running(db, [row.chat.id for row in rows])
        emails = member_emails(db, caller.organization_id)
    return [_summary(row, running.get(row.chat.id), emails) for row in rows]


@performs(declared.SHOW)
def show(core: Core, caller: Caller, session_id: str) -> SessionDocument:
    """A session with its tree. Raises NotFound with similar ids."""
    with core.database.read() as db:
        chat = session_of(db, caller.organization_id, session_id)
        return session_document(db, caller, chat)


def session_document(db: Db, caller: Caller, chat: ChatSession) -> SessionDocument:
    """The document of a session, as it is in this transaction."""
    db.flush()
    row = _Row(*db.execute(_one_session(), {"organization": caller.organization_id, "session": chat.id}).one())
    waiting = [order.id for order in unfinished(db, chat.id)]
    entries = tree_of(db, chat)
    turns = _turns(db, [*waiting, *(entry.order_id for entry in entries if entry.order_id)])
    summary = _summary(row, waiting[0] if waiting else None, member_emails(db, caller.organization_id))
    return SessionDocument(
        **dict(summary),
        restack=chat.restack,
        stacked_on=list(
            db.scalars(select(Stack.lower_id).where(Stack.session_id == chat.id).order_by(Stack.created_at))
        ),
        entries=list(_entries(db, chat, entries, turns)),
        unfinished=[turns[order_id] for order_id in waiting],
    )


@performs(declared.HEAD)
def head_of(core: Core, caller: Caller, session_id: str) -> HeadDocument:
    """The session's last work that changed files. Raises NotFound if there is none."""
    with core.database.read() as db:
        chat, order = _head(db, caller, session_id)
        project = db.get_one(Project, chat.project_id)
    return HeadDocument(
        session=chat.id,
        order=order.id,
        branch=order.branch or "",
        commit=order.head_commit or "",
        pushed=order.pushed,
        bundle=order.bundle_sha256 is not None,
        project=project.slug,
        git_url=project.git_url,
    )


@performs(declared.BUNDLE)
def bundle_of(core: Core, caller: Caller, session_id: str) -> bytes:
    """The session's last work as a git bundle, based on commits of the remote. Raises NotFound if there is none."""
    with core.database.read() as db:
        _, order = _head(db, caller, session_id)
        if order.bundle_sha256 is not None and order.result_run_id is not None:
            return blob_of_run(db, core, order.result_run_id, order.bundle_sha256)
    raise NotFound(f"order {order.id} has no bundle", code="E-SESSION-HEAD", next=f"git fetch origin {order.branch}")


def _head(db: Db, caller: Caller, session_id: str) -> tuple[ChatSession, Order]:
    chat = session_of(db, caller.organization_id, session_id)
    order = last_work(db, way_to(db, chat.leaf_id))
    if order is None:
        raise NotFound(
            f"no turn of session {chat.id} has changed a file yet",
            code="E-SESSION-HEAD",
            next=f"fleet session show {chat.id}",
        )
    return chat, order


_Sessions = Select[ChatSession, str, int | None, datetime | None, datetime | None, str | None, str | None]


def _sessions(*of: ColumnElement[bool]) -> _Sessions:
    """All sessions of the bound `organization`; `of` are conditions on their turns, so that no others are counted."""
    organization = bindparam("organization", type_=Turn.organization_id.type)
    turns = (
        select(
            Turn.session_id,
            func.count().label("turns"),
            func.max(Turn.created_at).label("began"),
            func.max(Turn.ended_at).label("ended"),
        )
        .where(Turn.organization_id == organization, *of)
        .group_by(Turn.session_id)
        .subquery()
    )
    return (
        select(ChatSession, Project.slug, turns.c.turns, turns.c.began, turns.c.ended, _first_prompt(), _last_turn())
        .join(Project, Project.id == ChatSession.project_id)
        .outerjoin(turns, turns.c.session_id == ChatSession.id)
        .where(ChatSession.organization_id == organization)
        .order_by(func.coalesce(turns.c.began, ChatSession.created_at).desc(), ChatSession.id)
    )


@cache
def _one_session() -> _Sessions:
    """The bound `session`. Built once: an open page reads its session with every step."""
    one = bindparam("session", type_=ChatSession.id.type)
    return _sessions(Turn.session_id == one).where(ChatSession.id == one)


def _first_prompt() -> ColumnElement[str | None]:
    """The first prompt of the session; of the session that it was forked from while it has none of its own."""
    first = [
        select(func.substr(Turn.prompt, 1, _BEGINNING))
        .join(Order, Order.id == Turn.order_id)
        .where(Turn.session_id == session_id)
        .order_by(Order.number)
        .limit(1)
        .correlate(ChatSession)
        .scalar_subquery()
        for session_id in (ChatSession.id, ChatSession.forked_from_id)
    ]
    return func.coalesce(*first)


def _last_turn() -> ColumnElement[str | None]:
    """The status of the session's newest turn."""
    newest = select(Turn.status).join(Order, Order.id == Turn.order_id).where(Turn.session_id == ChatSession.id)
    return newest.order_by(Order.number.desc()).limit(1).correlate(ChatSession).scalar_subquery()


def _of_a_service() -> ColumnElement[bool]:
    """Whether the session was created for an order that the control plane itself submitted."""
    return select(Order.id).where(Order.session_id == ChatSession.id, Order.purpose != "work").exists()


def _says(text: str) -> ColumnElement[bool]:
    """Whether each word of the text is in the session's name, in its title while it has none, or in a prompt."""
    turns = select(Turn.id).where(Turn.session_id == ChatSession.id)
    return and_(
        *(
            or_(
                contains_words(word, ChatSession.name),
                and_(ChatSession.name == "", contains_words(word, ChatSession.title)),
                turns.where(contains_words(word, Turn.prompt)).exists(),
            )
            for word in text.split() or [""]
        )
    )


def _running(db: Db, session_ids: Sequence[str]) -> dict[str, str]:
    """The first unfinished order of each session, if any."""
    waiting = select(Order.session_id, Order.id).where(Order.session_id.in_(session_ids), Order.status.not_in(ENDED))
    # Newest first: the oldest order, which the others wait for, overwrites them in the dict.
    return {session_id: order_id for session_id, order_id in db.execute(waiting.order_by(Order.number.desc()))}


def _summary(row: _Row, running: str | None, emails: Mapping[str, str]) -> SessionSummary:
    chat = row.chat
    moments = (chat.created_at, row.began, row.ended)
    return SessionSummary(
        id=chat.id,
        name=chat.name,
        title=chat.name or chat.title or title(row.prompt or ""),
        project=row.project,
        owner=owner_text(chat.user_id, emails),
        mode=chat.mode,
        approve=chat.approve,
        thinking=chat.thinking,
        allow=chat.allow,
        limits=chat.limits,
        turns=row.turns or 0,
        running=running,
        leaf=chat.leaf_id,
        forked_from=chat.forked_from_id,
        compact=chat.compact,
        left=chat.left_leaf_id,
        created_at=chat.created_at,
        last_activity_at=max(moment for moment in moments if moment is not None),
        last_turn=row.last_turn,
    )


def _entries(
    db: Db, chat: ChatSession, entries: Sequence[SessionEntry], turns: dict[str, TurnDocument]
) -> Iterable[EntryDocument]:
    path = {entry.id for entry in way_to(db, chat.leaf_id)}
    labels = labels_of(entries)
    for entry in entries:
        yield EntryDocument(
            id=entry.id,
            kind=entry.kind,
            parent=entry.parent_id,
            session=entry.session_id,
            on_path=entry.id in path,
            is_leaf=entry.id == chat.leaf_id,
            error=bool(entry.data.get("error")),
            label=labels.get(entry.id) or None,
            data=entry.data,
            turn=turns.get(entry.order_id or ""),
            at=entry.at,
        )


def _turns(db: Db, order_ids: Sequence[str]) -> dict[str, TurnDocument]:
    named = select(Turn, Order).join(Order, Order.id == Turn.order_id).where(Turn.order_id.in_(order_ids))
    # Not the figures stored with the turn: late reports of a lost run correct its costs after the end.
    spent = totals.of_orders(db, order_ids)
    return {order.id: _turn(turn, order, stats_document(spent[order.id])) for turn, order in db.execute(named)}


def _turn(turn: Turn, order: Order, stats: StatsDocument) -> TurnDocument:
    ended = turn.status != TurnStatus.PROCESSING
    return TurnDocument(
        order=order.id,
        user=turn.user,
        prompt=turn.prompt,
        provider=turn.provider,
        model=turn.model,
        mode=turn.mode,
        status=turn.status,
        reason=order.reason,
        response=turn.response,
        branch=order.branch,
        head_commit=order.head_commit,
        stats=stats if ended else stats.model_copy(update={"duration_label": "pending"}),
        created_at=turn.created_at,
        ended_at=turn.ended_at,
    )
