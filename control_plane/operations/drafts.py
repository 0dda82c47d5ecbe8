"""Keep texts that users typed and have not sent yet: one for each author and subject, with a version."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from control_plane.contract.declarations import drafts as declared
from control_plane.contract.declarations.drafts import DraftDocument, DraftEdit, DraftSummary
from control_plane.contract.validation.checks import is_storable, shown
from control_plane.contract.validation.stale_writes import StaleWrite
from control_plane.core import Caller, Core
from control_plane.core.lookups.users import author_id
from control_plane.db import first_write
from control_plane.db.drafts import SENT, UNSENT, SavedDraft
from control_plane.operations.gateway import performs
from shared.errors import Conflict, Invalid, Refused, TooLarge

MAX_TEXT = 64 * 1024
"""Bytes."""
MAX_PROMPT = 1_500_000
"""Bytes of the prompt of a new order, which may be long before it is shortened."""
PROMPTS = re.compile(r"new-order|order:[^:]+:again|session:[^:]+:message")
MAX_DRAFTS = 200
"""For each author in an organization."""


class AlreadySent(Conflict):
    """A form with the same key was sent before, and what it asked for was done."""

    def __init__(self) -> None:
        super().__init__("this form was already sent", code="E-FORM-SENT", next="reload the page")


@performs(declared.LIST)
def list_drafts(core: Core, caller: Caller) -> list[DraftSummary]:
    """The caller's drafts without their texts, most recently changed first."""
    own = select(SavedDraft.subject, SavedDraft.version, SavedDraft.updated_at).where(*_of(caller), UNSENT)
    with core.database.read() as db:
        rows = db.execute(own.order_by(SavedDraft.updated_at.desc(), SavedDraft.number.desc())).all()
    return [DraftSummary(subject=subject, version=version, updated_at=at) for subject, version, at in rows]


@performs(declared.SHOW)
def show(core: Core, caller: Caller, subject: str) -> DraftDocument:
    """The caller's draft; an empty one with version 0 if there is none."""
    with core.database.read() as db:
        return _document(subject, _find(db, caller, subject))


@performs(declared.SAVE)
def save(core: Core, caller: Caller, subject: str, request: DraftEdit) -> DraftDocument:
    """Store the text if the draft still has the version that it replaces.

    Raises StaleWrite with the stored draft if not, TooLarge for the text, Conflict for more than 200 drafts.
    """
    _check(subject, request.text)

    def write(db: Session) -> DraftDocument:
        row = _find(db, caller, subject, lock=True)
        if (row.version if row else 0) != request.version:
            raise _stale(subject, row)
        if row is None:
            row = _new(db, caller, subject)
        now = core.clock.now()
        # A time, so that a draft that was deleted and begun again never has a version that another window still knows.
        row.version = max(row.version + 1, int(now.timestamp() * 1000))
        row.text, row.updated_at = request.text, now
        db.add(row)
        db.flush()
        return _document(subject, row)

    try:
        return core.database.transact(write)
    except IntegrityError:
        # Another window began the same draft between our look and our write.
        raise _stale_now(core, caller, subject) from None


@performs(declared.REMOVE)
def remove(core: Core, caller: Caller, subject: str, version: int | None = None) -> DraftDocument:
    """Delete the draft, with `version` only if it still has that one. Raises StaleWrite if not."""

    def write(db: Session) -> DraftDocument:
        row = _find(db, caller, subject, lock=True)
        if row is not None and version not in {None, row.version}:
            raise _stale(subject, row)
        found = _document(subject, row)
        if row is not None:
            db.delete(row)
        return found

    return core.database.transact(write)


@contextmanager
def sending(core: Core, caller: Caller, key: str, texts: Mapping[str, str]) -> Iterator[None]:
    """Send texts, by the subjects of their drafts: the operation in the block is done once for each key.

    Its first transaction records the key and deletes the drafts. A draft with more than was sent is kept: it was typed
    in another window, or after the text was taken. Raises AlreadySent for a key that was used, also by a request at
    the same time. Without a key, only the drafts are deleted.
    """
    if key:
        with core.database.read() as db:
            _refuse_used(db, caller, key)

    def record(db: Session) -> None:
        if key:
            _record_key(db, core, caller, key)
        for subject, text in texts.items():
            row = _find(db, caller, subject, lock=True)
            if row is not None and text.strip().startswith(row.text.strip()):
                db.delete(row)

    with first_write.along(record) as joined:
        try:
            yield
        except Refused:
            # Refused after a first transaction: what is corrected may be sent with the same key.
            if key and joined.committed:
                remove(core, caller, SENT + key)
            raise


def _refuse_used(db: Session, caller: Caller, key: str) -> None:
    if _find(db, caller, SENT + key) is not None:
        raise AlreadySent


def _record_key(db: Session, core: Core, caller: Caller, key: str) -> None:
    _refuse_used(db, caller, key)
    now = core.clock.now()
    row = _begun(caller, SENT + key)
    row.version, row.updated_at = int(now.timestamp() * 1000), now
    db.add(row)
    try:
        db.flush()
    except IntegrityError:
        raise AlreadySent from None


def _of(caller: Caller) -> tuple[ColumnElement[bool], ...]:
    return SavedDraft.organization_id == caller.organization_id, SavedDraft.author == author_id(caller)


def _find(db: Session, caller: Caller, subject: str, *, lock: bool = False) -> SavedDraft | None:
    wanted = select(SavedDraft).where(*_of(caller), SavedDraft.subject == subject)
    return db.scalar(wanted.with_for_update() if lock else wanted)


def _new(db: Session, caller: Caller, subject: str) -> SavedDraft:
    count = db.scalar(select(func.count()).select_from(SavedDraft).where(*_of(caller), UNSENT)) or 0
    if count >= MAX_DRAFTS:
        raise Conflict(
            f"you have {count} drafts; {MAX_DRAFTS} are allowed",
            code="E-DRAFT-COUNT",
            next="send or delete one of them",
        )
    return _begun(caller, subject)


def _begun(caller: Caller, subject: str) -> SavedDraft:
    return SavedDraft(
        organization_id=caller.organization_id, author=author_id(caller), subject=subject, version=0, text=""
    )


def _check(subject: str, text: str) -> None:
    limit = MAX_PROMPT if PROMPTS.fullmatch(subject) else MAX_TEXT
    if not is_storable(text):
        raise Invalid("the draft contains a NUL character or an unpaired surrogate", code="E-TEXT").of(text)
    size = len(text.encode())
    if size > limit:
        raise TooLarge(
            f"the draft has {size:,} bytes; {limit:,} are allowed",
            code="E-DRAFT-SIZE",
            next="put long texts in a file of the repository and refer to that file",
        ).of(text)


def _document(subject: str, row: SavedDraft | None) -> DraftDocument:
    if row is None:
        return DraftDocument(subject=subject, text="", version=0, updated_at=None)
    return DraftDocument(subject=subject, text=row.text, version=row.version, updated_at=row.updated_at)


def _stale(subject: str, row: SavedDraft | None) -> StaleWrite:
    stored = _document(subject, row).model_dump(mode="json")
    what = "was changed" if row is not None else "was sent or deleted"
    return StaleWrite(
        f"the draft {shown(subject)} {what} in another window",
        code="E-DRAFT-STALE",
        next=f"compare it with the stored text, and save it with version {stored['version']}",
        stored=stored,
    )


def _stale_now(core: Core, caller: Caller, subject: str) -> StaleWrite:
    with core.database.read() as db:
        return _stale(subject, _find(db, caller, subject))
