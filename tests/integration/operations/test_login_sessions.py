"""Logged-in browsers: which token each belongs to, who sees and ends it, and when it ends without anyone's help."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import select, update

from control_plane.core import Caller, Core
from control_plane.db.access import LoginLink, WebSession
from control_plane.declarations.tokens import ApiTokenRequest
from control_plane.declarations.users import UserRequest
from control_plane.operations import organizations
from control_plane.operations.access import tokens, users
from control_plane.operations.access.login_sessions import end_login_session, list_login_sessions
from control_plane.operations.access.logins import Browser
from control_plane.operations.orders import reading
from shared.errors import Forbidden, NotFound, Unauthenticated
from tests.support.made import later, make_project, submit
from tests.support.organizations import add_organization


def owner(core: Core, caller: Caller, name: str, role: str = "viewer", **fields: object) -> Caller:
    """The owner of a new token."""
    request = ApiTokenRequest(role=role, name=name, **fields)
    return tokens.authenticate(core, str(tokens.create_api_token(core, caller, request).token))


def is_logged_in(core: Core, secret: str) -> bool:
    try:
        tokens.authenticate_session(core, secret)
    except Unauthenticated:
        return False
    return True


def names(core: Core, caller: Caller) -> list[str]:
    """Whose sessions the caller sees."""
    return sorted(each.token_name for each in list_login_sessions(core, caller))


def test_a_session_shows_whose_it_is_when_it_began_and_where_it_was_last_used(core: Core, admin: Caller) -> None:
    kim = owner(core, admin, "kim")
    secret = tokens.start_session(core, kim, Browser("10.0.0.1"))
    began = core.clock.now()
    later(core, minutes=5)
    caller = tokens.authenticate_session(core, secret, "10.0.0.2")
    session = list_login_sessions(core, caller)[0]
    assert (session.token_id, session.token_name, session.role) == (kim.token_id, "kim", "viewer")
    assert (session.created_at, session.last_used_at) == (began, core.clock.now())
    assert (session.address, session.current) == ("10.0.0.2", True)


def test_who_is_no_admin_sees_and_ends_only_sessions_of_the_own_token(core: Core, admin: Caller) -> None:
    kim, eve = owner(core, admin, "kim", "operator"), owner(core, admin, "eve", "operator")
    secret = tokens.start_session(core, kim)
    tokens.start_session(core, eve)
    hers = list_login_sessions(core, kim)[0]
    with pytest.raises(NotFound, match=f"login session '{hers.id}' not found"):
        end_login_session(core, eve, hers.id)
    assert (names(core, kim), names(core, eve)) == (["kim"], ["eve"])
    assert end_login_session(core, kim, hers.id).id == hers.id
    assert not is_logged_in(core, secret)


def test_an_admin_sees_and_ends_the_sessions_of_the_organization_and_of_no_other(core: Core, admin: Caller) -> None:
    there = add_organization(core, admin, "other")
    tokens.start_session(core, owner(core, admin, "kim"))
    tokens.start_session(core, owner(core, there, "ada"))
    boss = owner(core, there, "boss", "admin")
    foreign = list_login_sessions(core, admin)[0]
    with pytest.raises(NotFound):
        end_login_session(core, boss, foreign.id)
    assert (names(core, admin), names(core, boss)) == (["kim"], ["ada"])


def test_a_session_that_acts_everywhere_is_ended_by_its_owner_or_an_equal(core: Core, admin: Caller) -> None:
    equal = owner(core, admin, "root", "admin", everywhere=True)
    alone = owner(core, admin, "boss", "admin")
    first, second = (tokens.start_session(core, equal) for _ in range(2))
    listed = list_login_sessions(core, alone)
    with pytest.raises(Forbidden):
        end_login_session(core, alone, listed[0].id)
    for session, caller in zip(listed, (equal, admin), strict=True):
        end_login_session(core, caller, session.id)
    assert [is_logged_in(core, secret) for secret in (first, second)] == [False, False]


def test_sessions_and_links_are_deleted_with_the_token_that_is_revoked(core: Core, admin: Caller) -> None:
    kim, eve = owner(core, admin, "kim"), owner(core, admin, "eve")
    for caller in (kim, eve):
        tokens.start_session(core, caller)
        tokens.create_login_link(core, caller)
    tokens.revoke_api_token(core, admin, str(kim.token_id))
    with core.database.read() as db:
        assert db.scalars(select(WebSession.token_id)).all() == [eve.token_id]
        assert db.scalars(select(LoginLink.token_id)).all() == [eve.token_id]


def test_a_new_bootstrap_ends_the_sessions_of_the_previous_one(core: Core, admin: Caller) -> None:
    secret = tokens.start_session(core, tokens.authenticate(core, tokens.bootstrap_admin(core)))
    assert is_logged_in(core, secret)
    tokens.bootstrap_admin(core)
    assert not is_logged_in(core, secret)


def test_sessions_and_links_end_when_their_token_expires(core: Core, admin: Caller) -> None:
    kim = owner(core, admin, "kim", expires_s=600)
    secret, link = tokens.start_session(core, kim), tokens.create_login_link(core, kim)
    assert list_login_sessions(core, kim)[0].expires_at == core.clock.now() + timedelta(minutes=10)
    later(core, minutes=10)
    assert (is_logged_in(core, secret), names(core, admin)) == (False, [])
    with pytest.raises(Unauthenticated):
        tokens.use_login_link(core, link)


def test_a_session_that_started_while_its_token_was_revoked_is_not_accepted(core: Core, admin: Caller) -> None:
    kim = owner(core, admin, "kim")
    tokens.revoke_api_token(core, admin, str(kim.token_id))
    assert not is_logged_in(core, tokens.start_session(core, kim))


def test_a_session_of_an_earlier_version_names_no_token_and_is_not_accepted(core: Core, admin: Caller) -> None:
    secret = tokens.start_session(core, owner(core, admin, "kim"))
    with core.database.write() as db:
        db.execute(update(WebSession).values(token_id=None))
    assert not is_logged_in(core, secret)
    assert list_login_sessions(core, replace(admin, token_id=None)) == []


def test_a_session_in_another_organization_ends_with_the_organization_of_its_token(core: Core, admin: Caller) -> None:
    there = add_organization(core, admin, "other")
    root = owner(core, there, "root", "admin", everywhere=True)
    at_home = replace(root, organization_id=admin.organization_id, organization="default")
    secret = tokens.start_session(core, at_home)
    assert is_logged_in(core, secret)
    organizations.remove(core, admin, "other")
    assert not is_logged_in(core, secret)


def test_a_user_sees_and_ends_the_sessions_of_all_tokens_of_theirs_and_no_other(core: Core, admin: Caller) -> None:
    for email in ("kim@example.org", "jo@example.org"):
        users.add(core, admin, UserRequest(email=email, name=email[:3].strip("@"), role="viewer"))
    laptop, desktop = (owner(core, admin, name, user="kim@example.org") for name in ("laptop", "desktop"))
    jo = owner(core, admin, "jo", user="jo@example.org")
    for each in (laptop, desktop, jo):
        tokens.start_session(core, each)
    assert names(core, laptop) == ["desktop", "laptop"]
    other = next(each for each in list_login_sessions(core, laptop) if each.token_name == "desktop")
    assert (other.user, other.current) == ("kim", False)
    with pytest.raises(NotFound):
        end_login_session(core, jo, other.id)
    end_login_session(core, laptop, other.id)
    assert names(core, desktop) == ["laptop"]


def test_the_orders_of_a_users_pages_and_tokens_are_the_same_persons(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    users.add(core, admin, UserRequest(email="kim@example.org", name="Kim", role="operator"))
    kim, ci = (
        owner(core, admin, "laptop", role="operator", user="kim@example.org"),
        owner(core, admin, "ci", "operator"),
    )
    pages = [tokens.authenticate_session(core, tokens.start_session(core, each)) for each in (kim, ci)]
    orders = [submit(core, each) for each in pages]
    assert [each.user for each in orders] == ["Kim", "ci"]
    assert [reading.show_order(core, each, "@last").id for each in (kim, ci)] == [each.id for each in orders]
