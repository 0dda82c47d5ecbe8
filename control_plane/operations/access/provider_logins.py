"""Browser sessions of people whom the identity provider has authenticated."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from control_plane.core import Core
from control_plane.core.audit_entries import entry_of
from control_plane.core.lookups.organizations import find_organization
from control_plane.db.audit_chain import note
from control_plane.db.users import Member, User
from control_plane.operations.access.callers import caller_of_user
from control_plane.operations.access.logins import LOG_IN, Browser, start_session_of_user
from control_plane.services.openid_identity import ProviderIdentity
from shared.errors import Forbidden

LASTS = timedelta(hours=1)
"""A user whom the provider removed is logged out after this time at the latest."""


def log_in(core: Core, identity: ProviderIdentity, browser: Browser) -> str:
    """The secret of a session of the user with this identity; the first log-in ties the user to it.

    The user must have been added before, with the e-mail address that the provider confirms. Raises Forbidden.
    """
    try:
        with core.database.write() as db:
            organization = find_organization(db, core.settings.oidc_organization)
            user = _user(db, identity)
            member = db.get(Member, (organization.id, user.id)) if user is not None else None
            if user is None or member is None or user.disabled_at is not None:
                raise _refused(identity, organization.name)
            user.issuer, user.subject = identity.issuer, identity.subject
            secret, row = start_session_of_user(db, core, member, browser, LASTS)
            note(db, entry_of(core, caller_of_user(db, row), LOG_IN, "identity provider"))
            return secret
    except IntegrityError as error:
        # Another log-in with this identity was faster, for a different user.
        raise _refused(identity, core.settings.oidc_organization) from error


def _user(db: Session, identity: ProviderIdentity) -> User | None:
    """The user who logged in with this identity before, else the one with its address who never logged in so.

    An address that was given to another person does not lead to the account of the one before.
    """
    known = (User.issuer == identity.issuer) & (User.subject == identity.subject)
    new = User.issuer.is_(None) & (User.email == identity.email)
    return db.scalar(select(User).where(or_(known, new)).order_by(User.issuer.is_(None)).limit(1))


def _refused(identity: ProviderIdentity, organization: str) -> Forbidden:
    return Forbidden(
        f"{identity.email} may not log in to organization {organization}",
        code="E-OPENID-USER",
        why="no user of the organization has this address, the user is disabled, or logs in with another identity",
        next=f"ask an admin for: fleet user add {identity.email} --name NAME --role ROLE",
    )
