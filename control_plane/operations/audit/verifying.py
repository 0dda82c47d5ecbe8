"""Verify the chain of the audit log, and show its newest signed head."""

from __future__ import annotations

from contextlib import closing

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.contract.declarations import audit as declared
from control_plane.contract.declarations.audit import AuditHeadDocument, AuditVerificationDocument, Problem
from control_plane.core import Caller, Core
from control_plane.core.audit_seals import is_genuine, verify_keys
from control_plane.core.vault import Vault
from control_plane.db.audit import AuditHead, AuditKey, AuditRecord, AuditSeal
from control_plane.db.audit_chain import GENESIS, hash_of_row
from control_plane.operations.gateway import performs
from control_plane.operations.row_documents import document_of
from shared.errors import Invalid, NotFound

Place = tuple[int, str]
"""The number and the hash of a record."""
_AT_ONCE = 1000


@performs(declared.HEAD)
def show_head(core: Core, _: Caller, /) -> AuditHeadDocument:
    """The newest seal, with the public key. Raises NotFound as long as nothing was signed."""
    with core.database.read() as db:
        found = newest_seal(db)
    if found is None:
        raise NotFound(
            "no head of the audit log was signed yet",
            code="E-AUDIT-HEAD",
            why="the supervisor signs the newest record once a minute",
            next="repeat this in a minute; if it persists: fleet doctor",
        )
    return found


def newest_seal(db: Session) -> AuditHeadDocument | None:
    """The newest seal, with the public key, if there is one."""
    seal = db.scalar(select(AuditSeal).order_by(AuditSeal.seq.desc()).limit(1))
    if seal is None:
        return None
    return document_of(AuditHeadDocument, seal, public_key=db.get_one(AuditKey, seal.key_id).public_key)


@performs(declared.VERIFY)
def verify(core: Core, _: Caller, /, seq: int | None = None, hash: str | None = None) -> AuditVerificationDocument:
    """What a check of all records, seals and the head finds. It ends at the first problem.

    With `seq` and `hash`, a head that was kept elsewhere must be part of the chain. Raises Invalid if only one of them
    is given, NotFound if its record was pruned.
    """
    # Records are added, and pruned, while the check runs.
    with core.database.snapshot() as db:
        check = _ChainCheck(db, core.vault, _kept(seq, hash))
        problem: Problem = ""
        try:
            check.run()
        except _Broken as broken:
            problem = broken.problem
    return AuditVerificationDocument(
        problem=problem,
        problem_seq=check.seq if problem else None,
        records=check.records,
        first=check.anchor + 1 if check.records else None,
        last=check.anchor + check.records if check.records else None,
        anchor=check.anchor,
        sealed_to=check.sealed_to,
    )


class _Broken(Exception):
    """The chain is not intact."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.problem = problem


class _ChainCheck:
    """Follows the chain from its anchor to its head."""

    def __init__(self, db: Session, vault: Vault, kept: Place | None) -> None:
        self._db = db
        self._keys = verify_keys(db, vault)
        self._kept = kept
        self._signed: dict[int, str] = {}
        """Hashes that a seal confirms, by number; those up to `seq` were compared."""
        self._hash = GENESIS
        self.seq = 0
        """The record that is being checked."""
        self.anchor = 0
        self.records = 0
        self.sealed_to = 0

    def run(self) -> None:
        """Raises _Broken at the first problem."""
        self._read_seals()
        self._compare_kept()
        records = select(AuditRecord).order_by(AuditRecord.seq).execution_options(yield_per=_AT_ONCE)
        with closing(self._db.scalars(records)) as rows:
            for row in rows:
                self._follow(row)
        self._compare_head()

    def _read_seals(self) -> None:
        for seal in self._db.scalars(select(AuditSeal).order_by(AuditSeal.seq)):
            self.seq = seal.seq
            if not is_genuine(seal, self._keys):
                raise _Broken("seal")
            if seal.kind == "anchor":
                self.anchor, self._hash = seal.seq, seal.hash
            self._signed[seal.seq] = seal.hash
        self.seq = self.anchor
        self.sealed_to = max(self._signed, default=0)

    def _compare_kept(self) -> None:
        if self._kept is None:
            return
        seq, kept_hash = self._kept
        if seq < self.anchor:
            raise NotFound(
                f"record {seq} of the audit log was pruned: its head can no longer be compared",
                code="E-AUDIT-PRUNED",
                why=f"records up to {self.anchor} were older than the retention",
                next="fleet audit verify    and keep a newer head: fleet audit head",
            )
        found = self._db.scalar(select(AuditRecord.hash).where(AuditRecord.seq == seq))
        if (self._hash if seq == self.anchor else found) != kept_hash:
            self.seq = seq
            raise _Broken("kept head")

    def _follow(self, row: AuditRecord) -> None:
        self.seq += 1
        if row.seq != self.seq:
            raise _Broken("missing")
        if row.previous_hash != self._hash or row.hash != hash_of_row(row):
            raise _Broken("changed")
        if self._signed.get(row.seq, row.hash) != row.hash:
            raise _Broken("seal")
        self._hash = row.hash
        self.records += 1

    def _compare_head(self) -> None:
        head = self._db.execute(select(AuditHead.seq, AuditHead.hash)).one_or_none()
        found = (head.seq, head.hash) if head else (0, GENESIS)
        if found != (self.seq, self._hash) or self.sealed_to > self.seq:
            self.seq += 1
            raise _Broken("cut")


def _kept(seq: int | None, kept_hash: str | None) -> Place | None:
    if seq is not None and kept_hash is not None:
        return seq, kept_hash
    if seq is None and kept_hash is None:
        return None
    raise Invalid(
        "a kept head needs its number and its hash",
        code="E-AUDIT-KEPT",
        next="fleet audit verify --head NUMBER:HASH",
    )
