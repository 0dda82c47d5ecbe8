"""API tokens, log-in links, and logged-in browsers: whose they are, who sees and ends them, and when they end."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import select, update

from control_plane.core import Caller, Core
from control_plane.core.vault import BoxKeys
from control_plane.db.access import ApiToken, JoinToken, LoginLink, WebSession
from control_plane.declarations.tokens import ApiTokenRequest, JoinTokenRequest
from control_plane.declarations.users import UserRequest
from control_plane.operations import organizations
from control_plane.operations.access import tokens, users
from control_plane.operations.access.login_sessions import end_login_session, list_login_sessions
from control_plane.operations.access.logins import Browser
from control_plane.operations.orders import reading
from shared.errors import Forbidden, NotFound, Unauthenticated
from shared.registration import JoinTokenString
from tests.support.made import later, make_project, submit
from tests.support.organizations import add_organization
from tests.support.refusals import code_of


def issue(core: Core, caller: Caller, role: str = "operator", **fields: object) -> str:
    """The text of a new API token."""
    return str(tokens.create_api_token(core, caller, ApiTokenRequest(role=role, **fields)).token)


def owner(core: Core, caller: Caller) -> Caller:
    """The operator with a new token."""
    return tokens.authenticate(core, issue(core, caller))


@pytest.mark.dialects
def test_an_api_token_stands_for_its_role_its_name_and_its_organization(core: Core, admin: Caller) -> None:
    bearer = issue(core, admin, role="viewer", name="wall display")
    token_id = tokens.list_api_tokens(core, admin)[0].id
    meant = Caller(admin.organization_id, "default", "viewer", "wall display", token_id=token_id)
    assert tokens.authenticate(core, bearer) == meant


def test_the_text_of_a_token_is_shown_once_and_stored_nowhere(core: Core, admin: Caller) -> None:
    bearer = issue(core, admin)
    assert bearer.startswith("fa_")
    assert [each.token for each in tokens.list_api_tokens(core, admin)] == [None]
    with core.database.read() as db:
        stored = repr([list(row) for row in db.execute(select(ApiToken.__table__))])
    assert bearer.removeprefix("fa_") not in stored


def test_when_a_token_was_last_used_is_noted_once_a_minute(core: Core, admin: Caller) -> None:
    bearer = issue(core, admin)
    tokens.authenticate(core, bearer)
    first = tokens.list_api_tokens(core, admin)[0].last_used_at
    later(core, seconds=59)
    tokens.authenticate(core, bearer)
    assert tokens.list_api_tokens(core, admin)[0].last_used_at == first
    later(core, seconds=1)
    tokens.authenticate(core, bearer)
    assert tokens.list_api_tokens(core, admin)[0].last_used_at != first


def test_an_unknown_token_is_turned_away_without_repeating_it(core: Core, admin: Caller) -> None:
    for bearer in ("", "fa_", "fa_" + "0" * 64, "nonsense", "fä_\ud800", "x" * 100_000):
        with pytest.raises(Unauthenticated) as refusal:
            tokens.authenticate(core, bearer)
        assert refusal.value.code == "E-TOKEN-UNKNOWN"
        assert len(bearer) < 4 or bearer not in f"{refusal.value.what} {refusal.value.why} {refusal.value.next}"


def test_an_expired_and_a_revoked_token_are_told_apart(core: Core, admin: Caller) -> None:
    short, gone = issue(core, admin, expires_s=60), issue(core, admin, name="gone")
    ids = {each.name: each.id for each in tokens.list_api_tokens(core, admin)}
    revoked = tokens.revoke_api_token(core, admin, ids["gone"])
    later(core, seconds=60)
    codes = [code_of(lambda bearer=bearer: tokens.authenticate(core, bearer)) for bearer in (short, gone)]
    assert codes == ["E-TOKEN-EXPIRED", "E-TOKEN-REVOKED"]
    assert tokens.revoke_api_token(core, admin, ids["gone"]) == revoked


def test_a_role_or_label_that_does_not_exist_is_refused(core: Core, admin: Caller) -> None:
    assert code_of(lambda: issue(core, admin, role="root")) == "E-ROLE-NAME"
    for labels in ({"": "x"}, {"a b": "c"}, {"k": "v" * 65}, {"k=": "v"}, {"k": "two words"}):
        request = JoinTokenRequest(labels=labels)
        assert code_of(lambda request=request: tokens.create_join_token(core, admin, request)) == "E-LABEL", labels


def test_a_second_bootstrap_takes_the_place_of_the_first(core: Core, admin: Caller) -> None:
    first = tokens.bootstrap_admin(core)
    caller = tokens.authenticate(core, first)
    assert (caller.role, caller.organization) == ("admin", "default")
    session = tokens.start_session(core, caller)
    assert tokens.authenticate_session(core, session).role == "admin"
    second = tokens.bootstrap_admin(core)
    assert code_of(lambda: tokens.authenticate(core, first)) == "E-TOKEN-REVOKED"
    with pytest.raises(Unauthenticated):
        tokens.authenticate_session(core, session)
    assert tokens.authenticate(core, second).role == "admin"


def test_a_bootstrap_that_must_be_the_first_is_refused_while_an_admin_is_there(core: Core, admin: Caller) -> None:
    issue(core, admin, role="admin", everywhere=True)
    assert code_of(lambda: tokens.bootstrap_admin(core, only_first=True)) == "E-BOOTSTRAP"


# --- joining ------------------------------------------------------------------------------


def keys_of(core: Core) -> BoxKeys:
    with core.database.read() as db:
        return core.vault.box_keys(db)


def test_a_join_token_names_the_control_planes_key_and_is_shown_once_and_stored_nowhere(
    core: Core, admin: Caller
) -> None:
    made = tokens.create_join_token(core, admin, JoinTokenRequest(labels={"gpu": "yes"}, uses=3))
    parsed = JoinTokenString.parse(str(made.token))
    assert parsed is not None
    assert parsed.fingerprint == keys_of(core).current_id
    assert (made.uses, made.used, made.labels) == (3, 0, {"gpu": "yes"})
    assert [each.token for each in tokens.list_join_tokens(core, admin)] == [None]
    with core.database.read() as db:
        stored = repr([list(row) for row in db.execute(select(JoinToken.__table__))])
    assert parsed.secret not in stored


# --- browsers -----------------------------------------------------------------------------


def test_a_login_link_lets_one_browser_in_with_its_makers_role_for_15_minutes(core: Core, admin: Caller) -> None:
    viewer = tokens.authenticate(core, issue(core, admin, role="viewer"))
    link, late = (tokens.create_login_link(core, viewer) for _ in range(2))
    later(core, minutes=14)
    session, caller = tokens.use_login_link(core, link)
    assert caller.role == "viewer"
    assert replace(tokens.authenticate_session(core, session), login_session_id=None) == caller
    later(core, minutes=1)
    for each in (link, late):
        with pytest.raises(Unauthenticated):
            tokens.use_login_link(core, each)


@pytest.mark.dialects
def test_of_many_browsers_that_open_one_link_at_once_one_gets_in(core: Core, admin: Caller) -> None:
    link = tokens.create_login_link(core, owner(core, admin))
    with ThreadPoolExecutor(8) as pool:
        codes = list(pool.map(lambda _: code_of(lambda: tokens.use_login_link(core, link)), range(8)))
    assert codes.count("") == 1


def test_a_session_ends_by_logging_out_and_by_time(core: Core, admin: Caller) -> None:
    left, old = (tokens.start_session(core, owner(core, admin)) for _ in range(2))
    tokens.end_session(core, left)
    with pytest.raises(Unauthenticated):
        tokens.authenticate_session(core, left)
    later(core, days=6)
    assert tokens.authenticate_session(core, old).role == "operator"
    later(core, days=1)
    with pytest.raises(Unauthenticated):
        tokens.authenticate_session(core, old)


def test_links_and_sessions_that_are_over_do_not_pile_up(core: Core, admin: Caller) -> None:
    caller = owner(core, admin)
    tokens.use_login_link(core, tokens.create_login_link(core, caller))
    later(core, days=8)
    tokens.use_login_link(core, tokens.create_login_link(core, caller))
    with core.database.read() as db:
        assert len(db.scalars(select(LoginLink)).all()) == 1
        assert len(db.scalars(select(WebSession)).all()) == 1


# --- whose sessions ---------------------------------------------------------------------------


def new_owner(core: Core, caller: Caller, name: str, role: str = "viewer", **fields: object) -> Caller:
    """Who a new token of this name stands for."""
    return tokens.authenticate(core, issue(core, caller, role, name=name, **fields))


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
    kim = new_owner(core, admin, "kim")
    secret = tokens.start_session(core, kim, Browser("10.0.0.1"))
    began = core.clock.now()
    later(core, minutes=5)
    caller = tokens.authenticate_session(core, secret, "10.0.0.2")
    session = list_login_sessions(core, caller)[0]
    assert (session.token_id, session.token_name, session.role) == (kim.token_id, "kim", "viewer")
    assert (session.created_at, session.last_used_at) == (began, core.clock.now())
    assert (session.address, session.current) == ("10.0.0.2", True)


def test_sessions_are_seen_and_ended_by_their_own_token_and_the_admins_of_its_organization(
    core: Core, admin: Caller
) -> None:
    kim, eve = new_owner(core, admin, "kim", "operator"), new_owner(core, admin, "eve", "operator")
    there = add_organization(core, admin, "other")
    boss = new_owner(core, there, "boss", "admin")
    secret = tokens.start_session(core, kim)
    for each in (eve, boss):
        tokens.start_session(core, each)
    hers = list_login_sessions(core, kim)[0]
    for stranger in (eve, boss):
        with pytest.raises(NotFound):
            end_login_session(core, stranger, hers.id)
    assert [names(core, caller) for caller in (kim, eve, admin, boss)] == [["kim"], ["eve"], ["eve", "kim"], ["boss"]]
    assert is_logged_in(core, secret)
    assert end_login_session(core, kim, hers.id).id == hers.id
    assert not is_logged_in(core, secret)


def test_a_session_that_acts_everywhere_is_ended_by_its_owner_or_an_equal(core: Core, admin: Caller) -> None:
    equal = new_owner(core, admin, "root", "admin", everywhere=True)
    alone = new_owner(core, admin, "boss", "admin")
    first, second = (tokens.start_session(core, equal) for _ in range(2))
    listed = list_login_sessions(core, alone)
    with pytest.raises(Forbidden):
        end_login_session(core, alone, listed[0].id)
    for session, caller in zip(listed, (equal, admin), strict=True):
        end_login_session(core, caller, session.id)
    assert [is_logged_in(core, secret) for secret in (first, second)] == [False, False]


@pytest.mark.dialects
def test_sessions_and_links_are_deleted_with_the_token_that_is_revoked(core: Core, admin: Caller) -> None:
    """One that starts at that moment, or that an earlier version stored without a token, is not accepted."""
    kim, eve = new_owner(core, admin, "kim"), new_owner(core, admin, "eve")
    for caller in (kim, eve):
        tokens.start_session(core, caller)
        tokens.create_login_link(core, caller)
    tokens.revoke_api_token(core, admin, str(kim.token_id))
    with core.database.read() as db:
        assert db.scalars(select(WebSession.token_id)).all() == [eve.token_id]
        assert db.scalars(select(LoginLink.token_id)).all() == [eve.token_id]

    assert not is_logged_in(core, tokens.start_session(core, kim))
    secret = tokens.start_session(core, eve)
    with core.database.write() as db:
        db.execute(update(WebSession).values(token_id=None))
    assert not is_logged_in(core, secret)
    assert list_login_sessions(core, replace(admin, token_id=None)) == []


def test_sessions_and_links_end_when_their_token_expires(core: Core, admin: Caller) -> None:
    kim = new_owner(core, admin, "kim", expires_s=600)
    secret, link = tokens.start_session(core, kim), tokens.create_login_link(core, kim)
    assert list_login_sessions(core, kim)[0].expires_at == core.clock.now() + timedelta(minutes=10)
    later(core, minutes=10)
    assert (is_logged_in(core, secret), names(core, admin)) == (False, [])
    with pytest.raises(Unauthenticated):
        tokens.use_login_link(core, link)


def test_a_session_in_another_organization_ends_with_the_organization_of_its_token(core: Core, admin: Caller) -> None:
    there = add_organization(core, admin, "other")
    root = new_owner(core, there, "root", "admin", everywhere=True)
    at_home = replace(root, organization_id=admin.organization_id, organization="default")
    secret = tokens.start_session(core, at_home)
    assert is_logged_in(core, secret)
    organizations.remove(core, admin, "other")
    assert not is_logged_in(core, secret)


def test_a_user_sees_and_ends_the_sessions_of_all_tokens_of_theirs_and_no_other(core: Core, admin: Caller) -> None:
    for email in ("kim@example.org", "jo@example.org"):
        users.add(core, admin, UserRequest(email=email, name=email[:3].strip("@"), role="viewer"))
    laptop, desktop = (new_owner(core, admin, name, user="kim@example.org") for name in ("laptop", "desktop"))
    jo = new_owner(core, admin, "jo", user="jo@example.org")
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
        new_owner(core, admin, "laptop", role="operator", user="kim@example.org"),
        new_owner(core, admin, "ci", "operator"),
    )
    pages = [tokens.authenticate_session(core, tokens.start_session(core, each)) for each in (kim, ci)]
    orders = [submit(core, each) for each in pages]
    assert [each.user for each in orders] == ["Kim", "ci"]
    assert [reading.show_order(core, each, "@last").id for each in (kim, ci)] == [each.id for each in orders]
