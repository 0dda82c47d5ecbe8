"""Who wants to be told of an event: active members of the organization who chose its kind and have a channel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.contract.declarations.attention import AttentionKind
from control_plane.contract.declarations.operation import Role
from control_plane.db.attention import AttentionChoices, PushSubscription
from control_plane.db.users import Member, User


@dataclass(frozen=True)
class Recipient:
    """An active member with their present name, address and role."""

    organization_id: str
    user_id: str
    name: str
    email: str
    role: Role


def recipient(db: Session, organization_id: str, user_id: str) -> Recipient | None:
    """The member as of now; None for a user who was removed or disabled."""
    joined = select(User.name, User.email, Member.role).join(Member, Member.user_id == User.id)
    own = User.id == user_id, Member.organization_id == organization_id, User.disabled_at.is_(None)
    found = db.execute(joined.where(*own)).first()
    if found is None:
        return None
    return Recipient(organization_id, user_id, found[0], found[1], cast("Role", found[2]))


def channels_of(db: Session, choices: AttentionChoices) -> list[tuple[str, str | None]]:
    """The channels that the user chose: each with the id of its browser, for push."""
    browsers = select(PushSubscription.id).where(
        PushSubscription.organization_id == choices.organization_id, PushSubscription.user_id == choices.user_id
    )
    found: list[tuple[str, str | None]] = [
        ("push", each) for each in db.scalars(browsers.order_by(PushSubscription.id))
    ]
    if choices.email:
        found.append(("email", None))
    if choices.webhook_url:
        found.append(("webhook", None))
    return found


def who_wants(
    db: Session, organization_id: str, kind: AttentionKind, owner_id: str | None, *, everyone: bool = False
) -> list[str]:
    """The ids of the users to tell. `owner_id`: whose it is; `everyone`: it concerns all who chose the kind."""
    chosen = select(AttentionChoices).where(AttentionChoices.organization_id == organization_id)
    wanted = []
    for choices in db.scalars(chosen.order_by(AttentionChoices.user_id)).all():
        concerned = everyone or choices.about == "all" or choices.user_id == owner_id
        if concerned and kind in choices.kinds and channels_of(db, choices):
            wanted.append(choices.user_id)
    return [each for each in wanted if recipient(db, organization_id, each)]
