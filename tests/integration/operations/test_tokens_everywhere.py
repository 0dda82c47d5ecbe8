"""Tokens that may act in every organization: who has one, and who hands them out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from control_plane.broker.broker import Broker
from control_plane.core import Caller, Core
from control_plane.db.drones import Drone
from control_plane.declarations.tokens import ApiTokenRequest, JoinTokenRequest
from control_plane.lookups.organizations import in_organization, system_caller
from control_plane.operations.access import tokens
from control_plane.operations.drones import managing, registration
from shared.errors import Conflict, Forbidden, NotFound
from shared.events import ABILITIES
from shared.registration import JoinTokenString, RegistrationRequest
from tests.support.broker import BrokerServer
from tests.support.database import CoreFactory
from tests.support.made import make_drone
from tests.support.organizations import add_organization


def issue(core: Core, caller: Caller, role: str = "admin", *, everywhere: bool = False) -> Caller:
    """Who a new token stands for."""
    request = ApiTokenRequest(role=role, name="n", everywhere=everywhere)
    return tokens.authenticate(core, str(tokens.create_api_token(core, caller, request).token))


def test_the_first_admin_acts_everywhere_and_an_admin_by_role_in_its_own_organization(
    core: Core, admin: Caller
) -> None:
    # An admin of one organization does not stand in the way of the first of all.
    issue(core, add_organization(core, admin, "other"))
    first = tokens.authenticate(core, tokens.bootstrap_admin(core, only_first=True))
    with pytest.raises(Conflict):
        tokens.bootstrap_admin(core, only_first=True)
    assert (first.everywhere, first.role, first.organization) == (True, "admin", "default")
    assert issue(core, first).everywhere is False
    assert issue(core, first, everywhere=True).everywhere is True


def test_whoever_acts_everywhere_keeps_its_role_and_its_name_in_each_organization(core: Core, admin: Caller) -> None:
    other = add_organization(core, admin, "other")
    viewer = issue(core, admin, "viewer", everywhere=True)
    there = in_organization(core, viewer, "other")
    made = issue(core, other, "operator")
    assert (made.organization, made.role, made.everywhere) == ("other", "operator", False)
    with pytest.raises(NotFound):
        in_organization(core, made, "default")
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


def test_a_drone_serves_whom_its_join_token_says_and_keeps_that_when_it_registers_again(
    core_factory: CoreFactory, sqlite_url: str, valkey: BrokerServer
) -> None:
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
