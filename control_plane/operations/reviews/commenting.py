"""Comment the diff of an order: pending comments, which only their author sees, and the list with all answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Literal

from sqlalchemy import ColumnElement, func, or_, select
from sqlalchemy.orm import Session

from control_plane.contract.declarations import reviews as declared
from control_plane.contract.declarations.reviews import ReviewCommentDocument, ReviewCommentEdit, ReviewCommentRequest
from control_plane.contract.validation.checks import check_text, shown
from control_plane.core import Caller, Core
from control_plane.core.lookups.users import author_id
from control_plane.core.patches.hunks import Line, lines_of
from control_plane.core.patches.patch import read_patch
from control_plane.db.orders import Order
from control_plane.db.reviews import ReviewComment
from control_plane.operations.gateway import performs
from control_plane.operations.orders import changes
from control_plane.operations.orders.reading import order_summary
from control_plane.operations.orders.step_reading import own_order
from control_plane.operations.reviews.message import SHORT_ID, place_of
from control_plane.orders.conversations.history import way_of
from shared.errors import Conflict, Invalid, NotFound
from shared.names import new_id

MAX_TEXT = 10_000
"""Characters of a comment."""
MAX_PENDING = 100
"""Of one author on one order."""
MAX_LINES = 500
"""In one comment."""
MOST_SHOWN = 500
"""Comments of a conversation; older ones are found with the orders that they are about."""
Side = Literal["old", "new"]
_SIGNS = {"add": "+", "del": "-", "same": " "}


@performs(declared.ADD)
def add(core: Core, caller: Caller, order_id: str, request: ReviewCommentRequest) -> ReviewCommentDocument:
    """Add a pending comment on a file or lines that the diff shows, or a reply to a comment that was sent.

    The diff may be that of an order that runs, as far as its drone reported it, and that of the whole branch. Raises
    NotFound for the order, the parent or the patch, Conflict without changes and for more than 100 pending comments,
    Invalid for a place that the diff does not show.
    """
    check_text("the comment", request.text, limit=MAX_TEXT)
    order_summary(core, caller, order_id)
    place = None if request.parent else _place(core, caller, order_id, request)

    def write(db: Session) -> ReviewCommentDocument:
        order = db.get_one(Order, order_id, with_for_update=True)
        _refuse_too_many(db, caller, order)
        where = place or _place_of_parent(db, caller, order, request)
        now = core.clock.now()
        row = ReviewComment(
            id=new_comment_id(db, caller.organization_id),
            organization_id=order.organization_id,
            order_id=order.id,
            author=author_id(caller),
            user=caller.user,
            text=request.text,
            created_at=now,
            updated_at=now,
            **vars(where),
        )
        db.add(row)
        db.flush()
        return comment_document(row, caller)

    return core.database.transact(write)


@performs(declared.LIST)
def list_comments(core: Core, caller: Caller, order_id: str, status: str | None = None) -> list[ReviewCommentDocument]:
    """The comments on the order that the caller may see, oldest first. Raises NotFound."""
    with core.database.read() as db:
        order = own_order(db, caller, order_id)
        seen = select(ReviewComment).where(ReviewComment.order_id == order.id, _visible_to(caller))
        rows = db.scalars(seen.order_by(ReviewComment.number)).all()
    return [comment_document(row, caller) for row in rows if status in {None, row.status}]


def conversation_comments(core: Core, caller: Caller, order_id: str) -> list[ReviewCommentDocument]:
    """The comments on the order, and those sent about earlier turns of its conversation, oldest first.

    Raises NotFound.
    """
    with core.database.read() as db:
        order = own_order(db, caller, order_id)
        sent = ReviewComment.order_id.in_(_turns(db, order)) & ReviewComment.sent_at.is_not(None)
        seen = select(ReviewComment).where((ReviewComment.order_id == order.id) | sent, _visible_to(caller))
        rows = db.scalars(seen.order_by(ReviewComment.number.desc()).limit(MOST_SHOWN)).all()
    return [comment_document(row, caller) for row in reversed(rows)]


def _turns(db: Session, order: Order) -> list[str]:
    """The orders of the turns that the order continues from."""
    return [entry.order_id for entry in way_of(db, order) if entry.order_id is not None]


@performs(declared.EDIT)
def edit(
    core: Core, caller: Caller, order_id: str, comment_id: str, request: ReviewCommentEdit
) -> ReviewCommentDocument:
    """Change the text of the caller's pending comment. Raises NotFound, Conflict if it was sent, Invalid."""
    check_text("the comment", request.text, limit=MAX_TEXT)
    order_summary(core, caller, order_id)

    def write(db: Session) -> ReviewCommentDocument:
        row = _own_pending(db, caller, order_id, comment_id)
        row.text, row.updated_at = request.text, core.clock.now()
        # An order that received the comment and ended, and may run again, has the old text.
        row.sent_order_id = row.message_number = None
        return comment_document(row, caller)

    return core.database.transact(write)


@performs(declared.REMOVE)
def remove(core: Core, caller: Caller, order_id: str, comment_id: str) -> ReviewCommentDocument:
    """Remove the caller's pending comment. Raises NotFound, Conflict if it was sent."""
    order_summary(core, caller, order_id)

    def write(db: Session) -> ReviewCommentDocument:
        row = _own_pending(db, caller, order_id, comment_id)
        db.delete(row)
        return comment_document(row, caller)

    return core.database.transact(write)


def comment_document(row: ReviewComment, caller: Caller) -> ReviewCommentDocument:
    """The comment as users see it."""
    lines = f":{place_of(row)}" if row.start_line is not None else ""
    old = " (old)" if row.side == "old" and lines else ""
    return ReviewCommentDocument.model_validate(
        {
            **{name: getattr(row, name) for name in _SAME},
            "order": row.order_id,
            "mine": row.author == author_id(caller),
            "place": f"{row.path}{lines}{old}",
            "parent": row.parent_id,
            "sent_to": row.sent_order_id if row.sent_at is not None else None,
            "answered_in": row.answer_order_id,
        }
    )


_SAME = tuple(
    name
    for name in ReviewCommentDocument.model_fields
    if name not in {"order", "mine", "place", "parent", "sent_to", "answered_in"}
)


def _visible_to(caller: Caller) -> ColumnElement[bool]:
    return or_(ReviewComment.sent_at.is_not(None), ReviewComment.author == author_id(caller))


# --- the place ---------------------------------------------------------------------------


@dataclass(frozen=True)
class _Place:
    """The columns of a comment that say what it is about."""

    path: str
    side: str
    start_line: int | None
    end_line: int | None
    quote: str
    commit: str | None
    parent_id: str | None = None


def _place(core: Core, caller: Caller, order_id: str, request: ReviewCommentRequest) -> _Place:
    """The lines in a diff of the order's changes."""
    if request.path is None:
        raise Invalid("a comment needs a file, or the comment that it replies to", code="E-REVIEW-PLACE")
    patches = _patches(core, caller, order_id, request)
    diffs = [found for patch in patches if (found := file_diff(patch, request.path)) is not None]
    if not diffs:
        near = get_close_matches(request.path, paths := paths_in(patches[0]), n=3, cutoff=0.5) or paths[:3]
        raise Invalid(
            f"order {order_id} does not change {shown(request.path)}",
            code="E-REVIEW-PLACE",
            next=f"choose a file of its diff: {', '.join(near)}",
        )
    with core.database.read() as db:
        commit = db.get_one(Order, order_id).head_commit
    try:
        place = _lines(diffs[0], request)
    except Invalid:
        # On the new side, the lines of the turn and of the whole branch have the same numbers.
        if len(diffs) == 1:
            raise
        place, diffs = _lines(diffs[1], request), diffs[1:]
    (start, end), side = place, diffs[0].side(request.side)
    quote = "\n".join(side[number] for number in range(start, end + 1)) if start and end else ""
    return _Place(request.path, request.side, start, end, quote, commit)


def _patches(core: Core, caller: Caller, order_id: str, request: ReviewCommentRequest) -> list[bytes]:
    """The patch that the lines are numbered in; without one, that of the order's turn, then that of its branch."""
    if request.patch is not None:
        return [changes.patch_named(core, caller, order_id, request.patch)]
    known = changes.reports_of(core, caller, order_id)
    named = {report.sha256: report for report in (known.turn, known.branch) if report is not None and report.sha256}
    if named:
        return [changes.patch_in(core, report) for report in named.values()]
    with core.database.read() as db:
        order = db.get_one(Order, order_id)
        raise Conflict(
            f"order {order.id} has no changes to review: it is {order.status}",
            code="E-REVIEW-RESULT",
            why=order.reason,
            next=f"fleet show {order.id}",
        )


def _lines(found: FileDiff, request: ReviewCommentRequest) -> tuple[int | None, int | None]:
    start, end = request.start_line, request.end_line
    if start is None:
        if end is None:
            return None, None
        raise Invalid("a comment with a last line needs a first line", code="E-REVIEW-PLACE")
    end = start if end is None else end
    side = found.side(request.side)
    if end < start or end - start >= MAX_LINES:
        raise Invalid(f"lines {start} to {end} are no range of 1 to {MAX_LINES} lines", code="E-REVIEW-PLACE")
    if not all(number in side for number in range(start, end + 1)):
        lines = found.shown(request.side)
        raise Invalid(
            f"the diff does not show all of lines {start} to {end} on the {request.side} side of {shown(found.path)}",
            code="E-REVIEW-PLACE",
            why=f"it shows lines {lines}" if lines else "it shows no lines on this side",
            next="comment lines of the diff, or the whole file without lines",
        )
    return start, end


def _place_of_parent(db: Session, caller: Caller, order: Order, request: ReviewCommentRequest) -> _Place:
    """A reply is about the lines of the comment that it replies to."""
    if request.path is not None or request.start_line is not None or request.end_line is not None:
        raise Invalid("a reply has the place of its parent", code="E-REVIEW-PLACE", next="omit the file and the lines")
    parent = find_comment(db, caller, order.id, request.parent or "", _turns(db, order))
    if parent.sent_at is None:
        raise Conflict(f"comment {parent.id} is not sent yet", code="E-REVIEW-STATE", next="edit it instead")
    same = (parent.path, parent.side, parent.start_line, parent.end_line, parent.quote, parent.commit)
    return _Place(*same, parent_id=parent.id)


# --- rows --------------------------------------------------------------------------------


def find_comment(db: Session, caller: Caller, order_id: str, written: str, turns: Sequence[str] = ()) -> ReviewComment:
    """The comment with this id or unique beginning of it, locked: on the order, or sent about one of these turns.

    Raises NotFound.
    """
    sent = ReviewComment.order_id.in_(turns) & ReviewComment.sent_at.is_not(None)
    wanted = select(ReviewComment).where((ReviewComment.order_id == order_id) | sent, _visible_to(caller))
    begins = ReviewComment.id.startswith(written.strip().lower(), autoescape=True)
    rows = db.scalars(wanted.where(begins).limit(2).with_for_update()).all()
    if len(rows) != 1 or not written.strip():
        raise NotFound(
            f"review comment {shown(written)} not found on order {order_id}",
            code="E-REVIEW-404",
            why="several ids begin with it" if len(rows) > 1 else "",
            next=f"fleet review ls {order_id}",
        )
    return rows[0]


def _own_pending(db: Session, caller: Caller, order_id: str, written: str) -> ReviewComment:
    row = find_comment(db, caller, order_id, written)
    if row.sent_at is not None or row.author != author_id(caller):
        raise Conflict(
            f"comment {row.id} was sent",
            code="E-REVIEW-STATE",
            why="the agent has read it",
            next=f"fleet review add {order_id} 'TEXT' --parent {row.id}    replies to it",
        )
    return row


def _refuse_too_many(db: Session, caller: Caller, order: Order) -> None:
    own = ReviewComment.order_id == order.id, ReviewComment.author == author_id(caller), ReviewComment.sent_at.is_(None)
    count = db.scalar(select(func.count()).select_from(ReviewComment).where(*own)) or 0
    if count >= MAX_PENDING:
        raise Conflict(
            f"you have {count} pending comments on order {order.id}; {MAX_PENDING} are allowed",
            code="E-REVIEW-COUNT",
            next=f"fleet review send {order.id}",
        )


def new_comment_id(db: Session, organization_id: str) -> str:
    """An id whose beginning no other comment of the organization has: the agent is told only the beginning."""
    while True:
        made = new_id()
        same = ReviewComment.id.startswith(made[:SHORT_ID])
        taken = select(ReviewComment.id).where(ReviewComment.organization_id == organization_id, same)
        if db.scalar(taken.limit(1)) is None:
            return made


@dataclass(frozen=True)
class FileDiff:
    """The lines of a file that a diff shows, by number and side, each with its sign."""

    path: str
    old: dict[int, str] = field(default_factory=dict)
    new: dict[int, str] = field(default_factory=dict)

    def side(self, side: Side) -> dict[int, str]:
        return self.old if side == "old" else self.new

    def shown(self, side: Side) -> str:
        """The ranges that the diff shows: `3-9, 20-24`; empty for a file without lines, such as a binary one."""
        ranges: list[list[int]] = []
        for number in self.side(side):
            if ranges and ranges[-1][1] == number - 1:
                ranges[-1][1] = number
            else:
                ranges.append([number, number])
        return ", ".join(f"{first}-{last}" for first, last in ranges)


def file_diff(patch: bytes, path: str) -> FileDiff | None:
    """The lines of this file; None if the patch does not change it."""
    file = next((each for each in read_patch(patch) if each.path == path), None)
    if file is None:
        return None
    lines = [each for each in lines_of(file) if each.sign in _SIGNS]
    old = {each.old: _written(each) for each in lines if each.old is not None}
    new = {each.new: _written(each) for each in lines if each.new is not None}
    return FileDiff(path, old, new)


def paths_in(patch: bytes) -> list[str]:
    """The files that the patch changes."""
    return [each.path for each in read_patch(patch)]


def _written(line: Line) -> str:
    return f"{_SIGNS[line.sign]}{line.text}" if line.text or line.sign != "same" else ""
