"""API tokens, log-in links and browser sessions, on each kind of database."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy import select

from control_plane.core import Caller, Core
from control_plane.core.vault import BoxKeys
from control_plane.db.access import ApiToken, JoinToken, LoginLink, WebSession
from control_plane.declarations.tokens import ApiTokenRequest, JoinTokenRequest
from control_plane.operations.access import tokens
from shared.errors import Conflict, FleetError, Forbidden, Invalid, NotFound, Unauthenticated
from shared.registration import JoinTokenString
from tests.support.made import later


def issue(core: Core, caller: Caller, role: str = "operator", **fields: object) -> str:
    """The text of a new API token."""
    return str(tokens.create_api_token(core, caller, ApiTokenRequest(role=role, **fields)).token)


def owner(core: Core, caller: Caller) -> Caller:
    """The operator with a new token."""
    return tokens.authenticate(core, issue(core, caller))


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


@pytest.mark.parametrize("bearer", ["", "fa_", "fa_" + "0" * 64, "nonsense", "fä_\ud800", "x" * 100_000])
def test_an_unknown_token_is_turned_away_without_repeating_it(core: Core, admin: Caller, bearer: str) -> None:
    with pytest.raises(Unauthenticated, match="this API token is unknown") as refusal:
        tokens.authenticate(core, bearer)
    assert refusal.value.code == "E-TOKEN-UNKNOWN"


def test_an_expired_and_a_revoked_token_are_told_apart(core: Core, admin: Caller) -> None:
    short, revoked = issue(core, admin, expires_s=60), issue(core, admin, name="gone")
    ids = {each.name: each.id for each in tokens.list_api_tokens(core, admin)}
    tokens.revoke_api_token(core, admin, ids["gone"])
    later(core, seconds=60)
    assert (code_of(core, short), code_of(core, revoked)) == ("E-TOKEN-EXPIRED", "E-TOKEN-REVOKED")


def code_of(core: Core, bearer: str) -> str:
    """What the token is turned away with."""
    with pytest.raises(FleetError) as refusal:
        tokens.authenticate(core, bearer)
    return refusal.value.code


def test_revoking_twice_keeps_the_first_time(core: Core, admin: Caller) -> None:
    issue(core, admin)
    token_id = tokens.list_api_tokens(core, admin)[0].id
    first = tokens.revoke_api_token(core, admin, token_id)
    later(core, hours=1)
    assert tokens.revoke_api_token(core, admin, token_id) == first


def test_a_token_that_is_not_there_cannot_be_revoked(core: Core, admin: Caller) -> None:
    with pytest.raises(NotFound, match="API token 'nothing' not found"):
        tokens.revoke_api_token(core, admin, "nothing")
    with pytest.raises(NotFound, match="join token 'nothing' not found"):
        tokens.revoke_join_token(core, admin, "nothing")


def test_a_role_that_does_not_exist_is_refused_with_the_three_that_do(core: Core, admin: Caller) -> None:
    with pytest.raises(Invalid, match="unknown role 'root'") as refusal:
        issue(core, admin, role="root")
    assert refusal.value.next == "use admin, operator or viewer"


def test_only_an_admin_makes_or_lists_tokens(core: Core, admin: Caller) -> None:
    operator = tokens.authenticate(core, issue(core, admin))
    with pytest.raises(Forbidden):
        issue(core, operator)
    with pytest.raises(Forbidden):
        tokens.list_api_tokens(core, operator)
    with pytest.raises(Forbidden):
        tokens.create_join_token(core, operator, JoinTokenRequest())


def test_the_first_admin_needs_no_other_one(core: Core, admin: Caller) -> None:
    caller = tokens.authenticate(core, tokens.bootstrap_admin(core))
    assert (caller.role, caller.organization) == ("admin", "default")


def test_a_second_bootstrap_takes_the_place_of_the_first(core: Core, admin: Caller) -> None:
    first, second = tokens.bootstrap_admin(core), tokens.bootstrap_admin(core)
    assert code_of(core, first) == "E-TOKEN-REVOKED"
    assert tokens.authenticate(core, second).role == "admin"


def test_a_bootstrap_that_must_be_the_first_is_refused_while_an_admin_is_there(core: Core, admin: Caller) -> None:
    issue(core, admin, role="admin", everywhere=True)
    with pytest.raises(Conflict) as refusal:
        tokens.bootstrap_admin(core, only_first=True)
    assert refusal.value.code == "E-BOOTSTRAP"


# --- joining ------------------------------------------------------------------------------


def keys_of(core: Core) -> BoxKeys:
    with core.database.read() as db:
        return core.vault.box_keys(db)


def test_a_join_token_names_the_control_planes_key(core: Core, admin: Caller) -> None:
    made = tokens.create_join_token(core, admin, JoinTokenRequest(labels={"gpu": "yes"}, uses=3))
    parsed = JoinTokenString.parse(str(made.token))
    assert parsed is not None
    assert parsed.fingerprint == keys_of(core).current_id
    assert (made.uses, made.used, made.labels) == (3, 0, {"gpu": "yes"})


def test_the_secret_of_a_join_token_is_shown_once_and_stored_nowhere(core: Core, admin: Caller) -> None:
    made = tokens.create_join_token(core, admin, JoinTokenRequest())
    assert [each.token for each in tokens.list_join_tokens(core, admin)] == [None]
    with core.database.read() as db:
        stored = repr([list(row) for row in db.execute(select(JoinToken.__table__))])
    assert str(made.token).split("_")[1] not in stored


@pytest.mark.parametrize("labels", [{"": "x"}, {"a b": "c"}, {"k": "v" * 65}, {"k=": "v"}, {"k": "two words"}])
def test_a_label_that_is_none_is_refused(core: Core, admin: Caller, labels: dict[str, str]) -> None:
    with pytest.raises(Invalid) as refusal:
        tokens.create_join_token(core, admin, JoinTokenRequest(labels=labels))
    assert refusal.value.code == "E-LABEL"


# --- browsers -----------------------------------------------------------------------------


def test_a_login_link_lets_one_browser_in_and_then_nobody(core: Core, admin: Caller) -> None:
    link = tokens.create_login_link(core, owner(core, admin))
    session, caller = tokens.use_login_link(core, link)
    assert caller.role == "operator"
    assert replace(tokens.authenticate_session(core, session), login_session_id=None) == caller
    with pytest.raises(Unauthenticated, match="already used"):
        tokens.use_login_link(core, link)


def test_of_many_browsers_that_open_one_link_at_once_one_gets_in(core: Core, admin: Caller) -> None:
    link = tokens.create_login_link(core, owner(core, admin))
    with ThreadPoolExecutor(8) as pool:
        entered = list(pool.map(lambda _: gets_in(core, link), range(8)))
    assert sum(entered) == 1


def gets_in(core: Core, link: str) -> bool:
    """Whether the link opens the door."""
    try:
        tokens.use_login_link(core, link)
    except Unauthenticated:
        return False
    return True


def test_a_login_link_is_no_good_after_15_minutes(core: Core, admin: Caller) -> None:
    link = tokens.create_login_link(core, owner(core, admin))
    later(core, minutes=15)
    with pytest.raises(Unauthenticated):
        tokens.use_login_link(core, link)


def test_a_login_link_has_the_role_of_who_made_it(core: Core, admin: Caller) -> None:
    viewer = tokens.authenticate(core, issue(core, admin, role="viewer"))
    _, caller = tokens.use_login_link(core, tokens.create_login_link(core, viewer))
    assert caller.role == "viewer"


def test_a_session_ends_by_logging_out_and_by_time(core: Core, admin: Caller) -> None:
    left, old = (tokens.start_session(core, owner(core, admin)) for _ in range(2))
    tokens.end_session(core, left)
    with pytest.raises(Unauthenticated, match="logged out"):
        tokens.authenticate_session(core, left)
    later(core, days=6)
    assert tokens.authenticate_session(core, old).role == "operator"
    later(core, days=1)
    with pytest.raises(Unauthenticated, match="logged out"):
        tokens.authenticate_session(core, old)


def test_links_and_sessions_that_are_over_do_not_pile_up(core: Core, admin: Caller) -> None:
    caller = owner(core, admin)
    tokens.use_login_link(core, tokens.create_login_link(core, caller))
    later(core, days=8)
    tokens.use_login_link(core, tokens.create_login_link(core, caller))
    with core.database.read() as db:
        assert len(db.scalars(select(LoginLink)).all()) == 1
        assert len(db.scalars(select(WebSession)).all()) == 1
