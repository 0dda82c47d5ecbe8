"""The comments of the fleet at a code host: one for each subject, as it is to be and as it was last written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from control_plane.db.code_hosts import HostLink, HostPost
from shared.code_hosts import CommentToWrite, WrittenComment
from shared.names import new_id

PAUSES = (30, 120, 600, 3600, 21_600)
"""Seconds before each further attempt to write a comment; after the last one it is given up until its text changes."""
MOST_WRITES = 20
"""Comments that one order writes."""


def set_text(post: HostPost, text: str) -> None:
    """Set what the comment is to say; a comment that was given up is tried again."""
    if post.text != text:
        post.text = text
        if post.next_at is None:
            post.attempts = 0


def ensure_post(db: Session, link: HostLink, subject: str, place: str, now: datetime) -> HostPost:
    """The comment with this subject; a new one has no text yet, and is not written before it has."""
    known = select(HostPost).where(HostPost.link_id == link.id, HostPost.subject == subject)
    post = db.scalar(known)
    if post is None:
        post = HostPost(
            id=new_id(),
            organization_id=link.organization_id,
            link_id=link.id,
            subject=subject,
            place=place,
            text=None,
            written="",
            attempts=0,
            error="",
            created_at=now,
        )
        db.add(post)
        db.flush()
    return post


def due_posts(db: Session, link: HostLink, now: datetime) -> Sequence[HostPost]:
    """The comments that are to be written now, oldest first."""
    differs = HostPost.text.is_not(None), HostPost.text != HostPost.written
    may = or_(HostPost.attempts == 0, HostPost.next_at <= now)
    wanted = select(HostPost).where(HostPost.link_id == link.id, *differs, may)
    return db.scalars(wanted.order_by(HostPost.created_at, HostPost.id).limit(MOST_WRITES)).all()


def to_write(posts: Sequence[HostPost]) -> Iterator[CommentToWrite]:
    for post in posts:
        yield CommentToWrite(
            id=post.id, place=post.place, text=post.text or "", reply_to=post.reply_to, comment=post.comment
        )


def note_written(
    db: Session, sent: Mapping[str, CommentToWrite], written: Sequence[WrittenComment], now: datetime
) -> None:
    """Record what became of the comments of one order, which wrote the texts in `sent`."""
    for each in written:
        post = db.get(HostPost, each.id) if each.id in sent else None
        if post is None:
            continue
        if each.comment is not None:
            post.comment, post.written, post.error = each.comment, sent[each.id].text, ""
            post.attempts, post.next_at = 0, None
        else:
            pause = PAUSES[post.attempts] if post.attempts < len(PAUSES) else None
            post.attempts, post.error = post.attempts + 1, each.error
            post.next_at = now + timedelta(seconds=pause) if pause is not None else None
