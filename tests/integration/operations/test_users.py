"""People: members of organizations, with tokens that count no longer and no more than their owner does."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from sqlalchemy import select, text

from control_plane.core import Caller, Core
from control_plane.db.engine import Database
from control_plane.db.upgrade import apply_migrations
from control_plane.db.users import User
from control_plane.declarations.tokens import ApiTokenRequest
from control_plane.declarations.users import UserDocument, UserEdit, UserRequest
from control_plane.operations import organizations
from control_plane.operations.access import tokens, users
from control_plane.operations.orders import reading
from shared.errors import Conflict, FleetError, Forbidden, Invalid, NotFound, Unauthenticated
from tests.support.database import CoreFactory
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


def test_a_token_of_a_user_stands_for_the_person(core: Core, admin: Caller) -> None:
    kim = add(core, admin)
    caller = tokens.authenticate(core, token_of(core, admin, name="laptop"))
    assert (caller.user, caller.user_id, caller.role) == ("Kim Lee", kim.id, "operator")
    assert [(each.name, each.user) for each in tokens.list_api_tokens(core, admin)] == [("laptop", KIM)]


def test_a_token_for_someone_who_is_no_member_is_refused(core: Core, admin: Caller) -> None:
    add(core, add_organization(core, admin, "other"))
    with pytest.raises(NotFound) as refusal:
        token_of(core, admin)
    assert refusal.value.code == "E-USER-404"


@pytest.mark.parametrize("email", ["", "kim", "@", "kim@", "a b@c", "a/b@c", "a@b@c", "kim@x\0", "k" * 250 + "@x.org"])
def test_an_address_that_is_none_is_refused(core: Core, admin: Caller, email: str) -> None:
    with pytest.raises(Invalid) as refusal:
        add(core, admin, email)
    assert refusal.value.code == "E-USER-ADDRESS"


def test_an_address_is_the_same_in_upper_and_lower_case(core: Core, admin: Caller) -> None:
    add(core, admin, "Kim@Example.org")
    assert users.show(core, admin, "KIM@example.org").email == KIM
    with pytest.raises(Conflict) as refusal:
        add(core, admin)
    assert refusal.value.code == "E-USER-EMAIL"


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


def test_a_user_added_again_does_not_get_the_old_tokens_back(core: Core, admin: Caller) -> None:
    add(core, admin)
    bearer = token_of(core, admin)
    users.remove(core, admin, KIM)
    add(core, admin)
    assert code_of(core, bearer) == "E-TOKEN-REVOKED"


def test_the_newest_order_of_a_user_is_the_one_of_any_of_their_tokens(core: Core, admin: Caller) -> None:
    make_project(core, admin)
    add(core, admin)
    add(core, admin, JO, name="Kim Lee")
    laptop, desktop, namesake = (tokens.authenticate(core, token_of(core, admin, email)) for email in (KIM, KIM, JO))
    first = submit(core, laptop)
    submit(core, namesake)
    assert reading.show_order(core, desktop, "@last").id == first.id


# --- several organizations ------------------------------------------------------------------


def test_a_person_has_a_role_of_their_own_in_each_organization(core: Core, admin: Caller) -> None:
    other = add_organization(core, admin, "other")
    add(core, admin, role="viewer")
    there = add(core, other, role="admin", name="K.")
    assert (there.role, there.name, len(there.warnings)) == ("admin", "Kim Lee", 1)
    callers = [tokens.authenticate(core, token_of(core, each, role="admin")) for each in (admin, other)]
    assert [(each.organization, each.role) for each in callers] == [("default", "viewer"), ("other", "admin")]


def test_removal_from_one_organization_leaves_the_other_alone(core: Core, admin: Caller) -> None:
    other = add_organization(core, admin, "other")
    for each in (admin, other):
        add(core, each)
    here, there = token_of(core, admin), token_of(core, other)
    users.remove(core, admin, KIM)
    assert code_of(core, here) == "E-TOKEN-REVOKED"
    assert tokens.authenticate(core, there).user == "Kim Lee"
    with pytest.raises(NotFound):
        users.show(core, admin, KIM)


@pytest.mark.parametrize("change", [{"name": "X"}, {"email": "x@example.org"}, {"disabled": True}])
def test_only_who_acts_everywhere_changes_a_person_of_several_organizations(
    core: Core, admin: Caller, change: dict[str, object]
) -> None:
    for each in (admin, add_organization(core, admin, "other")):
        add(core, each)
    with pytest.raises(Forbidden) as refusal:
        edit(core, replace(admin, everywhere=False), **change)
    assert refusal.value.code == "E-EVERYWHERE"
    assert edit(core, replace(admin, everywhere=False), role="viewer").role == "viewer"
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


def test_another_organizations_users_are_not_there(core: Core, admin: Caller) -> None:
    kim = add(core, add_organization(core, admin, "other"))
    assert users.list_(core, admin) == []
    for attempt in (
        lambda: users.show(core, admin, kim.id),
        lambda: edit(core, admin, KIM, role="viewer"),
        lambda: users.remove(core, admin, KIM),
    ):
        with pytest.raises(NotFound):
            attempt()


def test_people_of_a_removed_organization_alone_are_deleted(core: Core, admin: Caller) -> None:
    other = add_organization(core, admin, "other")
    add(core, other)
    for each in (admin, other):
        add(core, each, JO, name="Jo")
    organizations.remove(core, admin, "other")
    with core.database.read() as db:
        assert db.scalars(select(User.email)).all() == [JO]


# --- the last admin ---------------------------------------------------------------------------


@pytest.mark.parametrize("change", ["role", "disabled", "remove"])
def test_the_last_admin_stays(core: Core, admin: Caller, change: str) -> None:
    add(core, admin, role="admin")
    attempts = {
        "role": lambda: edit(core, admin, role="operator"),
        "disabled": lambda: edit(core, admin, disabled=True),
        "remove": lambda: users.remove(core, admin, KIM),
    }
    with pytest.raises(Conflict) as refusal:
        attempts[change]()
    assert refusal.value.code == "E-USER-LAST-ADMIN"
    assert (users.show(core, admin, KIM).role, users.show(core, admin, KIM).disabled) == ("admin", False)
    add(core, admin, JO, role="admin")
    attempts[change]()


def test_an_admins_token_of_no_user_is_an_admin_left(core: Core, admin: Caller) -> None:
    add(core, admin, role="admin")
    tokens.bootstrap_admin(core)
    users.remove(core, admin, KIM)
    assert users.list_(core, admin) == []


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


# --- upgrades -----------------------------------------------------------------------------------


def test_tokens_and_orders_of_the_version_before_keep_their_names(
    core_factory: CoreFactory, empty_database_url: str
) -> None:
    apply_migrations(empty_database_url, "0008")
    old = Database(empty_database_url)
    values = {"hash": tokens.hashed("fa_old"), "at": datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)}
    with old.write() as db:
        db.execute(
            text(
                "INSERT INTO api_tokens (id, organization_id, name, role, everywhere, secret_hash, created_at)"
                " SELECT 'aaaaaaaaaaaa', id, 'ci', 'admin', false, :hash, :at FROM organizations"
            ),
            values,
        )
    old.dispose()
    apply_migrations(empty_database_url)
    core = core_factory(empty_database_url)
    caller = tokens.authenticate(core, "fa_old")
    assert (caller.user, caller.user_id, caller.role) == ("ci", None, "admin")
    assert [each.user for each in tokens.list_api_tokens(core, caller)] == [None]
