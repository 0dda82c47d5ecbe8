"""The audit log: each change with its record or neither, each refusal, and a chain that follows the commits."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import func, select

from control_plane.core import Caller, Core
from control_plane.core.audit_entries import entry_of
from control_plane.core.origin import RequestOrigin, coming_from
from control_plane.db.access import ApiToken
from control_plane.db.audit import AuditHead, AuditRecord
from control_plane.db.audit_chain import GENESIS, append, hash_of
from control_plane.declarations.audit import AuditRecordDocument
from control_plane.declarations.tokens import ApiTokenRequest
from control_plane.declarations.users import UserRequest
from control_plane.documents.orders import SubmitRequest
from control_plane.operations import projects
from control_plane.operations.access import tokens, users
from control_plane.operations.access.logins import Browser
from control_plane.operations.audit.reading import list_records
from control_plane.operations.drones.managing import show_drone
from control_plane.operations.orders import reading
from control_plane.operations.orders.canceling import cancel
from control_plane.operations.runs import blobs
from shared.errors import Forbidden, NotFound, Unauthenticated
from tests.support.made import later, make_drone, make_project, run_of
from tests.support.organizations import add_organization

KIM, OTHER_KIM = "kim@example.org", "kim.lee@example.org"


def newest(core: Core, admin: Caller, **filters: object) -> AuditRecordDocument:
    return list_records(core, replace(admin, everywhere=True), everywhere=True, limit=1, **filters)[0]


def summed_up(record: AuditRecordDocument) -> tuple[str, str, str, str]:
    return record.action, record.target, record.outcome, record.code


@pytest.mark.dialects
def test_a_change_is_recorded_with_its_actor_target_door_and_address(core: Core, admin: Caller) -> None:
    token = tokens.create_api_token(core, admin, ApiTokenRequest(role="admin", name="kim"))
    kim = tokens.authenticate(core, str(token.token))
    make_project(core, admin)
    with coming_from(RequestOrigin("cli", "10.1.2.3")):
        order = reading.submit(core, kim, SubmitRequest(prompt="the secret plan", project="web"))
    record = newest(core, admin)
    assert summed_up(record) == ("submit", order.id, "changed", "")
    assert (record.actor_kind, record.actor, record.actor_id) == ("token", "kim", token.id)
    assert (record.door, record.address, record.organization) == ("cli", "10.1.2.3", "default")
    assert (record.at, record.count) == (core.clock.now(), 1)
    assert "secret plan" not in record.model_dump_json()


def test_of_two_users_of_one_name_the_record_says_which(core: Core, admin: Caller) -> None:
    made = [users.add(core, admin, UserRequest(email=email, name="Kim", role="admin")) for email in (KIM, OTHER_KIM)]
    for each in made:
        token = tokens.create_api_token(core, admin, ApiTokenRequest(role="admin", name="laptop", user=each.email))
        make_project(core, tokens.authenticate(core, str(token.token)), f"of-{each.email.partition('@')[0]}")
    found = list_records(core, admin, action="add_project")
    assert [(each.actor, each.actor_user_id) for each in found] == [("Kim", each.id) for each in made[::-1]]
    assert list_records(core, admin, action="add_project", actor=made[0].id) == [found[1]]


def test_a_refusal_is_recorded_with_its_code_and_an_operation_within_another_belongs_to_its_record(
    core: Core, admin: Caller
) -> None:
    viewer = replace(admin, role="viewer", everywhere=False)
    with pytest.raises(Forbidden):
        tokens.create_api_token(core, viewer, ApiTokenRequest(role="admin", name="mallory"))
    assert summed_up(newest(core, admin)) == ("create_api_token", "mallory", "refused", "E-ROLE")
    cancel_refused(core, admin)
    assert summed_up(newest(core, admin)) == ("cancel_order", "o" * 12, "refused", "E-ORDER-404")

    make_project(core, admin)
    order = reading.submit(core, admin, SubmitRequest(prompt="x", project="web"))
    before = newest(core, admin).seq
    cancel(core, admin, order.id)
    record = newest(core, admin)
    assert (record.seq, record.action, record.target) == (before + 1, "cancel_order", order.id)


def test_reading_is_not_recorded(core: Core, admin: Caller) -> None:
    tokens.list_api_tokens(core, admin)
    with pytest.raises(NotFound):
        show_drone(core, admin, "nobody")
    assert list_records(core, admin, everywhere=True) == []


@pytest.mark.dialects
def test_a_change_whose_record_cannot_be_written_does_not_happen(core: Core, admin: Caller) -> None:
    tokens.create_api_token(core, admin, ApiTokenRequest(role="viewer"))
    with core.database.write() as db:
        # The head lags behind, so that the next record's number is taken.
        db.execute(AuditHead.__table__.update().values(seq=0))
    with pytest.raises(Exception, match=r"(?i)unique"):
        tokens.create_api_token(core, admin, ApiTokenRequest(role="viewer"))
    with core.database.read() as db:
        assert db.scalar(select(func.count()).select_from(ApiToken)) == 1


@pytest.mark.dialects
def test_the_records_of_concurrent_changes_form_one_chain_without_a_gap(core: Core, admin: Caller) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: tokens.create_api_token(core, admin, ApiTokenRequest(role="viewer")), range(24)))
    with core.database.read() as db:
        rows = db.scalars(select(AuditRecord).order_by(AuditRecord.seq)).all()
        head = db.get_one(AuditHead, 1)
    assert [row.seq for row in rows] == list(range(1, 25))
    assert [row.previous_hash for row in rows] == [GENESIS, *(row.hash for row in rows[:-1])]
    assert (head.seq, head.hash) == (24, rows[-1].hash)
    columns = set(AuditRecord.__table__.columns.keys()) - {"seq", "previous_hash", "hash"}
    for row in rows:
        assert row.hash == hash_of(row.seq, row.previous_hash, {name: getattr(row, name) for name in columns})


@pytest.mark.dialects
def test_the_filters_narrow_the_list_and_pages_continue_it(core: Core, admin: Caller) -> None:
    for name in ("a", "b", "c"):
        tokens.create_api_token(core, admin, ApiTokenRequest(role="viewer", name=name))
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
        ({"actor": "nobody"}, []),
        ({"door": "mcp"}, [6, 5]),
        ({"address": "10.1.2.3"}, [5, 4]),
        ({"code": "E-ORDER-404"}, [7]),
        ({"door": "cli", "code": "E-ORDER-404"}, []),
    ]
    assert [(given, [each.seq for each in list_records(core, admin, **given)]) for given, _ in found] == found


def cancel_refused(core: Core, admin: Caller) -> None:
    with pytest.raises(NotFound):
        cancel(core, admin, "o" * 12)


def test_an_admin_of_one_organization_sees_only_its_records(core: Core, admin: Caller) -> None:
    payments = replace(add_organization(core, admin), everywhere=False)
    make_project(core, admin)
    make_project(core, payments)
    seen = list_records(core, payments)
    assert {each.organization for each in seen} == {"payments"}
    with pytest.raises(Forbidden):
        list_records(core, payments, everywhere=True)
    everything = {each.organization for each in list_records(core, admin, everywhere=True)}
    assert everything == {"default", "payments"}


@pytest.mark.dialects
def test_a_long_or_unstorable_target_is_recorded_as_it_can_be_stored(core: Core, admin: Caller) -> None:
    with core.database.write() as db:
        append(db, entry_of(core, admin, "show_provider", "x\ud800\0" + "y" * 500))
    assert newest(core, admin).target == "x\ufffd\ufffd" + "y" * 252


def actions(core: Core, admin: Caller) -> list[tuple[str, str, str, str]]:
    """Actor, door, action and target, oldest first."""
    found = list_records(core, admin, everywhere=True)[::-1]
    return [(each.actor, each.door, each.action, each.target) for each in found]


def test_logging_in_by_token_or_link_and_logging_out_are_recorded_once(core: Core, admin: Caller) -> None:
    token = tokens.create_api_token(core, admin, ApiTokenRequest(role="viewer", name="kim"))
    kim = tokens.authenticate(core, str(token.token))
    link = tokens.create_login_link(core, kim)
    with coming_from(RequestOrigin("page", "10.0.0.1")):
        secret = tokens.start_session(core, kim, Browser("10.0.0.1"))
        tokens.end_session(core, secret)
        tokens.end_session(core, secret)
        tokens.use_login_link(core, link)
        with pytest.raises(Unauthenticated):
            tokens.use_login_link(core, link)
    session = list_records(core, admin, action="log_out")[0].actor
    assert session.startswith("login session ")
    *others, by_link = actions(core, admin)[1:]
    assert others == [("kim", "page", "log_in", ""), (session, "page", "log_out", "")]
    assert (by_link[:3], by_link[3].startswith("login link ")) == (("kim", "page", "log_in"), True)
    assert {each.actor_id for each in list_records(core, admin, action="log_in")} == {token.id}


def test_the_first_admin_token_and_permission_to_push_are_recorded(core: Core, admin: Caller) -> None:
    token = tokens.authenticate(core, tokens.bootstrap_admin(core))
    assert actions(core, admin) == [("system", "control plane", "bootstrap_admin", token.token_id)]
    make_project(core, admin)
    drone = make_drone(core, admin, "anna")
    order = reading.submit(core, admin, SubmitRequest(prompt="x", project="web"))
    blobs.grant_push(core, drone, run_of(core, order.id))
    assert actions(core, admin)[-1] == ("anna", "control plane", "grant_push", order.id)
