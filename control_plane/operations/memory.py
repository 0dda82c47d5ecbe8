"""Notes for later orders: listed, kept, refused, changed and deleted by users."""

from __future__ import annotations

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from control_plane.contract.declarations import memory as declared
from control_plane.contract.declarations.memory import MemoryDocument, MemoryEdit, MemoryRequest, MemoryState
from control_plane.contract.validation.checks import check_text, shown
from control_plane.core import Caller, Core
from control_plane.core.lookups.organizations import locked_organization
from control_plane.core.lookups.projects import find_project
from control_plane.db.memory import MemoryNote
from control_plane.db.projects import Project
from control_plane.operations.gateway import performs
from control_plane.operations.row_documents import document_of
from control_plane.orders.memory_notes import MAX_BYTES, has_secret, in_scope
from shared.errors import Conflict, Invalid, NotFound
from shared.memory import MAX_NOTE, MAX_REASON, one_line
from shared.names import new_id


@performs(declared.ADD)
def add(core: Core, caller: Caller, request: MemoryRequest) -> MemoryDocument:
    """Write a note that is kept at once.

    Raises Invalid for a long one or one with a secret, NotFound for an unknown project, Conflict if there is no room.
    """
    text, why = checked_note(request)

    def work(db: Session) -> MemoryDocument:
        locked_organization(db, caller.organization_id)
        project = request.project
        row = MemoryNote(
            id=new_id(),
            organization_id=caller.organization_id,
            project_id=find_project(db, caller.organization_id, project).id if project is not None else None,
            text=text,
            why=why,
            state="proposed",
            created_at=core.clock.now(),
        )
        _keep(db, core, caller, row)
        db.add(row)
        db.flush()
        return _document(db, row)

    return core.database.transact(work)


@performs(declared.LIST)
def list_(
    core: Core, caller: Caller, *, project: str | None = None, state: MemoryState | None = None, limit: int = 1000
) -> list[MemoryDocument]:
    """The notes, newest first; refused ones only if asked for. Raises NotFound for an unknown project."""
    with core.database.read() as db:
        wanted = _notes(caller).where(MemoryNote.state == state if state else MemoryNote.state != "refused")
        if project is not None:
            wanted = wanted.where(MemoryNote.project_id == find_project(db, caller.organization_id, project).id)
        newest = wanted.order_by(MemoryNote.created_at.desc(), MemoryNote.id.desc()).limit(limit)
        return [_document(db, row) for row in db.scalars(newest)]


@performs(declared.SHOW)
def show(core: Core, caller: Caller, note_id: str) -> MemoryDocument:
    """One note. Raises NotFound."""
    with core.database.read() as db:
        return _document(db, _find(db, caller, note_id))


@performs(declared.ACCEPT)
def accept(core: Core, caller: Caller, note_id: str) -> MemoryDocument:
    """Keep a note; no effect on one that is kept. Raises NotFound, and Conflict if it was refused or lacks room."""

    def work(db: Session) -> MemoryDocument:
        row = _locked(db, caller, note_id)
        if row.state == "refused":
            raise Conflict(
                f"note {row.id} was already refused by {row.decided_by or 'a user'}",
                code="E-MEMORY-REFUSED",
                next=f"fleet dismiss memory:{row.id} --undo    then: fleet memory accept {row.id}",
            )
        if row.state != "kept":
            _keep(db, core, caller, row)
        return _document(db, row)

    return core.database.transact(work)


@performs(declared.REFUSE)
def refuse(core: Core, caller: Caller, note_id: str) -> MemoryDocument:
    """Refuse a proposed note; no effect on one that is refused. Raises NotFound, and Conflict for one that is kept."""

    def work(db: Session) -> MemoryDocument:
        row = _locked(db, caller, note_id)
        if row.state == "kept":
            raise Conflict(
                f"note {row.id} was already kept by {row.decided_by or 'a user'}",
                code="E-MEMORY-KEPT",
                why="orders may have worked with it",
                next=f"fleet memory rm {row.id}",
            )
        if row.state != "refused":
            _decide(core, caller, row, "refused")
        return _document(db, row)

    return core.database.transact(work)


@performs(declared.EDIT)
def edit(core: Core, caller: Caller, note_id: str, changes: MemoryEdit) -> MemoryDocument:
    """Change the fields that are set; the state stays.

    Raises NotFound, Invalid for a long note or one with a secret, and Conflict if there is no room for a kept one.
    """
    text = _checked("the note", changes.text, MAX_NOTE) if changes.text is not None else None
    why = _reason(changes.why) if changes.why is not None else None

    def work(db: Session) -> MemoryDocument:
        row = _locked(db, caller, note_id)
        if text is not None:
            if row.state == "kept":
                _check_room(db, row, text)
            row.text = text
        row.why = row.why if why is None else why
        db.flush()
        return _document(db, row)

    return core.database.transact(work)


@performs(declared.REMOVE)
def remove(core: Core, caller: Caller, note_id: str) -> MemoryDocument:
    """Delete a note in any state, and return it as it was. Raises NotFound."""

    def work(db: Session) -> MemoryDocument:
        row = _locked(db, caller, note_id)
        removed = _document(db, row)
        db.delete(row)
        return removed

    return core.database.transact(work)


def _keep(db: Session, core: Core, caller: Caller, row: MemoryNote) -> None:
    # A proposal was checked when it arrived, but an older version may have known fewer kinds of secrets.
    _checked("the note", row.text, MAX_NOTE)
    _check_room(db, row, row.text)
    _decide(core, caller, row, "kept")


def _decide(core: Core, caller: Caller, row: MemoryNote, state: MemoryState) -> None:
    row.state, row.decided_at, row.decided_by = state, core.clock.now(), caller.user


def _check_room(db: Session, row: MemoryNote, text: str) -> None:
    """Raise Conflict if the kept notes would have more than MAX_BYTES: no older note makes room by itself."""
    others = MemoryNote.organization_id == row.organization_id, MemoryNote.state == "kept", in_scope(row.project_id)
    kept = db.scalars(select(MemoryNote.text).where(*others, MemoryNote.id != row.id)).all()
    size = sum(len(each.encode()) for each in [*kept, text])
    if size > MAX_BYTES:
        project = db.get_one(Project, row.project_id) if row.project_id is not None else None
        whose = f"project {project.slug}" if project else "the organization"
        raise Conflict(
            f"the notes of {whose} would have {size:,} bytes; {MAX_BYTES:,} are allowed",
            code="E-MEMORY-FULL",
            why="they are part of every prompt, and no note is dropped automatically",
            next=f"fleet memory ls{f' --project {project.slug}' if project else ''}    then: fleet memory rm ID",
        )


def checked_note(request: MemoryRequest) -> tuple[str, str]:
    """The note and its reason, as they are stored. Raises Invalid."""
    return _checked("the note", request.text, MAX_NOTE), _reason(request.why)


def _checked(what: str, text: str, limit: int) -> str:
    line = one_line(text)
    if has_secret(line):
        raise Invalid(
            f"{what} contains what looks like a secret",
            code="E-MEMORY-SECRET",
            why="notes are sent to models with every order",
            next="name the variable or the file that holds it instead",
        )
    return check_text(what, line, limit=limit)


def _reason(text: str) -> str:
    return _checked("the reason", text, MAX_REASON) if one_line(text) else ""


def _notes(caller: Caller) -> Select[MemoryNote]:
    return select(MemoryNote).where(MemoryNote.organization_id == caller.organization_id)


def _locked(db: Session, caller: Caller, note_id: str) -> MemoryNote:
    """The note, with the lock under which the notes of its organization are counted."""
    locked_organization(db, caller.organization_id)
    return _find(db, caller, note_id)


def _find(db: Session, caller: Caller, note_id: str) -> MemoryNote:
    row = db.scalar(_notes(caller).where(MemoryNote.id == note_id))
    if row is None:
        raise NotFound(f"note {shown(note_id)} not found", code="E-MEMORY-404", next="fleet memory ls")
    return row


def _document(db: Session, row: MemoryNote) -> MemoryDocument:
    project = db.get_one(Project, row.project_id).slug if row.project_id is not None else None
    return document_of(MemoryDocument, row, project=project, order=row.order_id)
