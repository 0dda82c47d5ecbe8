"""What budgets are for, found by the names that people use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, get_args

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from control_plane.contract.validation.checks import shown
from control_plane.core import Caller
from control_plane.core.lookups.agents import find_agent
from control_plane.core.lookups.ids import full_session_id
from control_plane.core.lookups.projects import find_project
from control_plane.core.lookups.sessions import session_of
from control_plane.core.lookups.users import NOT_A_MEMBER, find_member
from control_plane.db.installation import Organization
from control_plane.db.projects import Project
from control_plane.db.spending import Budget
from control_plane.db.teams import Agent
from control_plane.db.users import Member, User
from control_plane.money.spending.setting import BudgetTarget
from shared.budgets import BudgetKind
from shared.errors import Invalid

KINDS: tuple[str, ...] = get_args(BudgetKind)


def check_kind(kind: str) -> str:
    """The kind, unchanged. Raises Invalid, which lists all kinds."""
    if kind not in KINDS:
        near = get_close_matches(kind[:32], KINDS, n=1, cutoff=0.5)
        listed = f"{', '.join(KINDS[:-1])} or {KINDS[-1]}"
        raise Invalid(
            f"unknown kind of budget {shown(kind)}",
            code="E-BUDGET-KIND",
            next=f"did you mean {near[0]}? Otherwise: {listed}" if near else f"use {listed}",
        )
    return kind


def find_target(db: Session, caller: Caller, kind: str, name: str) -> BudgetTarget:
    """The thing of this kind and name in the caller's organization. Raises NotFound with similar names.

    For the kind `organization`, the caller must already act in the organization of this name.
    """
    organization_id = caller.organization_id
    if kind == "project":
        found = find_project(db, organization_id, name).id
    elif kind == "agent":
        found = find_agent(db, organization_id, name).id
    elif kind == "user":
        found = _user(db, organization_id, name)
    elif kind == "session":
        found = session_of(db, organization_id, full_session_id(db, caller, name)).id
    else:
        found = organization_id
    return BudgetTarget(organization_id, kind, found)


def target_names(db: Session, budgets: Iterable[Budget]) -> Mapping[tuple[str, str], str]:
    """What each budget's target is called, by kind and id. Sessions are called by their ids."""
    ids: dict[str, set[str]] = {kind: set() for kind in KINDS}
    for budget in budgets:
        ids[budget.kind].add(budget.target_id)
    named: tuple[tuple[str, Any, Any], ...] = (
        ("project", Project.id, Project.slug),
        ("agent", Agent.id, Agent.name),
        ("user", User.id, User.email),
        ("organization", Organization.id, Organization.name),
    )
    found = {("session", each): each for each in ids["session"]}
    # A user without any organization is deleted, and with it the address.
    found |= {("user", each): NOT_A_MEMBER for each in ids["user"]}
    for kind, id_, name in named:
        wanted: Select[str, str] = select(id_, name).where(id_.in_(ids[kind]))
        found |= {(kind, row[0]): row[1] for row in db.execute(wanted)} if ids[kind] else {}
    return found


def _user(db: Session, organization_id: str, name: str) -> str:
    """The member with this address, id or name. Raises Invalid for a name that several members have."""
    members = select(User.id, User.email).join(Member, Member.user_id == User.id)
    named = db.execute(members.where(Member.organization_id == organization_id, User.name == name)).all()
    if "@" in name or not named:
        return find_member(db, organization_id, name)[0].id
    if len(named) > 1:
        raise Invalid(
            f"several users are named {shown(name)}",
            code="E-USER-AMBIGUOUS",
            next=f"use an e-mail address: {', '.join(sorted(email for _, email in named)[:5])}",
        )
    return str(named[0][0])
