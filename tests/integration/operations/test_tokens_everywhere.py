"""Tokens that may act in every organization: who has one, who hands them out, and what an upgrade makes of old ones."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from sqlalchemy import text

from control_plane.core import Caller, Core
from control_plane.db.drones import Drone
from control_plane.db.engine import Database
from control_plane.db.upgrade import apply_migrations
from control_plane.declarations.tokens import ApiTokenRequest, JoinTokenRequest
from control_plane.lookups.organizations import in_organization, system_caller
from control_plane.operations.access import tokens
from control_plane.operations.drones import managing, registration
from shared.errors import Conflict, Forbidden, NotFound
from shared.events import ABILITIES
from shared.registration import JoinTokenString, RegistrationRequest
from tests.support.broker import BrokerServer
from tests.support.clocks import HandClock
from tests.support.database import CoreFactory
from tests.support.made import make_drone
from tests.support.organizations import add_organization


@pytest.fixture(name="core")
def sqlite_core(core_factory: CoreFactory, sqlite_url: str, clock: HandClock) -> Core:
    return core_factory(sqlite_url, clock=clock)


def issue(core: Core, caller: Caller, role: str = "admin", *, everywhere: bool = False) -> Caller:
    """Who a new token stands for."""
    request = ApiTokenRequest(role=role, name="n", everywhere=everywhere)
    return tokens.authenticate(core, str(tokens.create_api_token(core, caller, request).token))


def test_the_first_admin_acts_everywhere_and_an_admin_by_role_in_its_own_organization(
    core: Core, admin: Caller
) -> None:
    first = tokens.authenticate(core, tokens.bootstrap_admin(core))
    assert (first.everywhere, first.role, first.organization) == (True, "admin", "default")
    assert issue(core, first).everywhere is False
    assert issue(core, first, everywhere=True).everywhere is True


def test_a_token_belongs_to_the_organization_in_which_it_was_made(core: Core, admin: Caller) -> None:
    other = add_organization(core, admin, "other")
    made = issue(core, other, "operator")
    assert (made.organization, made.role, made.everywhere) == ("other", "operator", False)
    with pytest.raises(NotFound):
        in_organization(core, made, "default")


def test_whoever_acts_everywhere_keeps_its_role_and_its_name_in_each_organization(core: Core, admin: Caller) -> None:
    other = add_organization(core, admin, "other")
    viewer = issue(core, admin, "viewer", everywhere=True)
    there = in_organization(core, viewer, "other")
    assert there == replace(viewer, organization_id=other.organization_id, organization="other")
    assert (there.role, there.user, there.everywhere) == ("viewer", "n", True)
    with pytest.raises(NotFound):
        in_organization(core, viewer, "nobody")


def test_only_who_acts_everywhere_hands_out_or_revokes_tokens_that_do(core: Core, admin: Caller) -> None:
    alone = replace(admin, everywhere=False)
    token = tokens.create_api_token(core, admin, ApiTokenRequest(role="admin", everywhere=True))
    with pytest.raises(Forbidden) as making:
        issue(core, alone, everywhere=True)
    with pytest.raises(Forbidden) as revoking:
        tokens.revoke_api_token(core, alone, token.id)
    assert (making.value.code, revoking.value.code) == ("E-EVERYWHERE", "E-EVERYWHERE")
    assert tokens.revoke_api_token(core, admin, token.id).revoked_at is not None


def test_an_admin_of_one_organization_does_not_stand_in_the_way_of_the_first_of_all(core: Core, admin: Caller) -> None:
    issue(core, add_organization(core, admin, "other"))
    assert tokens.bootstrap_admin(core, only_first=True)
    with pytest.raises(Conflict):
        tokens.bootstrap_admin(core, only_first=True)


def test_a_browsers_session_is_what_its_token_or_link_was(core: Core, admin: Caller) -> None:
    for caller in (issue(core, admin, everywhere=True), issue(core, add_organization(core, admin, "other"))):
        by_link, _ = tokens.use_login_link(core, tokens.create_login_link(core, caller))
        by_token = tokens.start_session(core, caller)
        seen = [tokens.authenticate_session(core, secret) for secret in (by_link, by_token)]
        assert {(each.organization, each.everywhere) for each in seen} == {(caller.organization, caller.everywhere)}


def test_what_was_an_admin_before_the_upgrade_acts_everywhere_after_it(empty_database_url: str) -> None:
    apply_migrations(empty_database_url, "0002")
    database = Database(empty_database_url)
    with database.write() as db:
        organization_id = db.scalar(text("SELECT id FROM organizations"))
        values = {"o": organization_id, "t": datetime(2126, 11, 22, tzinfo=UTC).isoformat()}
        for role in ("admin", "operator", "viewer"):
            for table in ("api_tokens", "login_links", "web_sessions"):
                columns = "id, organization_id, secret_hash, role, created_at, expires_at"
                name = ", name" if table == "api_tokens" else ""
                given = ", ''" if name else ""
                insert = f"INSERT INTO {table} ({columns}{name}) VALUES (:id, :o, :s, :r, :t, :t{given})"
                db.execute(text(insert), {**values, "id": role[:4], "s": f"{role}{table}", "r": role})
    apply_migrations(empty_database_url)
    with database.read() as db:
        found = {
            (table, role): bool(everywhere)
            for table in ("api_tokens", "login_links", "web_sessions")
            for role, everywhere in db.execute(text(f"SELECT role, everywhere FROM {table}"))
        }
        acronym = db.scalar(text("SELECT acronym FROM organizations"))
    database.dispose()
    assert found == {key: key[1] == "admin" for key in found}
    assert (len(found), acronym) == (9, "DEFA")


def test_a_drone_serves_whom_its_join_token_says_and_keeps_that_when_it_registers_again(
    core_factory: CoreFactory, sqlite_url: str, valkey: BrokerServer
) -> None:
    from control_plane.broker.broker import Broker

    core = core_factory(sqlite_url, broker=Broker(valkey.url), broker_url=valkey.url)
    admin = system_caller(core)
    other = add_organization(core, admin, "other")
    first = join(core, admin, ["other"])
    again = join(core, admin, [])
    assert first == again
    with core.database.read() as db:
        assert db.get_one(Drone, first).serves == [other.organization_id]
    join(core, admin, ["*"])
    assert managing.show_drone(core, admin, "anna").serves == ["other", "*"]
    core.broker.close()


def join(core: Core, caller: Caller, serves: list[str]) -> str:
    """Register `anna` with a new token; returns the drone's id."""
    made = tokens.create_join_token(core, caller, JoinTokenRequest(serves=serves))
    parsed = JoinTokenString.parse(str(made.token))
    assert parsed is not None
    request = RegistrationRequest(
        secret=parsed.secret,
        name="anna",
        machine_id="m",
        public_key="QUFB" * 10 + "QUE=",
        sandbox="",
        version="",
        host="",
        abilities=ABILITIES,
    )
    return registration.register(core, request).drone_id


def test_drones_of_an_earlier_version_of_this_machine_serve_all_from_the_next_start_on(
    core: Core, admin: Caller
) -> None:
    embedded, foreign = make_drone(core, admin, "local-1"), make_drone(core, admin, "anna", public_key="B" * 43 + "=")
    managing.serve_all(core, [embedded.drone_id])
    with core.database.read() as db:
        found = [db.get_one(Drone, each.drone_id).serves for each in (embedded, foreign)]
    assert found == [["*"], []]
