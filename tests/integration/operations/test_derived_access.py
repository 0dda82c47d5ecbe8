"""What was derived from an API token, and ends with it when it is revoked."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from control_plane.core import Caller, Core
from control_plane.db.access import ApiToken
from control_plane.declarations.tokens import ApiTokenRequest, JoinTokenRequest, RevocationDocument
from control_plane.declarations.users import UserRequest
from control_plane.operations.access import tokens, users
from control_plane.operations.access.revocation import require_maker
from shared.errors import Conflict, FleetError, Unauthenticated
from tests.support.made import make_drone
from tests.support.organizations import add_organization


def issue(core: Core, caller: Caller, name: str, **fields: object) -> Caller:
    """Who a new admin's token stands for."""
    request = ApiTokenRequest(**{"role": "admin", "name": name, **fields})
    return tokens.authenticate(core, str(tokens.create_api_token(core, caller, request).token))


def revoke(core: Core, caller: Caller, other: Caller) -> RevocationDocument:
    ended = tokens.revoke_api_token(core, caller, str(other.token_id)).ended
    assert ended is not None
    return ended


def valid(core: Core, caller: Caller) -> set[str]:
    """The names of the tokens that are not revoked."""
    return {each.name for each in tokens.list_api_tokens(core, caller) if each.revoked_at is None}


def test_tokens_of_every_generation_end_and_others_do_not(core: Core, admin: Caller) -> None:
    root, other = issue(core, admin, "root"), issue(core, admin, "other")
    child = issue(core, root, "child")
    grandchild = issue(core, child, "grandchild", role="viewer")
    issue(core, other, "cousin")
    assert revoke(core, admin, root).api_tokens == [child.token_id, grandchild.token_id]
    assert valid(core, admin) == {"other", "cousin"}


def test_tokens_in_another_organization_end_too(core: Core, admin: Caller) -> None:
    root = issue(core, admin, "root", everywhere=True)
    there = add_organization(core, admin, "other")
    issue(core, replace(root, organization_id=there.organization_id, organization="other"), "elsewhere")
    revoke(core, admin, root)
    assert valid(core, there) == set()


def test_what_a_token_that_was_replaced_has_made_ends_once_it_is_revoked_on_purpose(core: Core, admin: Caller) -> None:
    first = tokens.authenticate(core, tokens.bootstrap_admin(core))
    child = issue(core, first, "child")
    second = tokens.authenticate(core, tokens.bootstrap_admin(core))
    assert valid(core, admin) == {"bootstrap", "child"}
    assert revoke(core, second, first).api_tokens == [child.token_id]


def test_join_tokens_links_and_sessions_end_and_drones_stay(core: Core, admin: Caller) -> None:
    child = issue(core, issue(core, admin, "root"), "child")
    join = tokens.create_join_token(core, child, JoinTokenRequest())
    make_drone(core, admin, "oka", join_token_id=join.id)
    session, link = tokens.start_session(core, child), tokens.create_login_link(core, child)
    root_id = next(each.id for each in tokens.list_api_tokens(core, admin) if each.name == "root")
    ended = tokens.revoke_api_token(core, admin, root_id).ended
    assert ended == RevocationDocument(
        api_tokens=[child.token_id], join_tokens=[join.id], login_sessions=1, login_links=1, drones=["oka"]
    )
    assert [each.revoked_at is None for each in tokens.list_join_tokens(core, admin)] == [False]
    with pytest.raises(Unauthenticated):
        tokens.authenticate_session(core, session)
    with pytest.raises(Unauthenticated):
        tokens.use_login_link(core, link)


def test_revoking_does_not_end_the_token_that_revokes_unless_it_is_named(core: Core, admin: Caller) -> None:
    root = issue(core, admin, "root")
    child = issue(core, root, "child")
    with pytest.raises(Conflict) as refusal:
        revoke(core, child, root)
    assert refusal.value.code == "E-TOKEN-OWN"
    assert valid(core, admin) == {"root", "child"}
    revoke(core, child, child)
    assert valid(core, admin) == {"root"}


def test_a_removed_users_tokens_end_with_what_was_made_with_them(core: Core, admin: Caller) -> None:
    tokens.bootstrap_admin(core)
    users.add(core, admin, UserRequest(email="kim@example.org", name="Kim", role="admin"))
    ci = issue(core, issue(core, admin, "kim", user="kim@example.org"), "ci")
    removed = users.remove(core, admin, "kim@example.org")
    assert removed.ended is not None
    assert (removed.ended.api_tokens, valid(core, admin)) == ([ci.token_id], {"bootstrap"})


def test_nothing_is_created_with_a_token_that_was_revoked_since_the_request_began(core: Core, admin: Caller) -> None:
    late = issue(core, admin, "late")
    revoke(core, admin, late)
    for attempt in (
        lambda: tokens.create_api_token(core, late, ApiTokenRequest(role="admin")),
        lambda: tokens.create_join_token(core, late, JoinTokenRequest()),
    ):
        with pytest.raises(FleetError) as refusal:
            attempt()
        assert refusal.value.code == "E-TOKEN-REVOKED"


@pytest.mark.dialects
def test_a_token_that_is_created_while_its_maker_is_revoked_ends_too(core: Core, admin: Caller) -> None:
    maker = issue(core, admin, "maker")
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
