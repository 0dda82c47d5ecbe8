"""The audit log: each change with its record or neither, each refusal, and a chain that shows tampering."""

from __future__ import annotations

import base64
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from nacl.signing import SigningKey, VerifyKey
from sqlalchemy import delete, event, func, select, update

from control_plane.contract.declarations.audit import AuditRecordDocument, PruneRequest
from control_plane.contract.declarations.providers import ProviderRequest
from control_plane.contract.declarations.tokens import ApiTokenDocument, ApiTokenRequest
from control_plane.contract.declarations.users import UserRequest
from control_plane.core import Caller, Core
from control_plane.core.audit_entries import entry_of
from control_plane.core.audit_seals import sealed_text
from control_plane.core.origin import RequestOrigin, coming_from
from control_plane.db.access import ApiToken
from control_plane.db.audit import AuditHead, AuditKey, AuditRecord, AuditSeal
from control_plane.db.audit_chain import AuditEntry, append, hash_of_row
from control_plane.db.projects import Provider
from control_plane.operations import projects, providers
from control_plane.operations.access import tokens, users
from control_plane.operations.access.logins import Browser
from control_plane.operations.audit import sealing
from control_plane.operations.audit.reading import list_records
from control_plane.operations.audit.sealing import prune, prune_expired, seal_head
from control_plane.operations.audit.verifying import show_head, verify
from control_plane.operations.drones.managing import show_drone
from control_plane.operations.orders.canceling import cancel
from shared.errors import FleetFault, Forbidden, Invalid, NotFound, Unauthenticated
from tests.support.made import later, make_project, submit
from tests.support.refusals import code_of

KIM, OTHER_KIM = "kim@example.org", "kim.lee@example.org"
OF_FOUR = AuditRecord.seq == 4
HASHED_BEFORE = "1a97e7a3eb38b2060b563e5b914f6307ce165f9617de3cf8a8f88a9f29bec537"
"""The hash that the version before user ids stored for the record of `AT_NOON`."""
FIRST = datetime.min.replace(tzinfo=timezone(timedelta(hours=5)))
LAST = datetime.max.replace(tzinfo=timezone(-timedelta(hours=5)))
"""Beyond what the calendar has in UTC."""
AT_NOON = AuditEntry(datetime(2026, 11, 22, tzinfo=UTC), "token", "kim", "submit", target="o" * 12)


def newest(core: Core, admin: Caller) -> AuditRecordDocument:
    return list_records(core, replace(admin, everywhere=True), everywhere=True, limit=1)[0]


def summed_up(record: AuditRecordDocument) -> tuple[str, str, str, str]:
    return record.action, record.target, record.outcome, record.code


def add_token(core: Core, admin: Caller, name: str = "", role: str = "viewer", **fields: Any) -> ApiTokenDocument:
    return tokens.create_api_token(core, admin, ApiTokenRequest(role=role, name=name, **fields))


def cancel_refused(core: Core, admin: Caller) -> None:
    assert code_of(lambda: cancel(core, admin, "o" * 12)) == "E-ORDER-404"


@pytest.mark.dialects
def test_a_change_is_recorded_with_its_actor_target_door_and_address(core: Core, admin: Caller) -> None:
    token = add_token(core, admin, "kim", "admin")
    kim = tokens.authenticate(core, str(token.token))
    make_project(core, admin)
    with coming_from(RequestOrigin("cli", "10.1.2.3")):
        order = submit(core, kim, "the secret plan")
    record = newest(core, admin)
    assert summed_up(record) == ("submit", order.id, "changed", "")
    assert (record.actor_kind, record.actor, record.actor_id) == ("token", "kim", token.id)
    assert (record.door, record.address, record.organization) == ("cli", "10.1.2.3", "default")
    assert (record.at, record.count) == (core.clock.now(), 1)
    assert "secret plan" not in record.model_dump_json()
    with core.database.write() as db:
        append(db, entry_of(core, admin, "show_provider", "x\ud800\0" + "y" * 500))
    assert newest(core, admin).target == "x\ufffd\ufffd" + "y" * 252


def test_of_two_users_of_one_name_the_record_says_which(core: Core, admin: Caller) -> None:
    made = [users.add(core, admin, UserRequest(email=email, name="Kim", role="admin")) for email in (KIM, OTHER_KIM)]
    for slug, each in zip(("web", "shop"), made, strict=True):
        token = add_token(core, admin, "laptop", "admin", user=each.email)
        make_project(core, tokens.authenticate(core, str(token.token)), slug)
    found = list_records(core, admin, action="add_project")
    assert [(each.actor, each.actor_user_id) for each in found] == [("Kim", each.id) for each in made[::-1]]
    assert list_records(core, admin, action="add_project", actor=made[0].id) == [found[1]]


def test_a_refusal_is_recorded_with_its_code_and_reading_is_not(core: Core, admin: Caller) -> None:
    tokens.list_api_tokens(core, admin)
    assert code_of(lambda: show_drone(core, admin, "nobody")) == "E-DRONE-404"
    assert list_records(core, admin, everywhere=True) == []

    viewer = replace(admin, role="viewer", everywhere=False)
    assert code_of(lambda: add_token(core, viewer, "mallory", "admin")) == "E-ROLE"
    assert summed_up(newest(core, admin)) == ("create_api_token", "mallory", "refused", "E-ROLE")
    cancel_refused(core, admin)
    assert summed_up(newest(core, admin)) == ("cancel_order", "o" * 12, "refused", "E-ORDER-404")

    make_project(core, admin)
    order = submit(core, admin)
    before = newest(core, admin).seq
    cancel(core, admin, order.id)
    record = newest(core, admin)
    assert (record.seq, record.action, record.target) == (before + 1, "cancel_order", order.id)


def test_a_change_whose_record_cannot_be_written_does_not_happen(core: Core, admin: Caller) -> None:
    add_token(core, admin)
    # The head lags behind, so that the next record's number is taken.
    change(core, update(AuditHead).values(seq=0))
    with pytest.raises(Exception, match=r"(?i)unique"):
        add_token(core, admin)
    assert count(core, ApiToken) == 1


@pytest.mark.dialects
def test_the_records_of_concurrent_changes_form_one_chain_without_a_gap(core: Core, admin: Caller) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: add_token(core, admin), range(12)))
    result = verify(core, admin)
    assert (result.problem, result.first, result.last, result.records) == ("", 1, 12, 12)


def test_logging_in_and_out_and_the_first_admin_are_recorded_once(core: Core, admin: Caller) -> None:
    kim = tokens.authenticate(core, tokens.bootstrap_admin(core))
    link = tokens.create_login_link(core, kim)
    with coming_from(RequestOrigin("page", "10.0.0.1")):
        secret = tokens.start_session(core, kim, Browser("10.0.0.1"))
        for _ in range(2):
            tokens.end_session(core, secret)
        tokens.use_login_link(core, link)
        with pytest.raises(Unauthenticated):
            tokens.use_login_link(core, link)
    by_link, out, by_token, first = list_records(core, admin, everywhere=True)
    assert (first.actor, first.door, first.action, first.target) == (
        *("system", "control plane", "bootstrap_admin"),
        kim.token_id,
    )
    assert (out.actor.startswith("login session "), out.door, out.action) == (True, "page", "log_out")
    assert [(each.actor, each.actor_id, each.door, each.action) for each in (by_token, by_link)] == [
        (kim.user, kim.token_id, "page", "log_in")
    ] * 2
    assert (by_token.target, by_link.target.startswith("login link ")) == ("", True)


def test_the_filters_narrow_the_list_and_pages_continue_it(core: Core, admin: Caller) -> None:
    for name in ("a", "b", "c"):
        add_token(core, admin, name)
        later(core, minutes=1)
    for door, address in (("cli", "10.1.2.3"), ("mcp", "10.1.2.3"), ("mcp", "10.4.5.6")):
        with coming_from(RequestOrigin(door, address)), pytest.raises(NotFound):
            projects.remove(core, admin, "nothing")
    cancel_refused(core, admin)

    first = list_records(core, admin, action="create_api_token", limit=2)
    rest = list_records(core, admin, action="create_api_token", before=first[-1].seq)
    assert [each.seq for each in (*first, *rest)] == [3, 2, 1]
    found: list[tuple[dict[str, Any], list[int]]] = [
        ({"outcome": "refused"}, [7, 6, 5, 4]),
        ({"target": "nothing"}, [6, 5, 4]),
        ({"since": rest[0].at, "until": first[0].at}, [2, 1]),
        ({"since": FIRST, "until": LAST, "target": "nothing"}, [6, 5, 4]),
        ({"until": FIRST}, []),
        ({"actor": "nobody"}, []),
        ({"door": "mcp"}, [6, 5]),
        ({"address": "10.1.2.3"}, [5, 4]),
        ({"code": "E-ORDER-404"}, [7]),
        ({"door": "cli", "code": "E-ORDER-404"}, []),
    ]
    assert [(given, [each.seq for each in list_records(core, admin, **given)]) for given, _ in found] == found
    with pytest.raises(Forbidden):
        list_records(core, replace(admin, everywhere=False), everywhere=True)


def act(core: Core, times: int = 1) -> None:
    """Append records."""
    for _ in range(times):
        with core.database.write() as db:
            append(db, replace(AT_NOON, at=core.clock.now()))


def change(core: Core, *statements: Any) -> None:
    """What somebody with access to the database does."""
    with core.database.write() as db:
        for statement in statements:
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


def count(core: Core, table: Any) -> int:
    with core.database.read() as db:
        return db.scalar(select(func.count()).select_from(table)) or 0


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
    with core.database.write() as db:
        append(db, AT_NOON)
        append(db, replace(AT_NOON, actor_user_id="u" * 12))
    with core.database.read() as db:
        hashes = db.scalars(select(AuditRecord.hash).order_by(AuditRecord.seq)).all()
    assert (hashes[0], found(core, admin)) == (HASHED_BEFORE, ("", None))


def test_a_chain_that_is_rewritten_with_right_hashes_lacks_the_signature(core: Core, admin: Caller) -> None:
    act(core, 6)
    seal_head(core)
    change(core, update(AuditRecord).where(OF_FOUR).values(actor="eve"))
    rewrite_from(core, 4)
    assert found(core, admin) == ("seal", 6)

    seal_head(core)
    forged = SigningKey.generate()
    keys = {"public_key": bytes(forged.verify_key), "sealed_private_key": bytes(forged)}
    change(core, update(AuditKey).values({name: base64.b64encode(key).decode() for name, key in keys.items()}))
    assert found(core, admin)[0] == "seal"


def test_another_secret_that_was_sealed_under_the_master_key_is_no_key_of_the_log(core: Core, admin: Caller) -> None:
    """Whoever may set a provider's API key chooses what is sealed, and copies it with access to the database."""
    act(core, 6)
    seal_head(core)
    forged = SigningKey.generate()
    seed = base64.b64encode(bytes(forged)).decode()
    providers.add(core, admin, ProviderRequest(name="eve", model="openai/x", api_key=seed))
    change(
        core,
        update(AuditRecord).where(OF_FOUR).values(actor="eve"),
        update(AuditKey).values(sealed_private_key=select(Provider.sealed_key).scalar_subquery()),
    )
    rewrite_from(core, 4)
    with core.database.write() as db:
        seal = db.scalars(select(AuditSeal)).one()
        seal.hash = db.scalars(select(AuditRecord.hash).where(AuditRecord.seq == seal.seq)).one()
        seal.signature = base64.b64encode(forged.sign(sealed_text(seal)).signature).decode()
    assert found(core, admin) == ("seal", 6)


def test_a_head_is_signed_once_and_checked_with_the_printed_public_key_alone(core: Core, admin: Caller) -> None:
    """Kept, it shows that the log was rolled back or replaced."""
    assert found(core, admin) == ("", None)
    with pytest.raises(NotFound):
        show_head(core, admin)
    act(core)
    for _ in range(3):
        seal_head(core)
    assert count(core, AuditSeal) == 1
    head = show_head(core, admin)
    text = f'{{"at":"{head.at.isoformat()}","hash":"{head.hash}","kind":"head","seq":1}}'.encode()
    VerifyKey(base64.b64decode(head.public_key)).verify(text, base64.b64decode(head.signature))

    act(core, 3)
    seal_head(core)
    kept = show_head(core, admin)
    assert verify(core, admin, seq=4, hash=kept.hash).problem == ""
    change(
        core,
        delete(AuditRecord).where(AuditRecord.seq > 1),
        delete(AuditSeal).where(AuditSeal.seq > 1),
        update(AuditHead).values(seq=1, hash=head.hash),
    )
    assert found(core, admin) == ("", None)
    assert verify(core, admin, seq=4, hash=kept.hash).problem == "kept head"
    with pytest.raises(Invalid):
        verify(core, admin, seq=1)


@pytest.mark.dialects
def test_the_log_is_pruned_by_whole_days_and_leaves_a_signed_anchor(core: Core, admin: Caller) -> None:
    act(core, 4)
    seal_head(core)
    kept = show_head(core, admin)
    later(core, days=364, hours=23)
    prune_expired(core)
    assert verify(core, admin).records == 4
    act(core, 2)
    seal_head(core)
    later(core, days=2)
    prune_expired(core)
    assert verify(core, admin).model_dump() == {
        "problem": "", "problem_seq": None, "records": 3, "first": 5, "last": 7, "anchor": 4, "sealed_to": 6
    }  # fmt: skip
    record = newest(core, admin)
    assert (record.actor, record.action, record.target) == ("retention", "prune_audit_log", "1-4")
    assert verify(core, admin, seq=4, hash=kept.hash).problem == ""
    assert verify(core, admin, seq=4, hash="0" * 64).problem == "kept head"
    with pytest.raises(NotFound):
        verify(core, admin, seq=3, hash="0" * 64)

    later(core, days=400)
    prune_expired(replace(core, settings=core.settings.model_copy(update={"audit_days": None})))
    assert verify(core, admin).first == 5
    prune_expired(core)
    prune_expired(core)
    result = verify(core, admin)
    assert (result.problem, result.anchor, result.records) == ("", 7, 1)
    change(core, update(AuditSeal).where(AuditSeal.kind == "anchor").values(seq=8))
    assert verify(core, admin).problem == "seal"


@pytest.mark.dialects
def test_an_admin_prunes_in_batches_what_is_older_than_a_day(
    core: Core, admin: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealing, "_AT_ONCE", 3)
    act(core, 8)
    later(core, days=2)
    act(core)
    with pytest.raises(Invalid):
        prune(core, admin, PruneRequest(before=core.clock.now()))
    request = PruneRequest(before=core.clock.now() - timedelta(days=1))
    pruned = prune(core, admin, request)
    assert (pruned.records, pruned.anchor) == (8, 8)
    records = list_records(core, admin, everywhere=True)
    assert [(each.seq, each.outcome) for each in records] == [(11, "changed"), (10, "refused"), (9, "changed")]
    assert (records[0].actor, records[0].action, records[0].target) == ("system", "prune_audit_log", "1-8")
    assert found(core, admin) == ("", None)
    assert prune(core, admin, request).records == 0


def limit_pages(core: Core, more: int) -> None:
    """Let the database's file grow by this many pages and no further, as on a full disk."""
    with core.database.read() as db:
        pages = db.connection().exec_driver_sql("PRAGMA page_count").scalar()

    def limit(connection: Any, _record: object) -> None:
        connection.execute(f"PRAGMA max_page_count = {pages + more}")

    event.listen(core.database.engine, "connect", limit)
    core.database.engine.dispose()


def test_on_a_full_disk_no_change_happens_and_pruning_makes_room(core: Core, admin: Caller) -> None:
    limit_pages(core, 16)
    with suppress(FleetFault):
        while True:
            act(core)
    later(core, days=2)
    records = count(core, AuditRecord)

    # The first ones may still find room in a page.
    codes = [code_of(lambda: add_token(core, admin, "n" * 100)) for _ in range(50)]
    assert codes[-1] == "E-DB-FULL"
    assert count(core, ApiToken) == count(core, AuditRecord) - records
    assert verify(core, admin).problem == ""

    assert prune(core, admin, PruneRequest(before=core.clock.now() - timedelta(days=1))).records == records
    add_token(core, admin)
    assert verify(core, admin).problem == ""
