"""One-use addresses at which a user answers one question without a log-in.

Only the hash of the secret is stored. A link ends with its question, at the latest after a day.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from control_plane.attention.recipients import Recipient, recipient
from control_plane.contract.validation.issued_secrets import ANSWER_PREFIX, hashed, new_secret
from control_plane.core import Caller, Core
from control_plane.db.attention import AnswerLink
from control_plane.db.installation import Organization
from control_plane.db.waits import Wait
from shared.errors import Conflict, NotFound
from shared.names import new_id

LASTS = timedelta(hours=24)
PATH = "/answer/"
_KEPT = timedelta(days=7)


@dataclass(frozen=True)
class OpenLink:
    """A valid link: whom it lets answer, and what."""

    id: str
    caller: Caller
    wait: Wait
    is_open: bool
    """It has no answer yet."""


def new_link(db: Session, core: Core, to: Recipient, wait: Wait) -> str:
    """The address of a new link. Each attempt to send a message gets its own: the secret of the last one is unknown."""
    secret, now = new_secret(ANSWER_PREFIX), core.clock.now()
    until = now + LASTS
    db.add(
        AnswerLink(
            id=new_id(),
            organization_id=to.organization_id,
            user_id=to.user_id,
            secret_hash=hashed(secret),
            wait_number=wait.number,
            asked_at=wait.asked_at,
            created_at=now,
            expires_at=min(until, wait.deadline) if wait.deadline else until,
        )
    )
    return f"{core.settings.url}{PATH}{secret}"


def open_link(db: Session, core: Core, secret: str) -> OpenLink:
    """What a link is for; reading changes nothing, because programs preview addresses.

    Raises NotFound for an unknown link, Conflict for one that was used, has expired, or whose user is no longer active.
    """
    link = db.scalar(select(AnswerLink).where(AnswerLink.secret_hash == hashed(secret)))
    if link is None:
        raise NotFound("this answer link is unknown", code="E-ANSWER-LINK-404", next=_instead(core))
    if link.used_at is not None:
        raise _gone(core, "this answer link was already used", "it works once")
    to = recipient(db, link.organization_id, link.user_id)
    if to is None:
        raise _gone(core, "this answer link is no longer valid", "its user was removed or disabled")
    wait = db.get(Wait, link.wait_number)
    if wait is None or wait.asked_at != link.asked_at:
        raise _gone(core, "this answer link is no longer valid", "the question was asked again or removed")
    decided = wait.answered_at is not None or wait.closed_at is not None
    if not decided and link.expires_at <= core.clock.now():
        raise _gone(core, "this answer link has expired", "it works until its question ends, and at most 24 hours")
    organization = db.get_one(Organization, link.organization_id)
    caller = Caller(organization.id, organization.name, to.role, to.name, user_id=to.user_id, answer_link_id=link.id)
    return OpenLink(link.id, caller, wait, is_open=not decided)


def take_link(core: Core, link_id: str) -> None:
    """Mark the link as used. Raises Conflict if it was used meanwhile: of two requests at once, one may answer."""
    fresh = AnswerLink.id == link_id, AnswerLink.used_at.is_(None), AnswerLink.expires_at > core.clock.now()
    with core.database.write() as db:
        taken = db.scalar(update(AnswerLink).where(*fresh).values(used_at=core.clock.now()).returning(AnswerLink.id))
    if taken is None:
        raise _gone(core, "this answer link was already used", "it works once")


def give_back_link(core: Core, link_id: str) -> None:
    """Make the link usable again, because nothing was answered with it: the answer was invalid."""
    with core.database.write() as db:
        db.execute(update(AnswerLink).where(AnswerLink.id == link_id).values(used_at=None))


def clean_links(db: Session, core: Core) -> None:
    """Delete links that expired a week ago."""
    db.execute(delete(AnswerLink).where(AnswerLink.expires_at < core.clock.now() - _KEPT))


def _gone(core: Core, what: str, why: str) -> Conflict:
    return Conflict(what, code="E-ANSWER-LINK", why=why, next=_instead(core))


def _instead(core: Core) -> str:
    return f"log in and open the Inbox: {core.settings.url}/"
