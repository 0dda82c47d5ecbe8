"""API tokens, log-in links and logged-in browsers: whose they are, who sees and ends them, and what ends with them."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import select, update

from control_plane.contract.declarations.tokens import ApiTokenRequest, JoinTokenRequest, RevocationDocument
from control_plane.contract.declarations.users import UserRequest
from control_plane.core import Caller, Core
from control_plane.db.access import ApiToken, JoinToken, LoginLink, WebSession
from control_plane.operations import organizations
from control_plane.operations.access import tokens, users
from control_plane.operations.access.last_uses import LastUses
from control_plane.operations.access.login_sessions import end_login_session, list_login_sessions
from control_plane.operations.access.logins import Browser
from control_plane.operations.access.revocation import require_maker
from shared.errors import Unauthenticated
from shared.registration import JoinTokenString
from tests.support.made import later, make_drone
from tests.support.organizations import add_organization
from tests.support.refusals import code_of

KIM, JO = "kim@example.org", "jo@example.org"


def issue(core: Core, caller: Caller, name: str = "", role: str = "operator", **fields: object) -> str:
    """The text of a new API token."""
    return str(tokens.create_api_token(core, caller, ApiTokenRequest(role=role, name=name, **fields)).token)


def owner(core: Core, caller: Caller, name: str = "kim", role: str = "operator", **fields: object) -> Caller:
    """Who a new token of this name stands for."""
    return tokens.authenticate(core, issue(core, caller, name, role, **fields))


def is_logged_in(core: Core, secret: str) -> bool:
    return code_of(lambda: tokens.authenticate_session(core, secret)) == ""


def test_an_api_token_stands_for_its_owner_and_the_minute_of_its_last_use_is_noted(core: Core, admin: Caller) -> None:
    bearer = issue(core, admin, "wall display", "viewer")
    token_id = tokens.list_api_tokens(core, admin)[0].id
    meant = Caller(admin.organization_id, "default", "viewer", "wall display", token_id=token_id)
    uses, used = LastUses(), []
    for seconds in (0, 59, 1):
        later(core, seconds=seconds)
        uses.note(core.clock.now(), tokens.authenticate(core, bearer), "10.0.0.1")
        uses.flush(core)
        used.append(tokens.list_api_tokens(core, admin)[0].last_used_at)
    now = core.clock.now()
    assert used == [used[0], used[0], now]
    # Of another process, which has not written it yet.
    late = LastUses()
    late.note(now - timedelta(seconds=30), meant, "10.0.0.2")
    late.flush(core)
    assert tokens.list_api_tokens(core, admin)[0].last_used_at == now


def test_a_use_that_cannot_be_written_is_kept_until_it_can(core: Core, admin: Caller) -> None:
    uses, used = LastUses(), owner(core, admin)
    uses.note(core.clock.now(), used, "10.0.0.1")
    for before, after in (("api_tokens", "away"), ("away", "api_tokens")):
        with core.database.write() as db:
            db.connection().exec_driver_sql(f"ALTER TABLE {before} RENAME TO {after}")
        later(core, minutes=2)
        uses.flush(core)
    assert tokens.list_api_tokens(core, admin)[0].last_used_at == core.clock.now() - timedelta(minutes=4)


def test_the_text_of_a_token_is_shown_once_and_stored_nowhere(core: Core, admin: Caller) -> None:
    """That of a join token names the control plane's key."""
    bearer = issue(core, admin)
    made = tokens.create_join_token(core, admin, JoinTokenRequest(labels={"gpu": "yes"}, uses=3))
    parsed = JoinTokenString.parse(str(made.token))
    assert parsed is not None
    assert bearer.startswith("fa_")
    assert (made.uses, made.used, made.labels) == (3, 0, {"gpu": "yes"})
    assert [each.token for each in tokens.list_api_tokens(core, admin)] == [None]
    assert [each.token for each in tokens.list_join_tokens(core, admin)] == [None]
    with core.database.read() as db:
        assert parsed.fingerprint == core.vault.box_keys(db).current_id
        stored = repr([list(row) for table in (ApiToken, JoinToken) for row in db.execute(select(table.__table__))])
    assert bearer.removeprefix("fa_") not in stored
    assert parsed.secret not in stored


def test_an_unknown_token_is_turned_away_without_repeating_it_and_told_from_an_expired_and_a_revoked_one(
    core: Core, admin: Caller
) -> None:
    for bearer in ("", "fa_", "fa_" + "0" * 64, "nonsense", "fä_\ud800", "x" * 100_000):
        with pytest.raises(Unauthenticated) as refusal:
            tokens.authenticate(core, bearer)
        assert refusal.value.code == "E-TOKEN-UNKNOWN"
        assert len(bearer) < 4 or bearer not in f"{refusal.value.what} {refusal.value.why} {refusal.value.next}"
    short, gone = issue(core, admin, expires_s=60), issue(core, admin, "gone")
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
    """And is refused where it must be the first. What was made with the first one stays until it is revoked."""
    first = tokens.bootstrap_admin(core)
    caller = tokens.authenticate(core, first)
    assert (caller.role, caller.organization, caller.everywhere) == ("admin", "default", True)
    session, child = tokens.start_session(core, caller), owner(core, caller, "child")
    assert is_logged_in(core, session)
    second = tokens.authenticate(core, tokens.bootstrap_admin(core))
    assert code_of(lambda: tokens.authenticate(core, first)) == "E-TOKEN-REVOKED"
    assert not is_logged_in(core, session)
    assert code_of(lambda: tokens.bootstrap_admin(core, only_first=True)) == "E-BOOTSTRAP"
    assert valid(core, admin) == {"bootstrap", "child"}
    assert revoke(core, second, caller).api_tokens == [child.token_id]


def revoke(core: Core, caller: Caller, other: Caller) -> RevocationDocument:
    ended = tokens.revoke_api_token(core, caller, str(other.token_id)).ended
    assert ended is not None
    return ended


def valid(core: Core, caller: Caller) -> set[str]:
    """The names of the tokens that are not revoked."""
    return {each.name for each in tokens.list_api_tokens(core, caller) if each.revoked_at is None}


def test_all_that_was_made_with_a_revoked_token_ends_in_every_generation_and_organization_and_drones_stay(
    core: Core, admin: Caller
) -> None:
    root = owner(core, admin, "root", "admin", everywhere=True)
    other, eve = owner(core, admin, "other", "admin"), owner(core, admin, "eve")
    child = owner(core, root, "child", "admin")
    grandchild = owner(core, child, "grandchild", "viewer")
    owner(core, other, "cousin")
    there = add_organization(core, admin, "other")
    elsewhere = owner(core, replace(root, organization_id=there.organization_id, organization="other"), "elsewhere")
    join = tokens.create_join_token(core, child, JoinTokenRequest())
    make_drone(core, admin, "oka", join_token_id=join.id)
    session, link = tokens.start_session(core, child), tokens.create_login_link(core, child)
    tokens.start_session(core, eve)
    tokens.create_login_link(core, eve)

    ended = revoke(core, admin, root)
    assert {*ended.api_tokens} == {child.token_id, grandchild.token_id, elsewhere.token_id}
    assert ended.model_dump(exclude={"api_tokens"}) == {
        "join_tokens": [join.id], "login_sessions": 1, "login_links": 1, "drones": ["oka"]
    }  # fmt: skip
    assert (valid(core, admin), valid(core, there)) == ({"other", "cousin", "eve"}, set())
    assert [each.revoked_at is None for each in tokens.list_join_tokens(core, admin)] == [False]
    assert not is_logged_in(core, session)
    assert code_of(lambda: tokens.use_login_link(core, link)) != ""
    with core.database.read() as db:
        assert db.scalars(select(WebSession.token_id)).all() == [eve.token_id]
        assert db.scalars(select(LoginLink.token_id)).all() == [eve.token_id]


def test_nothing_is_begun_with_a_token_that_was_revoked_since_the_request_began(core: Core, admin: Caller) -> None:
    """Nor is a session accepted that an earlier version stored without a token."""
    late, eve = owner(core, admin, "late", "admin"), owner(core, admin, "eve")
    revoke(core, admin, late)
    for attempt in (lambda: owner(core, late), lambda: tokens.create_join_token(core, late, JoinTokenRequest())):
        assert code_of(attempt) == "E-TOKEN-REVOKED"
    assert not is_logged_in(core, tokens.start_session(core, late))

    secret = tokens.start_session(core, eve)
    with core.database.write() as db:
        db.execute(update(WebSession).values(token_id=None))
    assert not is_logged_in(core, secret)
    assert list_login_sessions(core, replace(admin, token_id=None)) == []


def test_revoking_does_not_end_the_token_that_revokes_unless_it_is_named(core: Core, admin: Caller) -> None:
    root = owner(core, admin, "root", "admin")
    child = owner(core, root, "child", "admin")
    assert code_of(lambda: revoke(core, child, root)) == "E-TOKEN-OWN"
    assert valid(core, admin) == {"root", "child"}
    revoke(core, child, child)
    assert valid(core, admin) == {"root"}


@pytest.mark.dialects
def test_a_token_that_is_created_while_its_maker_is_revoked_ends_too(core: Core, admin: Caller) -> None:
    maker = owner(core, admin, "maker", "admin")
    done = threading.Event()

    def revoke_in_background() -> None:
        revoke(core, admin, maker)
        done.set()

    with core.database.write() as db:
        require_maker(db, maker, core.clock.now())
        thread = threading.Thread(target=revoke_in_background)
        thread.start()
        assert not done.wait(0.3), "the revocation did not wait for the token that is being created"
        row = db.get_one(ApiToken, maker.token_id)
        values = {each.name: getattr(row, each.name) for each in ApiToken.__table__.columns}
        db.add(ApiToken(**{**values, "id": "b" * 12, "name": "late", "secret_hash": "late", "made_by": maker.token_id}))
    thread.join(timeout=60)
    assert (done.is_set(), valid(core, admin)) == (True, set())


def names(core: Core, caller: Caller) -> list[str]:
    """Whose sessions the caller sees."""
    return sorted(each.token_name for each in list_login_sessions(core, caller))


def test_a_login_link_lets_one_browser_in_with_its_makers_role_for_15_minutes(core: Core, admin: Caller) -> None:
    """Links and sessions that are over do not pile up."""
    viewer = owner(core, admin, role="viewer")
    link, late = (tokens.create_login_link(core, viewer) for _ in range(2))
    later(core, minutes=14)
    session, caller = tokens.use_login_link(core, link)
    assert caller.role == "viewer"
    assert replace(tokens.authenticate_session(core, session), login_session_id=None) == caller
    later(core, minutes=1)
    assert all(code_of(lambda each=each: tokens.use_login_link(core, each)) for each in (link, late))

    later(core, days=8)
    tokens.use_login_link(core, tokens.create_login_link(core, viewer))
    with core.database.read() as db:
        assert [len(db.scalars(select(table.id)).all()) for table in (LoginLink, WebSession)] == [1, 1]


@pytest.mark.dialects
def test_of_many_browsers_that_open_one_link_at_once_one_gets_in(core: Core, admin: Caller) -> None:
    link = tokens.create_login_link(core, owner(core, admin))
    with ThreadPoolExecutor(8) as pool:
        codes = list(pool.map(lambda _: code_of(lambda: tokens.use_login_link(core, link)), range(8)))
    assert codes.count("") == 1


def test_a_session_ends_by_logging_out_and_by_time_also_that_of_its_token(core: Core, admin: Caller) -> None:
    short = owner(core, admin, expires_s=600)
    secret, link = tokens.start_session(core, short), tokens.create_login_link(core, short)
    assert list_login_sessions(core, short)[0].expires_at == core.clock.now() + timedelta(minutes=10)
    left, old = (tokens.start_session(core, owner(core, admin)) for _ in range(2))
    tokens.end_session(core, left)
    later(core, minutes=10)
    assert [is_logged_in(core, each) for each in (left, old, secret)] == [False, True, False]
    assert code_of(lambda: tokens.use_login_link(core, link)) != ""
    later(core, days=6)
    assert tokens.authenticate_session(core, old).role == "operator"
    later(core, days=1)
    assert not is_logged_in(core, old)


def test_sessions_are_seen_and_ended_by_their_user_and_the_organizations_admins(core: Core, admin: Caller) -> None:
    for email in (KIM, JO):
        users.add(core, admin, UserRequest(email=email, name=email.partition("@")[0], role="viewer"))
    laptop, desktop, jo = (
        owner(core, admin, name, "viewer", user=user) for name, user in (("laptop", KIM), ("desktop", KIM), ("jo", JO))
    )
    eve = owner(core, admin, "eve")
    boss = owner(core, add_organization(core, admin, "other"), "boss", "admin")
    began, secret = core.clock.now(), tokens.start_session(core, desktop, Browser("10.0.0.1"))
    for each in (laptop, jo, eve, boss):
        tokens.start_session(core, each)
    later(core, minutes=5)
    page, uses = tokens.authenticate_session(core, secret), LastUses()
    uses.note(core.clock.now(), page, "10.0.0.2")
    uses.flush(core)
    own = next(each for each in list_login_sessions(core, page) if each.current)
    assert (own.token_id, own.token_name, own.role, own.address) == (desktop.token_id, "desktop", "viewer", "10.0.0.2")
    assert (own.created_at, own.last_used_at) == (began, core.clock.now())
    assert (page.user, page.user_id) == (desktop.user, desktop.user_id)
    assert [names(core, caller) for caller in (laptop, eve, boss)] == [["desktop", "laptop"], ["eve"], ["boss"]]
    assert names(core, admin) == ["desktop", "eve", "jo", "laptop"]
    other = next(each for each in list_login_sessions(core, laptop) if each.token_name == "desktop")
    assert (other.user, other.current) == ("kim", False)
    for stranger in (eve, boss, jo):
        assert code_of(lambda stranger=stranger: end_login_session(core, stranger, other.id)) == "E-LOGIN-SESSION-404"
    assert is_logged_in(core, secret)
    assert end_login_session(core, laptop, other.id).id == other.id
    assert not is_logged_in(core, secret)
    assert names(core, desktop) == ["laptop"]


def test_a_session_that_acts_everywhere_is_ended_by_its_owner_or_an_equal(core: Core, admin: Caller) -> None:
    equal = owner(core, admin, "root", "admin", everywhere=True)
    alone = owner(core, admin, "boss", "admin")
    first, second = (tokens.start_session(core, equal) for _ in range(2))
    listed = list_login_sessions(core, alone)
    assert code_of(lambda: end_login_session(core, alone, listed[0].id)) == "E-EVERYWHERE"
    for session, caller in zip(listed, (equal, admin), strict=True):
        end_login_session(core, caller, session.id)
    assert [is_logged_in(core, secret) for secret in (first, second)] == [False, False]


def test_a_session_in_another_organization_ends_with_the_organization_of_its_token(core: Core, admin: Caller) -> None:
    root = owner(core, add_organization(core, admin, "other"), "root", "admin", everywhere=True)
    at_home = replace(root, organization_id=admin.organization_id, organization="default")
    secret = tokens.start_session(core, at_home)
    assert is_logged_in(core, secret)
    organizations.remove(core, admin, "other")
    assert not is_logged_in(core, secret)
