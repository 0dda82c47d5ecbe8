"""What has been kept long enough and is not needed, and how much room it takes: found without changing anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Select, Text, and_, cast, false, func, not_, or_, select
from sqlalchemy.orm import Session, aliased

from control_plane.core import Core
from control_plane.db.code_hosts import HostLink
from control_plane.db.drones import RawEvent
from control_plane.db.memory import MemoryNote
from control_plane.db.orders import Dispatch, Order
from control_plane.db.projects import Project, Provider
from control_plane.db.reviews import ReviewComment
from control_plane.db.runs import Blob, Run, Step
from control_plane.db.sessions import ChatSession
from control_plane.db.spending import SpendingBlock
from control_plane.db.stacks import Stack
from control_plane.operations.retention.needed import chunks, fresh_forks, last_works, needed_sessions
from control_plane.operations.retention.rules import MAY_RUN_AGAIN, RetentionRule, rules_of

MIB = 1024 * 1024
UNNAMED = "unnamed files"
_UNNAMED_FOR = timedelta(days=7)
"""A file that no row names may belong to an import or a restored backup that is under way."""
File = tuple[str, bool]
"""The name of a blob, and whether it is sealed."""


@dataclass(frozen=True)
class RemovalFigures:
    """How much was found or removed."""

    rows: int = 0
    bytes: int = 0

    def __add__(self, other: RemovalFigures) -> RemovalFigures:
        return RemovalFigures(self.rows + other.rows, self.bytes + other.bytes)


@dataclass(frozen=True)
class RemovalPhase:
    """What is removed of one kind. A file goes with the last row that names it, in whichever phase that is."""

    kind: str
    orders: Sequence[str] = ()
    files: Sequence[File] = ()
    before: datetime | None = None
    figures: RemovalFigures = RemovalFigures()


def find(core: Core) -> list[RemovalPhase]:
    """All that is to be removed now, in the order in which it is removed."""
    # Named before the transaction begins: a store may be slow.
    since = core.clock.now() - _UNNAMED_FOR
    old = {(each.sha256, each.sealed): each.size for each in core.blobs.files() if each.since < since}
    finder = _Finder(core, old)
    with core.database.read() as db:
        return finder.phases(db)


def blobs_of(kind: str, order_ids: Sequence[str]) -> Select[Any]:
    """The rows of these orders' files of a kind: run, name, sealed, size. Checkpoints have a time of their own."""
    rows: Select[Any] = _joined(select(Blob.run_id, Blob.sha256, Blob.sealed, Blob.size)).where(Order.id.in_(order_ids))
    return rows.where(_FILES[kind]) if kind in _FILES else rows


def size_of(column: Any) -> ColumnElement[int]:
    """The length of a JSON value as text, which is about its bytes."""
    return func.length(cast(column, Text))


def named_by_rows(db: Session, files: Sequence[File]) -> Counter[File]:
    """How many rows name each of these files."""
    found: Counter[File] = Counter()
    for some in chunks({name for name, _ in files}):
        rows = select(Blob.sha256, Blob.sealed, func.count()).where(Blob.sha256.in_(some))
        for name, sealed, count in db.execute(rows.group_by(Blob.sha256, Blob.sealed)):
            found[name, sealed] = count
    return found


def _joined(rows: Any) -> Any:
    """The statement with the order of each blob, and its run."""
    return (
        rows.join(Dispatch, Dispatch.id == Blob.run_id)
        .join(Order, Order.id == Dispatch.order_id)
        .outerjoin(Run, Run.id == Blob.run_id)
    )


_IS_WORK = or_(
    Blob.sha256 == func.coalesce(Order.patch_sha256, ""),
    Blob.sha256 == func.coalesce(Order.branch_patch_sha256, ""),
    Blob.sha256 == func.coalesce(Order.bundle_sha256, ""),
    # A run that was late keeps its work as files of its own.
    func.coalesce(Run.late, false()),
)
_FILES = {
    "logs": and_(Blob.sealed.is_(False), not_(_IS_WORK)),
    "work": and_(Blob.sealed.is_(False), _IS_WORK),
}


@dataclass
class _Finder:
    core: Core
    old: dict[File, int]
    """Every file that has been in the store for a while, with its size."""
    gone: Counter[File] = field(default_factory=Counter)
    """Rows of each file that were found so far."""
    taken: set[tuple[str, str]] = field(default_factory=set)
    """Kind and order of what was found so far."""
    needed: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._now = self.core.clock.now()
        self._rules = {rule.kind: rule for rule in rules_of(self.core.settings)}

    def phases(self, db: Session) -> list[RemovalPhase]:
        self.needed = needed_sessions(db, self._now)
        readings, services = Order.purpose == "code_host", Order.purpose.not_in(("work", "code_host"))
        phases = [
            self._services(db, self._rules["readings"], readings),
            self._services(db, self._rules["services"], services),
            self._steps(db, self._rules["steps"]),
            *(self._aged(db, self._rules[kind]) for kind in ("logs", "work")),
        ]
        phases += self._above_limit(db, sum(each.figures.bytes for each in phases if each.kind != "steps"))
        return [*phases, self._raw_events(db, self._rules["raw events"]), self._unnamed(db)]

    def _services(self, db: Session, rule: RetentionRule, of_kind: ColumnElement[bool]) -> RemovalPhase:
        before = rule.before(self._now)
        if before is None:
            return RemovalPhase(rule.kind)
        ended = select(Order.id, Order.session_id).where(of_kind, Order.ended_at < before, _costs_nothing(), _is_free())
        ids = self._unneeded(db.execute(ended.order_by(Order.number)))
        found = RemovalFigures(len(ids))
        for some in chunks(ids):
            found += RemovalFigures(0, _steps_of(db, some).bytes + self._freed(db, rule.kind, some).bytes)
        self.taken |= {(kind, each) for kind in ("steps", "logs", "work") for each in ids}
        return RemovalPhase(rule.kind, ids, figures=found)

    def _steps(self, db: Session, rule: RetentionRule) -> RemovalPhase:
        before = rule.before(self._now)
        if before is None:
            return RemovalPhase(rule.kind)
        has_steps = select(Step.id).where(Step.order_id == Order.id).exists()
        wanted = select(Order.id, Order.session_id).where(_rests(before), has_steps)
        forks = fresh_forks(db, before)
        ids = self._unneeded(db.execute(wanted.order_by(Order.number)), forks)
        ids = [each for each in ids if ("steps", each) not in self.taken]
        figures = sum((_steps_of(db, some) for some in chunks(ids)), RemovalFigures())
        return RemovalPhase(rule.kind, ids, figures=figures)

    def _aged(self, db: Session, rule: RetentionRule) -> RemovalPhase:
        before = rule.before(self._now)
        ids = [] if before is None else self._with_files(db, rule.kind, before)
        return self._take(db, rule.kind, ids)

    def _above_limit(self, db: Session, freed: int) -> Iterator[RemovalPhase]:
        """The oldest logs, then the oldest work, until the rest is within the limit of bytes."""
        limit = self.core.settings.blob_limit_mb
        if limit is None:
            return
        over = used_bytes(db) - freed - limit * MIB
        for kind in ("logs", "work"):
            ids = self._with_files(db, kind, self._now - MAY_RUN_AGAIN) if over > 0 else []
            phase = RemovalPhase(kind)
            for each in ids:
                if over <= 0:
                    break
                one = self._take(db, kind, [each])
                over -= one.figures.bytes
                phase = RemovalPhase(kind, [*phase.orders, each], figures=phase.figures + one.figures)
            yield phase

    def _with_files(self, db: Session, kind: str, before: datetime) -> list[str]:
        """The orders whose files of a kind may go, oldest first."""
        of_age = _rests(before) if kind == "work" else Order.ended_at < before
        wanted = _joined(select(Order.id, Order.session_id, Order.ended_at, Order.pushed).select_from(Blob))
        rows = db.execute(wanted.where(_FILES[kind], of_age).distinct().order_by(Order.ended_at, Order.id)).all()
        left = [row for row in rows if (kind, row[0]) not in self.taken]
        if kind != "work":
            return self._unneeded(left)
        # A remote has what was pushed. Of the rest, this is the only copy.
        kept = last_works(db, {row.session_id for row in left if not row.pushed})
        return self._unneeded([row for row in left if row.pushed or row.id not in kept], fresh_forks(db, before))

    def _take(self, db: Session, kind: str, ids: Sequence[str]) -> RemovalPhase:
        self.taken |= {(kind, each) for each in ids}
        return RemovalPhase(
            kind, ids, figures=sum((self._freed(db, kind, some) for some in chunks(ids)), RemovalFigures())
        )

    def _freed(self, db: Session, kind: str, order_ids: Sequence[str]) -> RemovalFigures:
        """The rows of these orders' files, and the bytes of the files that no other row names then."""
        rows = db.execute(blobs_of(kind, order_ids)).all()
        sizes = {(row.sha256, row.sealed): row.size for row in rows}
        self.gone.update((row.sha256, row.sealed) for row in rows)
        named = named_by_rows(db, list(sizes))
        return RemovalFigures(len(rows), sum(size for file, size in sizes.items() if self.gone[file] >= named[file]))

    def _unneeded(self, rows: Any, also_needed: set[str] = frozenset()) -> list[str]:  # type: ignore[assignment]
        return [row[0] for row in rows if row[1] not in self.needed and row[1] not in also_needed]

    def _raw_events(self, db: Session, rule: RetentionRule) -> RemovalPhase:
        before = rule.before(self._now)
        if before is None:
            return RemovalPhase(rule.kind)
        old = select(func.count(), func.sum(size_of(RawEvent.fields))).where(RawEvent.at < before)
        rows, size = db.execute(old).one()
        return RemovalPhase(rule.kind, before=before, figures=RemovalFigures(rows, size or 0))

    def _unnamed(self, db: Session) -> RemovalPhase:
        since, old = self._now - _UNNAMED_FOR, self.old
        named = named_by_rows(db, list(old))
        files = [file for file in old if not named[file]]
        return RemovalPhase(
            UNNAMED, files=files, before=since, figures=RemovalFigures(len(files), sum(old[file] for file in files))
        )


def used_bytes(db: Session) -> int:
    """The bytes of all files that rows name, each counted once."""
    files = select(func.max(Blob.size).label("size")).group_by(Blob.sha256, Blob.sealed).subquery()
    return int(db.scalar(select(func.coalesce(func.sum(files.c.size), 0))) or 0)


def blobs_held(db: Session, kind: str) -> tuple[int, int, datetime | None]:
    """The rows of a kind of blobs, the bytes of their files, each counted once, and the oldest time."""
    rows, oldest = db.execute(
        _joined(select(func.count(), func.min(Blob.created_at)).select_from(Blob)).where(_FILES[kind])
    ).one()
    sizes = _joined(select(func.max(Blob.size).label("size")).select_from(Blob)).where(_FILES[kind])
    files = sizes.group_by(Blob.sha256).subquery()
    return rows, int(db.scalar(select(func.coalesce(func.sum(files.c.size), 0))) or 0), oldest


def _steps_of(db: Session, order_ids: Sequence[str]) -> RemovalFigures:
    wanted = select(func.count(), func.sum(size_of(Step.body))).where(Step.order_id.in_(order_ids))
    rows, size = db.execute(wanted).one()
    return RemovalFigures(rows, size or 0)


def _rests(before: datetime) -> ColumnElement[bool]:
    """The order's session was last used before then."""
    other = aliased(Order)
    recent = or_(other.ended_at.is_(None), other.ended_at >= before)
    return and_(
        Order.ended_at < before,
        ~select(other.id).where(other.session_id == Order.session_id, recent).exists(),
    )


def _costs_nothing() -> ColumnElement[bool]:
    """Its row is no part of any account: what a service spent stays in the totals."""
    spent = or_(Run.cost_usd.is_(None), Run.cost_usd > 0, Run.assumed_usd > 0, Run.input_tokens + Run.output_tokens > 0)
    return and_(
        ~select(Run.id).where(Run.order_id == Order.id, spent).exists(),
        ~select(SpendingBlock.id).where(SpendingBlock.order_id == Order.id).exists(),
    )


def _is_free() -> ColumnElement[bool]:
    """No other row refers to it, nor to its session."""
    other = aliased(Order)
    refers = (
        select(HostLink.id).where(HostLink.order_id == Order.id),
        select(Provider.id).where(Provider.check_order_id == Order.id),
        select(Project.id).where(Project.check_order_id == Order.id),
        select(MemoryNote.id).where(MemoryNote.order_id == Order.id),
        select(ReviewComment.id).where(
            or_(ReviewComment.order_id == Order.id, ReviewComment.sent_order_id == Order.id)
        ),
        select(Stack.id).where(or_(Stack.session_id == Order.session_id, Stack.lower_id == Order.session_id)),
        select(ChatSession.id).where(ChatSession.forked_from_id == Order.session_id),
        select(other.id).where(other.session_id == Order.session_id, other.id != Order.id),
    )
    return and_(*(~each.exists() for each in refers))
