"""People: members of organizations, with tokens that count no longer and no more than their owner does."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import select

from control_plane.contract.declarations.tokens import ApiTokenRequest
from control_plane.contract.declarations.users import UserDocument, UserEdit, UserRequest
from control_plane.core import Caller, Core
from control_plane.core.lookups.organizations import in_organization
from control_plane.db.users import Member, User
from control_plane.operations import organizations
from control_plane.operations.access import login_sessions, tokens, users
from control_plane.operations.access.logins import Browser, start_session_of_user
from control_plane.operations.orders import reading
from shared.errors import Conflict, NotFound
from tests.support.made import make_project, submit
from tests.support.organizations import add_organization
from tests.support.refusals import code_of

KIM, JO = "kim@example.org", "jo@example.org"


def add(core: Core, caller: Caller, email: str = KIM, role: str = "operator", name: str = "Kim Lee") -> UserDocument:
    return users.add(core, caller, UserRequest(email=email, name=name, role=role))


def token_of(core: Core, caller: Caller, email: str | None = KIM, role: str = "operator", **fields: object) -> str:
    """The text of a new token of this user, or of nobody."""
    return str(tokens.create_api_token(core, caller, ApiTokenRequest(role=role, user=email, **fields)).token)


def edit(core: Core, caller: Caller, user: str = KIM, **fields: object) -> UserDocument:
    return users.edit(core, caller, user, UserEdit(**fields))


def code_with(core: Core, bearer: str) -> str:
    """The code with which a token is refused."""
    return code_of(lambda: tokens.authenticate(core, bearer))


def takeovers(core: Core, caller: Caller) -> list[Callable[[], object]]:
    """What would take kim's rights as an admin away."""
    return [
        lambda: edit(core, caller, role="viewer"),
        lambda: edit(core, caller, disabled=True),
        lambda: users.remove(core, caller, KIM),
    ]


def test_a_token_stands_for_its_user_with_at_most_the_role_of_the_moment_and_only_members_have_one(
    core: Core, admin: Caller
) -> None:
    kim = add(core, admin, role="admin")
    bearer, low = token_of(core, admin, role="admin", name="laptop"), token_of(core, admin, role="viewer")
    caller = tokens.authenticate(core, bearer)
    assert (caller.user, caller.user_id, caller.role) == ("Kim Lee", kim.id, "admin")
    assert {each.name: each.user for each in tokens.list_api_tokens(core, admin)} == {"laptop": KIM, "": KIM}
    add(core, add_organization(core, admin, "other"), JO)
    assert code_of(lambda: token_of(core, admin, JO)) == "E-USER-404"

    session = tokens.start_session(core, caller)
    tokens.create_api_token(core, admin, ApiTokenRequest(role="admin"))
    edit(core, admin, role="operator")
    roles = [tokens.authenticate(core, each).role for each in (bearer, low)]
    assert [*roles, tokens.authenticate_session(core, session).role] == ["operator", "viewer", "operator"]


def test_an_address_that_is_none_or_taken_in_any_case_is_refused(core: Core, admin: Caller) -> None:
    add(core, admin, "Kim@Example.org")
    assert users.show(core, admin, "KIM@example.org").email == KIM
    assert code_of(lambda: add(core, admin)) == "E-USER-EMAIL"
    malformed = ("", "kim", "@", "kim@", "a b@c", "a/b@c", "a@b@c", "kim@x\0", "k" * 250 + "@x.org")
    codes = {email: code_of(lambda email=email: add(core, admin, email)) for email in malformed}
    assert codes == dict.fromkeys(malformed, "E-USER-ADDRESS")


def test_a_disabled_user_is_refused_with_token_link_and_session_until_enabled(core: Core, admin: Caller) -> None:
    add(core, admin)
    bearer = token_of(core, admin)
    caller = tokens.authenticate(core, bearer)
    session, link = tokens.start_session(core, caller), tokens.create_login_link(core, caller)
    assert edit(core, admin, disabled=True).disabled
    assert code_with(core, bearer) == "E-USER-DISABLED"
    assert code_of(lambda: tokens.authenticate_session(core, session)) != ""
    assert code_of(lambda: tokens.use_login_link(core, link)) != ""
    edit(core, admin, disabled=False)
    again = tokens.authenticate_session(core, session)
    assert tokens.authenticate(core, bearer) == replace(again, login_session_id=None)


def test_a_removed_user_keeps_nothing_but_a_name_on_orders(core: Core, admin: Caller) -> None:
    """What was made with their tokens ends too."""
    make_project(core, admin)
    tokens.bootstrap_admin(core)
    add(core, admin, role="admin")
    bearer = token_of(core, admin, role="admin")
    caller = tokens.authenticate(core, bearer)
    order, session = submit(core, caller), tokens.start_session(core, caller)
    made = token_of(core, caller, None)
    removed = users.remove(core, admin, KIM)
    assert removed.ended is not None
    assert (removed.tokens, len(removed.ended.api_tokens)) == (1, 1)
    assert code_of(lambda: tokens.authenticate_session(core, session)) != ""
    assert reading.show_order(core, admin, order.id).user == "Kim Lee"
    with core.database.read() as db:
        assert db.scalars(select(User)).all() == []
    add(core, admin)
    assert [code_with(core, each) for each in (bearer, made)] == ["E-TOKEN-REVOKED"] * 2


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
    assert code_with(core, here) == "E-TOKEN-REVOKED"
    assert tokens.authenticate(core, there).user == "Kim Lee"
    assert code_of(lambda: users.show(core, admin, KIM)) == "E-USER-404"
    add(core, admin)
    organizations.remove(core, admin, "other")
    with core.database.read() as db:
        assert db.scalars(select(User.email)).all() == [KIM]


def test_the_name_of_another_organizations_user_is_told_to_none_but_who_acts_everywhere(
    core: Core, admin: Caller
) -> None:
    add(core, admin)
    other = replace(add_organization(core, admin, "other"), everywhere=False)
    for name in ("K.", "Kim", "Lee", "Kim Lee Jr.", "kim@example.org", "KimLee"):
        with pytest.raises(Conflict) as refused:
            add(core, other, name=name)
        told = f"{refused.value} {refused.value.why} {refused.value.next}"
        assert (refused.value.code, "Kim Lee" in told) == ("E-USER-NAME", False), name
    assert users.list_(core, other) == []
    assert code_of(lambda: users.show(core, other, KIM)) == "E-USER-404"
    assert add(core, other, name="kim lee").name == "Kim Lee"
    # A member's name is no secret here.
    assert code_of(lambda: add(core, other, name="K.")) == "E-USER-EMAIL"
    third = replace(add_organization(core, admin, "third"), everywhere=True)
    assert (add(core, third, name="K.").name, users.remove(core, third, KIM).name) == ("Kim Lee", "Kim Lee")


def test_only_who_acts_everywhere_changes_a_person_of_several_organizations(core: Core, admin: Caller) -> None:
    for each in (admin, add_organization(core, admin, "other")):
        add(core, each)
    local = replace(admin, everywhere=False)
    changes: tuple[dict[str, object], ...] = ({"name": "X"}, {"disabled": True}, {"email": "x@example.org"})
    refused = [code_of(lambda change=change: edit(core, local, **change)) for change in changes]
    assert refused == ["E-EVERYWHERE"] * 3
    assert edit(core, local, role="viewer").role == "viewer"
    for change in changes:
        edit(core, admin, **change)


def test_an_organizations_admin_does_not_lock_out_an_admin_of_the_installation(core: Core, admin: Caller) -> None:
    add(core, admin, role="admin")
    bearer = token_of(core, admin, role="admin", everywhere=True)
    refused = [code_of(attempt) for attempt in takeovers(core, replace(admin, everywhere=False))]
    assert refused == ["E-EVERYWHERE"] * 3
    assert tokens.authenticate(core, bearer).everywhere


def test_an_organizations_admin_does_not_act_on_a_disabled_admin_of_the_installation(core: Core, admin: Caller) -> None:
    tokens.bootstrap_admin(core)
    add(core, admin, role="admin")
    bearer = token_of(core, admin, role="admin", everywhere=True)
    edit(core, admin, disabled=True)
    local = replace(admin, everywhere=False)
    attempts = [lambda: edit(core, local, disabled=False), lambda: token_of(core, local), *takeovers(core, local)]
    assert [code_of(attempt) for attempt in attempts] == ["E-EVERYWHERE"] * 5
    assert code_with(core, bearer) == "E-USER-DISABLED"


def test_an_organizations_admin_does_not_lock_out_one_of_the_installation_in_their_own_name(
    core: Core, admin: Caller
) -> None:
    add(core, admin, role="admin")
    local = replace(admin, everywhere=False)
    # Made before Kim could act everywhere; afterwards, no other is.
    as_kim = tokens.authenticate(core, token_of(core, local, role="admin"))
    everywhere = tokens.authenticate(core, token_of(core, admin, role="admin", everywhere=True))
    session = tokens.start_session(core, everywhere)
    (listed,) = login_sessions.list_login_sessions(core, as_kim)
    attempts = [
        lambda: token_of(core, local, role="viewer"),
        lambda: login_sessions.end_login_session(core, as_kim, listed.id),
        *takeovers(core, as_kim),
    ]
    assert [code_of(attempt) for attempt in attempts] == ["E-EVERYWHERE"] * 5
    assert tokens.authenticate_session(core, session).everywhere
    assert code_of(lambda: token_of(core, as_kim, role="viewer")) == ""
    of_provider = replace(as_kim, token_id=None, login_session_id="s")
    assert edit(core, of_provider, name="K. Lee").name == edit(core, everywhere, name="K. Lee").name


def test_a_token_in_a_users_name_shows_and_ends_their_browser_sessions_in_its_organization_alone(
    core: Core, admin: Caller
) -> None:
    other = add_organization(core, admin, "other")
    for each in (admin, other):
        add(core, each)
    # An organization's admin made it, to look into another organization.
    as_kim = tokens.authenticate(core, token_of(core, replace(admin, everywhere=False)))
    there = tokens.authenticate(core, token_of(core, other))
    by_token = tokens.start_session(core, there)
    with core.database.write() as db:
        member = db.get_one(Member, (there.organization_id, there.user_id))
        by_provider, _ = start_session_of_user(db, core, member, Browser(), timedelta(hours=1))
    sessions = login_sessions.list_login_sessions(core, there)
    ends = [code_of(lambda id=each.id: login_sessions.end_login_session(core, as_kim, id)) for each in sessions]
    assert (login_sessions.list_login_sessions(core, as_kim), ends) == ([], ["E-LOGIN-SESSION-404"] * 2)
    for secret in (by_token, by_provider):
        tokens.authenticate_session(core, secret)
    tokens.start_session(core, as_kim)
    whole = replace(as_kim, everywhere=True), replace(as_kim, token_id=None, login_session_id="s")
    counts = [len(login_sessions.list_login_sessions(core, each)) for each in (as_kim, *whole)]
    assert counts == [1, 3, 3]


def test_the_last_admin_stays(core: Core, admin: Caller) -> None:
    """Also an admin's token that belongs to no user counts as one."""
    add(core, admin, role="admin")
    assert [code_of(attempt) for attempt in takeovers(core, admin)] == ["E-USER-LAST-ADMIN"] * 3
    assert (users.show(core, admin, KIM).role, users.show(core, admin, KIM).disabled) == ("admin", False)
    add(core, admin, JO, role="admin")
    users.remove(core, admin, JO)
    tokens.bootstrap_admin(core)
    for attempt in takeovers(core, admin):
        attempt()
    assert users.list_(core, admin) == []


@pytest.mark.dialects
def test_of_two_admins_who_demote_each_other_at_once_one_stays(core: Core, admin: Caller) -> None:
    for email in (KIM, JO):
        add(core, admin, email, role="admin")
    with ThreadPoolExecutor(2) as pool:
        codes = list(pool.map(lambda email: code_of(lambda: edit(core, admin, email, role="viewer")), (KIM, JO)))
    assert sorted(codes) == ["", "E-USER-LAST-ADMIN"]
    assert sorted(each.role for each in users.list_(core, admin)) == ["admin", "viewer"]


def test_the_first_admin_acts_everywhere_and_others_only_where_their_token_says_so(core: Core, admin: Caller) -> None:
    other = add_organization(core, admin, "other")
    # An admin of one organization does not stand in the way of the first of all.
    made = tokens.authenticate(core, token_of(core, other, None, role="admin"))
    assert (made.organization, made.role, made.everywhere) == ("other", "admin", False)
    assert code_of(lambda: in_organization(core, made, "default")) == "E-ORGANIZATION-404"
    first = tokens.authenticate(core, tokens.bootstrap_admin(core, only_first=True))
    assert (first.everywhere, first.role, first.organization) == (True, "admin", "default")
    viewer = tokens.authenticate(core, token_of(core, admin, None, role="viewer", name="n", everywhere=True))
    there = in_organization(core, viewer, "other")
    assert there == replace(viewer, organization_id=other.organization_id, organization="other")
    assert (there.role, there.user, there.everywhere) == ("viewer", "n", True)
    with pytest.raises(NotFound):
        in_organization(core, viewer, "nobody")


def test_only_who_acts_everywhere_hands_out_or_revokes_tokens_that_do(core: Core, admin: Caller) -> None:
    alone = replace(admin, everywhere=False)
    token = tokens.create_api_token(core, admin, ApiTokenRequest(role="admin", everywhere=True))
    refused = [
        code_of(lambda: token_of(core, alone, None, role="admin", everywhere=True)),
        code_of(lambda: tokens.revoke_api_token(core, alone, token.id)),
    ]
    assert refused == ["E-EVERYWHERE"] * 2
    assert tokens.revoke_api_token(core, admin, token.id).revoked_at is not None
