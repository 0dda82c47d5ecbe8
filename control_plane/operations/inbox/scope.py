"""Whose inbox it is: the organizations, the user and the moment, which each source of items needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session as Db

from control_plane.core import Caller, Core
from control_plane.core.lookups.users import require_user
from control_plane.db.installation import Organization

KEPT = timedelta(days=30)
"""How long ended orders and lost drones stay in the inbox."""


@dataclass(frozen=True)
class InboxView:
    """The scope of one inbox."""

    core: Core
    caller: Caller
    organizations: Mapping[str, str]
    """ID to name."""
    user_id: str | None
    """Only what belongs to this user; None: everything that the caller may see."""
    now: datetime

    @classmethod
    def of(cls, db: Db, core: Core, caller: Caller, *, mine: bool, everywhere: bool) -> InboxView:
        """The caller's inbox. Raises Invalid for `mine` with a token of no user."""
        organizations = {caller.organization_id: caller.organization}
        if everywhere and caller.everywhere:
            organizations = {found: name for found, name in db.execute(select(Organization.id, Organization.name))}
        user_id = require_user(caller) if mine else None
        return cls(core, caller, organizations, user_id, core.clock.now())

    @property
    def oldest(self) -> datetime:
        """What ended before this is no longer shown."""
        return self.now - KEPT

    def command(self, text: str, organization_id: str) -> str:
        """The command, with the organization if it is not the one that the caller is in."""
        if organization_id == self.caller.organization_id:
            return text
        return f"{text} --org {self.organizations[organization_id]}"
