"""Users: found by e-mail address or id among the members of an organization."""

from __future__ import annotations

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from control_plane.db.users import Member, User
from control_plane.validation.checks import unknown


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
