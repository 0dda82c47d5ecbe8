"""People: members of organizations, with tokens that count no longer and no more than their owner does."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy import select

from control_plane.core import Caller, Core
from control_plane.db.users import User
from control_plane.declarations.tokens import ApiTokenRequest
from control_plane.declarations.users import UserDocument, UserEdit, UserRequest
from control_plane.operations import organizations
from control_plane.operations.access import tokens, users
from control_plane.operations.orders import reading
from shared.errors import Conflict, FleetError, Forbidden, Invalid, NotFound, Unauthenticated
from tests.support.made import make_project, submit
from tests.support.organizations import add_organization

KIM, JO = "kim@example.org", "jo@example.org"


def add(core: Core, caller: Caller, email: str = KIM, role: str = "operator", name: str = "Kim Lee") -> UserDocument:
    return users.add(core, caller, UserRequest(email=email, name=name, role=role))


def token_of(core: Core, caller: Caller, email: str | None = KIM, role: str = "operator", **fields: object) -> str:
    """The text of a new token of this user."""
    return str(tokens.create_api_token(core, caller, ApiTokenRequest(role=role, user=email, **fields)).token)


def edit(core: Core, caller: Caller, user: str = KIM, **fields: object) -> UserDocument:
    return users.edit(core, caller, user, UserEdit(**fields))


def code_of(core: Core, bearer: str) -> str:
    with pytest.raises(FleetError) as refusal:
        tokens.authenticate(core, bearer)
    return refusal.value.code


def test_a_token_of_a_user_stands_for_the_person_and_only_members_have_one(core: Core, admin: Caller) -> None:
    kim = add(core, admin)
    caller = tokens.authenticate(core, token_of(core, admin, name="laptop"))
    assert (caller.user, caller.user_id, caller.role) == ("Kim Lee", kim.id, "operator")
    assert [(each.name, each.user) for each in tokens.list_api_tokens(core, admin)] == [("laptop", KIM)]
    add(core, add_organization(core, admin, "other"), JO)
    with pytest.raises(NotFound) as refusal:
        token_of(core, admin, JO)
    assert refusal.value.code == "E-USER-404"


def test_an_address_that_is_none_or_taken_in_any_case_is_refused(core: Core, admin: Caller) -> None:
    add(core, admin, "Kim@Example.org")
    assert users.show(core, admin, "KIM@example.org").email == KIM
    with pytest.raises(Conflict) as taken:
        add(core, admin)
    assert taken.value.code == "E-USER-EMAIL"
    for email in ("", "kim", "@", "kim@", "a b@c", "a/b@c", "a@b@c", "kim@x\0", "k" * 250 + "@x.org"):
        with pytest.raises(Invalid) as refusal:
            add(core, admin, email)
        assert refusal.value.code == "E-USER-ADDRESS", email


def test_a_token_has_at_most_the_role_of_its_user_from_the_moment_it_changes(core: Core, admin: Caller) -> None:
    add(core, admin, JO, role="admin")
    add(core, admin, role="admin")
    bearer, low = token_of(core, admin, role="admin"), token_of(core, admin, role="viewer")
    session = tokens.start_session(core, tokens.authenticate(core, bearer))
    edit(core, admin, role="operator")
    roles = [tokens.authenticate(core, each).role for each in (bearer, low)]
    assert [*roles, tokens.authenticate_session(core, session).role] == ["operator", "viewer", "operator"]


def test_a_disabled_user_is_refused_with_token_link_and_session_until_enabled(core: Core, admin: Caller) -> None:
    add(core, admin)
    bearer = token_of(core, admin)
    caller = tokens.authenticate(core, bearer)
    session, link = tokens.start_session(core, caller), tokens.create_login_link(core, caller)
    assert edit(core, admin, disabled=True).disabled
    assert code_of(core, bearer) == "E-USER-DISABLED"
    with pytest.raises(Unauthenticated):
        tokens.authenticate_session(core, session)
    with pytest.raises(Unauthenticated):
        tokens.use_login_link(core, link)
    edit(core, admin, disabled=False)
    assert tokens.authenticate(core, bearer) == replace(
        tokens.authenticate_session(core, session), login_session_id=None
    )


def test_a_removed_user_keeps_nothing_but_a_name_on_orders(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    add(core, admin)
    bearer = token_of(core, admin)
    order = submit(core, tokens.authenticate(core, bearer))
    session = tokens.start_session(core, tokens.authenticate(core, bearer))
    assert users.remove(core, admin, KIM).tokens == 1
    assert code_of(core, bearer) == "E-TOKEN-REVOKED"
    with pytest.raises(Unauthenticated):
        tokens.authenticate_session(core, session)
    assert reading.show_order(core, admin, order.id).user == "Kim Lee"
    with core.database.read() as db:
        assert db.scalars(select(User)).all() == []
    add(core, admin)
    assert code_of(core, bearer) == "E-TOKEN-REVOKED"


# --- several organizations ------------------------------------------------------------------


def test_a_person_has_a_role_in_each_organization_and_is_deleted_with_the_last(core: Core, admin: Caller) -> None:
    other = add_organization(core, admin, "other")
    add(core, other, JO)
    add(core, admin, role="viewer")
    member = add(core, other, role="admin", name="K.")
    assert (member.role, member.name, len(member.warnings)) == ("admin", "Kim Lee", 1)
    here, there = (token_of(core, each, role="admin") for each in (admin, other))
    callers = [tokens.authenticate(core, each) for each in (here, there)]
    assert [(each.organization, each.role) for each in callers] == [("default", "viewer"), ("other", "admin")]
    users.remove(core, admin, KIM)
    assert code_of(core, here) == "E-TOKEN-REVOKED"
    assert tokens.authenticate(core, there).user == "Kim Lee"
    with pytest.raises(NotFound):
        users.show(core, admin, KIM)
    add(core, admin)
    organizations.remove(core, admin, "other")
    with core.database.read() as db:
        assert db.scalars(select(User.email)).all() == [KIM]


def test_only_who_acts_everywhere_changes_a_person_of_several_organizations(core: Core, admin: Caller) -> None:
    for each in (admin, add_organization(core, admin, "other")):
        add(core, each)
    local = replace(admin, everywhere=False)
    changes: tuple[dict[str, object], ...] = ({"name": "X"}, {"disabled": True}, {"email": "x@example.org"})
    for change in changes:
        with pytest.raises(Forbidden) as refusal:
            edit(core, local, **change)
        assert refusal.value.code == "E-EVERYWHERE"
    assert edit(core, local, role="viewer").role == "viewer"
    for change in changes:
        edit(core, admin, **change)


def test_an_organizations_admin_does_not_lock_out_an_admin_of_the_installation(core: Core, admin: Caller) -> None:
    add(core, admin, role="admin")
    bearer = token_of(core, admin, role="admin", everywhere=True)
    local = replace(admin, everywhere=False)
    for attempt in (
        lambda: users.remove(core, local, KIM),
        lambda: edit(core, local, role="viewer"),
        lambda: edit(core, local, disabled=True),
    ):
        with pytest.raises(Forbidden):
            attempt()
    assert tokens.authenticate(core, bearer).everywhere


# --- the last admin ---------------------------------------------------------------------------


def test_the_last_admin_stays(core: Core, admin: Caller) -> None:
    """Also an admin's token that belongs to no user counts as one."""
    add(core, admin, role="admin")
    attempts = (
        lambda: edit(core, admin, role="operator"),
        lambda: edit(core, admin, disabled=True),
        lambda: users.remove(core, admin, KIM),
    )
    for attempt in attempts:
        with pytest.raises(Conflict) as refusal:
            attempt()
        assert refusal.value.code == "E-USER-LAST-ADMIN"
    assert (users.show(core, admin, KIM).role, users.show(core, admin, KIM).disabled) == ("admin", False)
    add(core, admin, JO, role="admin")
    users.remove(core, admin, JO)
    tokens.bootstrap_admin(core)
    for attempt in attempts:
        attempt()
    assert users.list_(core, admin) == []


@pytest.mark.dialects
def test_of_two_admins_who_demote_each_other_at_once_one_stays(core: Core, admin: Caller) -> None:
    for email in (KIM, JO):
        add(core, admin, email, role="admin")
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda email: is_done(core, admin, email), (KIM, JO)))
    assert sorted(done) == [False, True]
    assert sorted(each.role for each in users.list_(core, admin)) == ["admin", "viewer"]


def is_done(core: Core, caller: Caller, email: str) -> bool:
    try:
        edit(core, caller, email, role="viewer")
    except Conflict:
        return False
    return True


def test_a_token_for_someone_who_is_no_member_is_refused(core: Core, admin: Caller) -> None:
    add(core, add_organization(core, admin, "other"))
    with pytest.raises(NotFound) as refusal:
        token_of(core, admin)
    assert refusal.value.code == "E-USER-404"
