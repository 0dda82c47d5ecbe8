"""What runs have spent: sums over the ledger's blocks, which are exact."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import ColumnElement, Select, case, func, select
from sqlalchemy.orm import Session

from control_plane.contract.declarations import costs as declared
from control_plane.contract.declarations.costs import CostDocument
from control_plane.contract.validation.checks import shown
from control_plane.contract.validation.time_zones import check_zone
from control_plane.core import Caller, Core
from control_plane.core.lookups.users import NOT_A_MEMBER, member_emails
from control_plane.db.drones import Drone
from control_plane.db.installation import Organization
from control_plane.db.orders import Order
from control_plane.db.projects import Project
from control_plane.db.runs import Run
from control_plane.db.spending import SpendingBlock
from control_plane.db.teams import Agent
from control_plane.money.spending.periods import end_of, start_of
from control_plane.operations.gateway import performs
from shared.amounts import dollars
from shared.errors import Invalid

_OPEN = case((SpendingBlock.closed_at.is_(None), SpendingBlock.granted_nusd - SpendingBlock.spent_nusd), else_=0)
_COLUMNS: Mapping[str, tuple[Any, Any]] = {
    "project": (SpendingBlock.project_id, Order.project_id),
    "agent": (SpendingBlock.agent_id, Run.agent_id),
    "model": (SpendingBlock.model, Order.model),
    "drone": (SpendingBlock.drone_id, Run.drone_id),
    "user": (SpendingBlock.user_id, Order.user_id),
    "organization": (SpendingBlock.organization_id, Run.organization_id),
}
"""Where a block, and a run with its order, name what is summed by."""
_NAMES: Mapping[str, tuple[Any, Any]] = {
    "project": (Project.id, Project.slug),
    "agent": (Agent.id, Agent.name),
    "drone": (Drone.id, Drone.name),
    "organization": (Organization.id, Organization.name),
}


@dataclass(frozen=True)
class Span:
    """The time in which money was reserved; `until` is not part of it."""

    since: datetime | None
    until: datetime | None

    def contains(self, column: Any) -> list[ColumnElement[bool]]:
        found = [column >= self.since] if self.since is not None else []
        return found + ([column < self.until] if self.until is not None else [])


@dataclass
class _Sums:
    """Nanodollars and numbers of runs."""

    spent: int = 0
    reserved: int = 0
    runs: int = 0
    unknown: int = 0


@dataclass(frozen=True)
class _Books:
    """The blocks and runs of one organization in a time."""

    db: Session
    organization_id: str
    span: Span = field(default_factory=lambda: Span(None, None))

    def sums(self, by: str) -> dict[str | None, _Sums]:
        """By what is summed by."""
        found: dict[str | None, _Sums] = {}
        block, run = _COLUMNS[by]
        for key, *sums in self.db.execute(self._blocks(block).group_by(block)):
            found[key] = _Sums(*map(int, sums))
        for key, number in self.db.execute(self._unknown(run).group_by(run)):
            found.setdefault(key, _Sums()).unknown = number
        return found

    def days(self, zone: str) -> Iterator[tuple[str, _Sums]]:
        """The days of the zone on which there was something, in order."""
        first, last = self._first_and_last()
        if first is None or last is None:
            return
        at: datetime | None = max(first, self.span.since) if self.span.since else first
        end = min(last, self.span.until) if self.span.until else last
        while at is not None and at <= end:
            begins, ends = start_of("day", zone, at), end_of("day", zone, at)
            if sums := self._day(begins, ends):
                yield begins.astimezone(ZoneInfo(zone)).date().isoformat(), sums
            at = ends

    def _day(self, begins: datetime, ends: datetime | None) -> _Sums | None:
        since = max(begins, self.span.since) if self.span.since else begins
        until = min(filter(None, (ends, self.span.until)), default=None)
        found = _Books(self.db, self.organization_id, Span(since, until)).sums("organization")
        return found.get(self.organization_id)

    def _first_and_last(self) -> tuple[datetime | None, datetime | None]:
        own = SpendingBlock.organization_id == self.organization_id
        blocks = self.db.execute(
            select(func.min(SpendingBlock.granted_at), func.max(SpendingBlock.granted_at)).where(own)
        ).one()
        unknown = Run.organization_id == self.organization_id, Run.cost_usd.is_(None)
        runs = self.db.execute(select(func.min(Run.started_at), func.max(Run.started_at)).where(*unknown)).one()
        first, last = ([moment for moment in pair if moment] for pair in zip(blocks, runs, strict=True))
        return min(first, default=None), max(last, default=None)

    def _blocks(self, key: Any) -> Select[Any]:
        own = SpendingBlock.organization_id == self.organization_id
        sums = func.sum(SpendingBlock.spent_nusd), func.sum(_OPEN), func.count(SpendingBlock.run_id.distinct())
        return select(key, *sums).where(own, *self.span.contains(SpendingBlock.granted_at))

    def _unknown(self, key: Any) -> Select[Any]:
        own = Run.organization_id == self.organization_id, Run.cost_usd.is_(None)
        joined = select(key, func.count()).select_from(Run).join(Order, Order.id == Run.order_id)
        return joined.where(*own, *self.span.contains(Run.started_at))


@performs(declared.LIST)
def list_(  # noqa: PLR0913 - one per filter
    core: Core,
    caller: Caller,
    *,
    since: str | None = None,
    until: str | None = None,
    by: str = "day",
    zone: str = "UTC",
) -> list[CostDocument]:
    """What was spent and is reserved in the time; days in order, all others by cost, highest first.

    Raises Invalid for a time or a zone that is none.
    """
    check_zone(zone)
    span = Span(_moment("since", since, zone), _moment("until", until, zone, end=True))
    if span.since is not None and span.until is not None and span.since >= span.until:
        raise Invalid(f"since {shown(since or '')} is not before until {shown(until or '')}", code="E-TIME")
    with core.database.read() as db:
        books = _Books(db, caller.organization_id, span)
        if by == "day":
            return [_document(by, day, None, sums) for day, sums in books.days(zone)]
        found = books.sums(by)
        names = _names(db, caller, by, [key for key in found if key is not None])
    documents = [
        _document(by, names.get(key or ""), key if by != "model" else None, sums) for key, sums in found.items()
    ]
    return sorted(documents, key=lambda each: (-each.spent_usd, each.name or ""))


def _names(db: Session, caller: Caller, by: str, keys: Collection[str]) -> Mapping[str, str]:
    if by == "model":
        return {key: key for key in keys}
    if by == "user":
        emails = member_emails(db, caller.organization_id)
        return {key: emails.get(key, NOT_A_MEMBER) for key in keys}
    id_, name = _NAMES[by]
    return {found: called for found, called in db.execute(select(id_, name).where(id_.in_(keys)))}


def _document(by: str, name: str | None, id_: str | None, sums: _Sums) -> CostDocument:
    return CostDocument(
        by=by,
        name=name,
        id=id_,
        spent_usd=dollars(sums.spent),
        reserved_usd=dollars(sums.reserved),
        runs=sums.runs,
        unknown_costs=sums.unknown,
    )


def _moment(what: str, text: str | None, zone: str, *, end: bool = False) -> datetime | None:
    """A time; of a day, its beginning in the zone, or with `end` that of the next one. Raises Invalid."""
    if text is None:
        return None
    try:
        if len(text) == len("2026-11-25"):
            day = date.fromisoformat(text) + timedelta(days=1 if end else 0)
            return datetime.combine(day, time(), tzinfo=ZoneInfo(zone)).astimezone(UTC)
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise Invalid(
        f"{what} {shown(text)} is not a day or a time with a time zone",
        code="E-TIME",
        next="for example 2026-11-01, or 2026-11-01T12:00:00Z",
    )
