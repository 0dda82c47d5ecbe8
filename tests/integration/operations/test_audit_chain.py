"""The chain of the audit log: what a check finds after tampering, what a kept head proves, and what pruning leaves."""

from __future__ import annotations

import base64
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from nacl.signing import SigningKey, VerifyKey
from sqlalchemy import delete, func, select, update

from control_plane.core import Caller, Core
from control_plane.db.audit import AuditHead, AuditKey, AuditRecord, AuditSeal
from control_plane.db.audit_chain import AuditEntry, append, hash_of_row
from control_plane.declarations.audit import PruneRequest
from control_plane.operations.audit import keeping
from control_plane.operations.audit.keeping import prune, prune_expired, seal_head
from control_plane.operations.audit.reading import list_records
from control_plane.operations.audit.verifying import show_head, verify
from shared.errors import Forbidden, Invalid, NotFound
from tests.support.made import later


def act(core: Core, times: int = 1) -> None:
    """Append records."""
    for _ in range(times):
        with core.database.write() as db:
            append(db, AuditEntry(core.clock.now(), "token", "kim", "submit", target="o" * 12))


def change(core: Core, statement: Any) -> None:
    """What somebody with access to the database does."""
    with core.database.write() as db:
        db.execute(statement)


def rewrite_from(core: Core, seq: int) -> None:
    """Give all records from `seq` on, and the head, the hashes that their content has now."""
    with core.database.write() as db:
        previous = db.scalar(select(AuditRecord.hash).where(AuditRecord.seq == seq - 1))
        for row in db.scalars(select(AuditRecord).where(AuditRecord.seq >= seq).order_by(AuditRecord.seq)):
            row.previous_hash = previous
            previous = row.hash = hash_of_row(row)
        db.execute(update(AuditHead).values(hash=previous))


def found(core: Core, admin: Caller) -> tuple[str, int | None]:
    result = verify(core, admin)
    return result.problem, result.problem_seq


OF_FOUR = AuditRecord.seq == 4
HASHED_BEFORE = "1a97e7a3eb38b2060b563e5b914f6307ce165f9617de3cf8a8f88a9f29bec537"
"""The hash that the version before user ids stored for this record."""


@pytest.mark.dialects
def test_an_untouched_chain_is_intact_and_says_how_far_it_is_signed(core: Core, admin: Caller) -> None:
    assert verify(core, admin).model_dump() == dict.fromkeys(("problem_seq", "first", "last")) | {
        "problem": "", "records": 0, "anchor": 0, "sealed_to": 0
    }  # fmt: skip
    act(core, 5)
    seal_head(core)
    act(core)
    assert verify(core, admin).model_dump() == {
        "problem": "", "problem_seq": None, "records": 6, "first": 1, "last": 6, "anchor": 0, "sealed_to": 5
    }  # fmt: skip


@pytest.mark.parametrize(
    ("tampering", "problem"),
    [
        (update(AuditRecord).where(OF_FOUR).values(actor="eve"), ("changed", 4)),
        (update(AuditRecord).where(OF_FOUR).values(count=2), ("changed", 4)),
        (update(AuditRecord).where(OF_FOUR).values(actor_user_id="u" * 12), ("changed", 4)),
        (update(AuditRecord).where(OF_FOUR).values(hash="0" * 64), ("changed", 4)),
        (delete(AuditRecord).where(OF_FOUR), ("missing", 4)),
        (delete(AuditRecord).where(AuditRecord.seq < 3), ("missing", 1)),
        (delete(AuditRecord).where(AuditRecord.seq > 5), ("cut", 6)),
        (delete(AuditHead), ("cut", 7)),
        (update(AuditSeal).values(hash="0" * 64), ("seal", 6)),
        (update(AuditSeal).values(signature="AAAA"), ("seal", 6)),
    ],
)
def test_tampering_is_found(core: Core, admin: Caller, tampering: Any, problem: tuple[str, int]) -> None:
    act(core, 6)
    seal_head(core)
    change(core, tampering)
    assert found(core, admin) == problem


def test_a_record_of_a_version_without_user_ids_keeps_its_hash(core: Core, admin: Caller) -> None:
    fixed = datetime(2026, 11, 22, tzinfo=UTC)
    with core.database.write() as db:
        append(db, AuditEntry(fixed, "token", "kim", "submit", target="o" * 12))
        append(db, AuditEntry(fixed, "token", "kim", "submit", target="o" * 12, actor_user_id="u" * 12))
    with core.database.read() as db:
        hashes = db.scalars(select(AuditRecord.hash).order_by(AuditRecord.seq)).all()
    assert (hashes[0], found(core, admin)) == (HASHED_BEFORE, ("", None))


def test_a_chain_that_is_rewritten_with_right_hashes_lacks_the_signature(core: Core, admin: Caller) -> None:
    act(core, 6)
    seal_head(core)
    change(core, update(AuditRecord).where(OF_FOUR).values(actor="eve"))
    rewrite_from(core, 4)
    assert found(core, admin) == ("seal", 6)


def test_a_signature_with_a_key_that_the_master_key_did_not_seal_is_not_genuine(core: Core, admin: Caller) -> None:
    act(core, 3)
    seal_head(core)
    forged = SigningKey.generate()
    with core.database.write() as db:
        db.execute(
            update(AuditKey).values(
                public_key=base64.b64encode(bytes(forged.verify_key)).decode(),
                sealed_private_key=base64.b64encode(bytes(forged)).decode(),
            )
        )
    assert found(core, admin) == ("seal", 3)


def test_a_kept_head_shows_that_the_log_was_rolled_back_or_replaced(core: Core, admin: Caller) -> None:
    act(core, 3)
    seal_head(core)
    act(core, 3)
    seal_head(core)
    kept = show_head(core, admin)
    assert kept.seq == 6
    assert verify(core, admin, seq=6, hash=kept.hash).problem == ""
    change(core, delete(AuditRecord).where(AuditRecord.seq > 3))
    change(core, delete(AuditSeal).where(AuditSeal.seq > 3))
    with core.database.write() as db:
        last = db.scalar(select(AuditRecord.hash).where(AuditRecord.seq == 3))
        db.execute(update(AuditHead).values(seq=3, hash=last))
    assert found(core, admin) == ("", None)
    assert verify(core, admin, seq=6, hash=kept.hash).problem == "kept head"


def test_a_head_is_signed_once_and_checked_with_the_printed_public_key_alone(core: Core, admin: Caller) -> None:
    with pytest.raises(NotFound):
        show_head(core, admin)
    act(core)
    for _ in range(3):
        seal_head(core)
    with core.database.read() as db:
        assert db.scalar(select(func.count()).select_from(AuditSeal)) == 1
    head = show_head(core, admin)
    at = head.at.isoformat()
    text = f'{{"at":"{at}","hash":"{head.hash}","kind":"head","seq":1}}'.encode()
    VerifyKey(base64.b64decode(head.public_key)).verify(text, base64.b64decode(head.signature))


@pytest.mark.dialects
def test_pruning_leaves_a_signed_anchor_from_which_the_chain_verifies(core: Core, admin: Caller) -> None:
    act(core, 4)
    seal_head(core)
    kept = show_head(core, admin)
    later(core, days=200)
    act(core, 2)
    later(core, days=200)
    prune_expired(core)
    seal_head(core)
    assert verify(core, admin).model_dump() == {
        "problem": "", "problem_seq": None, "records": 3, "first": 5, "last": 7, "anchor": 4, "sealed_to": 7
    }  # fmt: skip
    record = list_records(core, admin, everywhere=True)[0]
    assert (record.actor, record.action, record.target) == ("retention", "prune_audit_log", "1-4")
    assert verify(core, admin, seq=4, hash=kept.hash).problem == ""
    assert verify(core, admin, seq=4, hash="0" * 64).problem == "kept head"
    with pytest.raises(NotFound):
        verify(core, admin, seq=3, hash="0" * 64)
    change(core, update(AuditSeal).where(AuditSeal.kind == "anchor").values(seq=5))
    assert verify(core, admin).problem == "seal"


def test_the_log_is_pruned_by_whole_days_and_goes_on_when_everything_is_pruned(core: Core, admin: Caller) -> None:
    act(core, 3)
    later(core, days=364, hours=23)
    prune_expired(core)
    assert verify(core, admin).records == 3
    later(core, days=2)
    prune_expired(core)
    prune_expired(core)
    result = verify(core, admin)
    assert (result.problem, result.anchor, result.records) == ("", 3, 1)


def test_only_admins_of_all_organizations_verify(core: Core, admin: Caller) -> None:
    for call in (verify, show_head):
        with pytest.raises(Forbidden):
            call(core, replace(admin, everywhere=False))
    with pytest.raises(Invalid):
        verify(core, admin, seq=1)


@pytest.mark.dialects
def test_an_admin_prunes_what_is_older_than_a_day_in_batches_and_is_named_in_the_record(
    core: Core, admin: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "_AT_ONCE", 3)
    act(core, 8)
    later(core, days=2)
    act(core)
    with pytest.raises(Invalid):
        prune(core, admin, PruneRequest(before=core.clock.now()))
    pruned = prune(core, admin, PruneRequest(before=core.clock.now() - timedelta(days=1)))
    assert (pruned.records, pruned.anchor) == (8, 8)
    records = list_records(core, admin, everywhere=True)
    assert [(each.seq, each.outcome) for each in records] == [(11, "changed"), (10, "refused"), (9, "changed")]
    assert (records[0].actor, records[0].action, records[0].target) == ("system", "prune_audit_log", "1-8")
    assert found(core, admin) == ("", None)
    assert prune(core, admin, PruneRequest(before=core.clock.now() - timedelta(days=1))).records == 0
