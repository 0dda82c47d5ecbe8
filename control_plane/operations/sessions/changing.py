"""Create and change sessions. The point that a session continues from changes only while it is idle (O-003)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy.orm import Session as Db

from control_plane.contract.declarations import sessions as declared
from control_plane.contract.declarations.session_documents import CompactDocument, SessionDocument
from control_plane.contract.declarations.sessions import (
    MAX_SESSION_NAME,
    CompactRequest,
    ForkRequest,
    LabelRequest,
    SessionEdit,
    SessionRequest,
    SwitchRequest,
)
from control_plane.contract.validation.checks import check_text
from control_plane.core import Caller, Core
from control_plane.core.lookups.modes import find_mode
from control_plane.core.lookups.projects import find_project
from control_plane.core.lookups.sessions import refuse_while_busy, session_of, unfinished
from control_plane.db.audit_chain import concerns
from control_plane.db.orders import Order
from control_plane.db.projects import Project
from control_plane.db.sessions import ChatSession, SessionEntry
from control_plane.drones.inbox import notify_drone
from control_plane.operations.gateway import performs
from control_plane.operations.sessions.reading import session_document
from control_plane.orders.conversations.entries import EntryKind, locked, write_entry
from control_plane.orders.conversations.left_branches import left_by
from control_plane.orders.conversations.new_session import new_session
from control_plane.orders.conversations.places import find_place
from control_plane.orders.conversations.steering_messages import has_run
from shared.control import Compact
from shared.errors import Invalid
from shared.names import new_id

MAX_ALLOWED = 100
MAX_PATTERN = 2000
MAX_LABEL = 255
MAX_INSTRUCTIONS = 10_000


@performs(declared.CREATE)
def create(core: Core, caller: Caller, request: SessionRequest) -> SessionDocument:
    """Create a session without turns. Raises NotFound for the project, Invalid for name and patterns."""
    check_session(request.name, request.allow)
    with core.database.write() as db:
        project = find_project(db, caller.organization_id, request.project)
        find_mode(db, project, request.mode)
        chat = new_session(core, project, request.mode, caller.user_id)
        chat.name, chat.approve, chat.allow = request.name, request.approve, list(request.allow)
        chat.thinking, chat.limits = request.thinking, request.limits
        db.add(chat)
        concerns(chat.id)
        return session_document(db, caller, chat)


@performs(declared.EDIT)
def edit(core: Core, caller: Caller, session_id: str, changes: SessionEdit) -> SessionDocument:
    """Change the name, the mode and the permissions of its orders, also while one runs.

    Changes of name and mode are recorded in the tree, at the session's current leaf.
    """
    check_session(changes.name or "", changes.allow or ())

    def work(db: Db, chat: ChatSession) -> None:
        if changes.name is not None and changes.name != chat.name:
            _note(db, core, chat, "name", {"from": chat.name, "to": changes.name})
            chat.name = changes.name
        if changes.mode is not None and changes.mode != chat.mode:
            find_mode(db, db.get_one(Project, chat.project_id), changes.mode)
            _note(db, core, chat, "mode_change", {"from": chat.mode, "to": changes.mode})
            chat.mode = changes.mode
        chat.approve = changes.approve or chat.approve
        chat.thinking = changes.thinking or chat.thinking
        chat.restack = chat.restack if changes.restack is None else changes.restack
        chat.allow = chat.allow if changes.allow is None else list(changes.allow)
        chat.limits = chat.limits if changes.limits is None else changes.limits

    return _changed(core, caller, session_id, work)


@performs(declared.SWITCH)
def switch(core: Core, caller: Caller, session_id: str, request: SwitchRequest) -> SessionDocument:
    """Continue the session from another entry of its tree. The next turn may summarize the branch that is left.

    Raises NotFound for an unknown entry, Conflict while an order of the session has not ended.
    """

    def work(db: Db, chat: ChatSession) -> None:
        refuse_while_busy(db, chat)
        place = _id(find_place(db, chat, request.entry))
        write_entry(db, core, chat, "leaf", parent_id=place, data={"from": chat.leaf_id, "to": place})
        chat.left_leaf_id = left_by(db, chat.leaf_id, place) if request.summarize else None
        chat.leaf_id = place

    return _changed(core, caller, session_id, work)


@performs(declared.FORK)
def fork(core: Core, caller: Caller, session_id: str, request: ForkRequest) -> SessionDocument:
    """Create a session that continues from an entry of this one, which stays unchanged.

    Raises NotFound for an unknown entry, Conflict while an order of the session has not ended.
    """
    check_session(request.name or "", ())
    with core.database.write() as db:
        old = locked(db, session_of(db, caller.organization_id, session_id).id)
        refuse_while_busy(db, old)
        place = old.leaf_id if request.at is None else _id(find_place(db, old, request.at))
        new = _fork_of(core, caller, old, place, request.name)
        db.add(new)
        # The first entry of the fork: it marks where the tree of the fork begins, even after its leaf moves.
        write_entry(db, core, new, "leaf", parent_id=place, data={"forked_from": old.id, "to": place})
        return session_document(db, caller, new)


@performs(declared.LABEL)
def label(core: Core, caller: Caller, session_id: str, request: LabelRequest) -> SessionDocument:
    """Give a turn a label, which can then be used as its name; an empty text removes the label."""
    check_text("the label", request.text, limit=MAX_LABEL, empty=True)

    def work(db: Db, chat: ChatSession) -> None:
        place = find_place(db, chat, request.entry)
        if place is None:
            raise Invalid("the root cannot have a label", code="E-SESSION-LABEL", next="choose a turn")
        write_entry(db, core, chat, "label", parent_id=place.id, data={"text": request.text})

    return _changed(core, caller, session_id, work)


@performs(declared.COMPACT)
def compact(core: Core, caller: Caller, session_id: str, request: CompactRequest) -> CompactDocument:
    """Request a compaction: a summary replaces the conversation so far, before the running order's next model call.

    Without a running order, the next run begins with the compaction. The request stays until a run has done it, even
    if the notified run is lost.
    """
    check_text("the instructions", request.instructions, limit=MAX_INSTRUCTIONS, empty=True)
    with core.database.write() as db:
        chat = locked(db, session_of(db, caller.organization_id, session_id).id)
        chat.compact = request.instructions
        _note(db, core, chat, "compaction", {"asked_by": caller.user, "instructions": request.instructions})
        order = next(iter(unfinished(db, chat.id)), None)
        notified = order is not None and _notify_run(db, core, order, request.instructions)
    if notified:
        core.broker.wake()
    return CompactDocument(
        session=chat.id, order=order.id if notified and order else None, told=_sentence(order, notified)
    )


def _notify_run(db: Db, core: Core, order: Order, instructions: str) -> bool:
    """Notify the order's run if it has begun; return whether it was notified."""
    if not has_run(order) or order.run_id is None or order.drone_id is None:
        return False
    notify_drone(db, core, order.drone_id, Compact(run_id=order.run_id, instructions=instructions), order.run_id)
    return True


def _sentence(order: Order | None, notified: bool) -> str:
    if order is None:
        return "The session is idle: its next turn compacts before its first model call."
    if notified:
        return f"Order {order.id} compacts before its next model call."
    return f"Order {order.id} is {order.status}: its run starts with the compaction."


def _changed(core: Core, caller: Caller, session_id: str, work: Callable[[Db, ChatSession], None]) -> SessionDocument:
    """Do `work` on the locked session and return the resulting session."""
    with core.database.write() as db:
        chat = locked(db, session_of(db, caller.organization_id, session_id).id)
        work(db, chat)
        return session_document(db, caller, chat)


def _note(db: Db, core: Core, chat: ChatSession, kind: EntryKind, data: dict[str, Any]) -> None:
    write_entry(db, core, chat, kind, parent_id=chat.leaf_id, data=data)


def _fork_of(core: Core, caller: Caller, old: ChatSession, place: str | None, name: str | None) -> ChatSession:
    return ChatSession(
        id=new_id(),
        organization_id=old.organization_id,
        project_id=old.project_id,
        name=name if name is not None else old.name,
        title=old.title,
        mode=old.mode,
        approve=old.approve,
        thinking=old.thinking,
        allow=list(old.allow),
        limits=dict(old.limits),
        leaf_id=place,
        compact=None,
        forked_from_id=old.id,
        user_id=caller.user_id,
        created_at=core.clock.now(),
    )


def check_session(name: str, allow: Sequence[str]) -> None:
    """Raise Invalid for a name or patterns that a session cannot have."""
    check_text("the name", name, limit=MAX_SESSION_NAME, empty=True)
    if len(allow) > MAX_ALLOWED:
        raise Invalid(f"{len(allow)} command patterns given; {MAX_ALLOWED} are allowed", code="E-ORDER-ALLOW")
    for pattern in allow:
        check_text("an --allow pattern", pattern, limit=MAX_PATTERN)


def _id(place: SessionEntry | None) -> str | None:
    return place.id if place is not None else None
