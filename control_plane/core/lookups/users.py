"""Users: found by e-mail address or id among the members of an organization."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from control_plane.contract.validation.checks import unknown
from control_plane.core import Caller
from control_plane.db.users import Member, User
from shared.errors import Invalid

NOT_A_MEMBER = "not a member"
"""In place of the address of an owner who was removed from the organization, or never belonged to it."""


def member_emails(db: Session, organization_id: str) -> dict[str, str]:
    """The ids of the organization's members with their addresses."""
    joined = select(User.id, User.email).join(Member, Member.user_id == User.id)
    return {found: email for found, email in db.execute(joined.where(Member.organization_id == organization_id))}


def owner_text(user_id: str | None, emails: Mapping[str, str]) -> str | None:
    """The owner as shown in an organization with these members; None: it belongs to no person."""
    return emails.get(user_id, NOT_A_MEMBER) if user_id is not None else None


def require_user(caller: Caller) -> str:
    """The id of the caller's user. Raises Invalid for a token that belongs to none, which has nothing of its own."""
    if caller.user_id is None:
        raise Invalid(
            "your API token belongs to no user, so no drone, order or session is yours",
            code="E-USER-NONE",
            next="ask an admin for: fleet api-token add --user USER --role ROLE",
        )
    return caller.user_id


def author_id(caller: Caller) -> str:
    """Whose the caller's unsent texts are: the user's, else the token's; empty for the control plane itself."""
    return caller.user_id or caller.token_id or ""


def find_member(db: Session, organization_id: str, named: str) -> tuple[User, Member]:
    """The member with this e-mail address or id, as stored now. Raises NotFound with similar addresses."""
    members = (
        select(User, Member)
        .join(Member, Member.user_id == User.id)
        .where(Member.organization_id == organization_id)
        .execution_options(populate_existing=True)
    )
    found = db.execute(members.where(or_(User.email == named.lower(), User.id == named))).first()
    if found is None:
        emails = [user.email for user, _ in db.execute(members)]
        raise unknown("user", named, emails, "fleet user ls")
    return found[0], found[1]
