"""Users: people, who are members of organizations with a role in each."""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import datetime

from sqlalchemy import ColumnElement, delete, func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from control_plane.contract.declarations import users as declared
from control_plane.contract.declarations.users import UserDocument, UserEdit, UserRequest
from control_plane.contract.validation.checks import check_text, shown
from control_plane.core import Caller, Core
from control_plane.core.lookups.organizations import locked_organization
from control_plane.core.lookups.users import find_member
from control_plane.db.access import ApiToken, WebSession
from control_plane.db.attention import AttentionChoices, PushSubscription
from control_plane.db.installation import Organization
from control_plane.db.users import Member, User
from control_plane.money.spending.setting import BudgetTarget, remove_budgets
from control_plane.operations.access.revocation import revoke_owned_join_tokens, revoke_with_derived
from control_plane.operations.access.roles import parse_role, require_everywhere
from control_plane.operations.access.validity import acts_everywhere, is_valid
from control_plane.operations.gateway import performs
from control_plane.operations.row_documents import document_of
from shared.errors import Conflict, Invalid
from shared.names import new_id

_EMAIL = re.compile(r"[^@\s/]+@[^@\s/]+")


@performs(declared.ADD)
def add(core: Core, caller: Caller, request: UserRequest) -> UserDocument:
    """Add a person to the organization; one who is known from another organization becomes a member here, too.

    Raises Conflict for a member, and, unless the caller may act in every organization, for one who is known by another
    name: it is not told. Invalid for an invalid value.
    """
    email, role = _check_email(request.email), parse_role(request.role)
    name, now = check_text("the name", request.name, limit=User.NAME_LENGTH), core.clock.now()
    try:
        with core.database.write() as db:
            user = db.scalar(select(User).where(User.email == email))
            known = user is not None
            if user is None:
                user = User(id=new_id(), email=email, name=name, created_at=now)
                db.add(user)
                db.flush()
            member = Member(organization_id=caller.organization_id, user_id=user.id, role=role, created_at=now)
            db.add(member)
            db.flush()
            if user.name.casefold() != name.casefold() and not caller.everywhere:
                raise Conflict(
                    f"{shown(email)} is the address of a user of another organization, by another name",
                    code="E-USER-NAME",
                    next="ask this user for the name, or the fleet administrator to add the user",
                )
            document = _document(db, user, member, now)
    except IntegrityError as error:
        raise Conflict(
            f"{shown(email)} is already a user of organization {caller.organization}",
            code="E-USER-EMAIL",
            next=f"fleet user show {email}",
        ) from error
    if known and user.name != name:
        kept = f"{email} is already a user, named {shown(user.name)}; the name was not changed"
        return document.model_copy(update={"warnings": [kept]})
    return document


@performs(declared.LIST)
def list_(core: Core, caller: Caller) -> list[UserDocument]:
    """The members of the organization by address."""
    joined = select(User, Member).join(Member, Member.user_id == User.id)
    own = joined.where(Member.organization_id == caller.organization_id).order_by(User.email)
    with core.database.read() as db:
        return [_document(db, user, member, core.clock.now()) for user, member in db.execute(own)]


@performs(declared.SHOW)
def show(core: Core, caller: Caller, user: str) -> UserDocument:
    """One member. Raises NotFound with similar addresses."""
    with core.database.read() as db:
        return _document(db, *find_member(db, caller.organization_id, user), core.clock.now())


@performs(declared.EDIT)
def edit(core: Core, caller: Caller, user: str, changes: UserEdit) -> UserDocument:
    """Change the fields that are set; tokens, browsers and open streams of the user follow within 5 seconds.

    Raises Conflict if the organization would be left without an admin, or the address belongs to another user.
    """
    try:
        return core.database.transact(lambda db: _edit(db, core, caller, user, changes))
    except IntegrityError as error:
        raise Conflict(
            f"{shown(changes.email or '')} is the address of another user", code="E-USER-EMAIL", next="fleet user ls"
        ) from error


def _edit(db: Session, core: Core, caller: Caller, named: str, changes: UserEdit) -> UserDocument:
    now = core.clock.now()
    user, member, elsewhere = _locked(db, caller, named, now)
    if changes.model_fields_set - {"role"} and elsewhere:
        require_everywhere(caller)
    administered = _administered(db, user)
    if changes.role is not None:
        member.role = parse_role(changes.role)
    if changes.name is not None:
        user.name = check_text("the name", changes.name, limit=User.NAME_LENGTH)
    if changes.email is not None:
        user.email = _check_email(changes.email)
    if changes.disabled is not None:
        user.disabled_at = (user.disabled_at or now) if changes.disabled else None
    db.flush()
    _require_admins(db, administered, now)
    return _document(db, user, member, now)


@performs(declared.REMOVE)
def remove(core: Core, caller: Caller, user: str) -> UserDocument:
    """End the membership, and revoke the user's tokens of this organization with everything that was derived from them.

    Drones of theirs stay. The last membership ends the user. Raises Conflict if the organization would be left without
    an admin, or the caller without the token that the call was made with.
    """
    return core.database.transact(lambda db: _remove(db, core, caller, user))


def _remove(db: Session, core: Core, caller: Caller, named: str) -> UserDocument:
    now = core.clock.now()
    user, member, _ = _locked(db, caller, named, now)
    administered = _administered(db, user)
    removed = _document(db, user, member, now)
    own = ApiToken.user_id == user.id, ApiToken.organization_id == caller.organization_id
    ended = revoke_with_derived(db, caller, db.scalars(select(ApiToken.id).where(*own)).all(), now)
    ended = revoke_owned_join_tokens(db, ended, member, now)
    db.execute(
        delete(WebSession).where(WebSession.user_id == user.id, WebSession.organization_id == member.organization_id)
    )
    remove_budgets(db, core, BudgetTarget(member.organization_id, "user", user.id))
    db.execute(delete(AttentionChoices).where(*_of(AttentionChoices, member)))
    db.execute(delete(PushSubscription).where(*_of(PushSubscription, member)))
    db.delete(member)
    db.flush()
    _require_admins(db, administered & {caller.organization_id}, now)
    remove_former(db)
    return removed.model_copy(update={"ended": ended})


def _of(
    kind: type[AttentionChoices | PushSubscription], member: Member
) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return kind.user_id == member.user_id, kind.organization_id == member.organization_id


def remove_former(db: Session) -> None:
    """Delete the people who belong to no organization any more."""
    db.execute(delete(User).where(User.id.not_in(select(Member.user_id))))


def _locked(db: Session, caller: Caller, named: str, now: datetime) -> tuple[User, Member, bool]:
    """The member for a change, and whether they are also a member elsewhere.

    All of their organizations are locked, so that two changes at once cannot leave one of these without an admin.

    Raises Forbidden if the user may act in every organization and the caller may not: otherwise an organization's admin
    could lock out those of the installation, also with a token in their name. A log-in at the identity provider is the
    user's own.
    """
    user, _ = find_member(db, caller.organization_id, named)
    theirs = select(Member.organization_id).where(Member.user_id == user.id)
    organizations = db.scalars(theirs.order_by(Member.organization_id)).all()
    for each in organizations:
        locked_organization(db, each)
    user, member = find_member(db, caller.organization_id, user.id)
    own_login = user.id == caller.user_id and caller.token_id is None
    if not own_login and acts_everywhere(db, user.id, now):
        require_everywhere(caller)
    return user, member, len(organizations) > 1


def _administered(db: Session, user: User) -> set[str]:
    """The organizations that the user can administer."""
    if user.disabled_at is not None:
        return set()
    admin = Member.user_id == user.id, Member.role == "admin"
    return set(db.scalars(select(Member.organization_id).where(*admin)))


def _require_admins(db: Session, organization_ids: Collection[str], now: datetime) -> None:
    """Raise Conflict if one of these has neither an admin among its users nor an admin's token that belongs to none."""
    for each in organization_ids:
        admins = select(Member.user_id).join(User, User.id == Member.user_id)
        people = admins.where(Member.organization_id == each, Member.role == "admin", User.disabled_at.is_(None))
        here = (ApiToken.organization_id == each) | ApiToken.everywhere
        scripts = is_valid(now), ApiToken.user_id.is_(None), ApiToken.role == "admin", here
        if not db.scalar(people.limit(1)) and not db.scalar(select(ApiToken.id).where(*scripts).limit(1)):
            name = db.get_one(Organization, each).name
            raise Conflict(
                f"organization {name} would have no admin any more",
                code="E-USER-LAST-ADMIN",
                next=f"first make another user an admin: fleet user edit USER --role admin --org {name}",
            )


def _document(db: Session, user: User, member: Member, now: datetime) -> UserDocument:
    own = is_valid(now), ApiToken.user_id == user.id, ApiToken.organization_id == member.organization_id
    count, last_used = db.execute(select(func.count(), func.max(ApiToken.last_used_at)).where(*own)).one()
    return document_of(
        UserDocument,
        user,
        role=member.role,
        disabled=user.disabled_at is not None,
        tokens=count,
        last_used_at=last_used,
        created_at=member.created_at,
        ended=None,
        warnings=[],
    )


def _check_email(text: str) -> str:
    """The address in lower case. Raises Invalid."""
    email = text.strip().lower()
    if len(email) > User.EMAIL_LENGTH or not email.isprintable() or not _EMAIL.fullmatch(email):
        raise Invalid(
            f"invalid e-mail address {shown(text)}", code="E-USER-ADDRESS", next="for example kim@example.org"
        ).of(text)
    return email
