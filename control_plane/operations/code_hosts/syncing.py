"""Keeps each connected code host up to date: one order at a time reads it and writes what is due.

The order runs on a drone, with the login of its workstation. A webhook, the interval, or a comment to write makes it
due; a failure delays the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial

from pydantic import ValidationError
from sqlalchemy import ColumnElement, Select, and_, or_, select
from sqlalchemy.orm import Session

from control_plane.core import Core
from control_plane.core.origin import RequestOrigin, coming_from
from control_plane.db.code_hosts import HostEvent, HostLink, HostPost, HostThread
from control_plane.db.orders import Order
from control_plane.db.projects import Project
from control_plane.db.reviews import ReviewComment
from control_plane.operations.code_hosts.acting import OPEN, Acting, is_moving, orders_with_pulls, pull_number
from control_plane.operations.code_hosts.posts import due_posts, ensure_post, note_written, set_text, to_write
from control_plane.operations.code_hosts.texts import answer_text, status_text
from control_plane.orders.conversations.new_session import new_session
from control_plane.orders.draft import Draft, create_order
from control_plane.orders.numbers import lock_numbers
from control_plane.services.checks import no_provider
from control_plane.services.stored_work import ask_advance
from shared.code_hosts import MOST_COMMENTS, CodeHostReading, SyncCodeHost
from shared.states import ENDED, OrderStatus
from shared.terminal import logs
from shared.work_order import Limits

SETTLES = timedelta(seconds=2)
"""How long after the first webhook the host is read: most events come as several."""
OVERLAP = timedelta(minutes=5)
"""How far each reading goes back before the last one: the two clocks may differ, and events count once anyway."""
KEPT = timedelta(days=30)
"""How long comments are kept up to date after something last happened."""
RECENT = timedelta(days=1)
"""How long after its last change a session is looked at for a comment that is out of date."""
FIRST_PAUSE = 30
LONGEST_PAUSE = 3600
SECONDS = 300.0
"""Time for a drone to read and write."""
PRIORITY = 10
"""Before other orders: it takes seconds, and a drone that works on one order at a time does it first."""
MOST_PULLS = 50
MOST_KNOWN = 200
MOST_KNOWN_LINES = 2000
"""Reviews and comments on lines, of all pull requests that are read."""
DOOR = "code host"
log = logs.get(__name__)


def enabled_links() -> Select[str]:
    """The ids of the connections that are enabled."""
    return select(HostLink.id).where(HostLink.enabled.is_(True), HostLink.removed_at.is_(None))


def keep_up(core: Core) -> None:
    """Do what is due for all connections; may be repeated."""
    with core.database.read() as db:
        links = db.scalars(enabled_links()).all()
    for link_id in links:
        try:
            keep_link(core, link_id)
        except Exception:  # the body of a background loop: one connection must not stop the others
            log.exception("a code host was not kept up to date", link=link_id)


def keep_link(core: Core, link_id: str) -> None:
    """Do what is due for one connection, in one transaction."""
    with core.database.read() as db:
        link = db.get(HostLink, link_id)
        if link is None or not (_has_ended(db, link) or _Keeping(db, core, link).is_due()):
            return
    with coming_from(RequestOrigin(DOOR)):
        changed = core.database.transact(partial(_keep, core, link_id))
    for order_id in dict.fromkeys(changed):
        core.broker.changed(order_id)


def _keep(core: Core, link_id: str, db: Session) -> list[str]:
    # Before any order is locked, as for every new order.
    lock_numbers(db)
    link = db.get_one(HostLink, link_id, with_for_update=True, populate_existing=True)
    keeping = _Keeping(db, core, link)
    if _has_ended(db, link):
        keeping.finish()
    keeping.refresh()
    keeping.start()
    return keeping.changed


def _has_ended(db: Session, link: HostLink) -> bool:
    order = db.get(Order, link.order_id) if link.order_id is not None else None
    return order is not None and order.status in ENDED


class _Keeping:
    """One connection that is being kept up to date."""

    def __init__(self, db: Session, core: Core, link: HostLink) -> None:
        self._db = db
        self._core = core
        self._link = link
        self._now = core.clock.now()
        self.changed: list[str] = []
        self._left_out: tuple[int, ...] = ()
        """The pull requests that the last reading had no room for."""

    def is_due(self) -> bool:
        """Whether anything is to be done, without changing anything."""
        texts = any(post.text != text for post, text in self._answers()) or any(
            post is None or post.text != text for post, _, text in self._states()
        )
        return texts or bool(self._moving()) or (self._link.order_id is None and self._may_start())

    # --- the end of an order --------------------------------------------------------------

    def finish(self) -> None:
        """Act on what the order read, and note what it wrote."""
        link = self._link
        order = self._db.get_one(Order, link.order_id)
        link.order_id = None
        reading = _reading(order)
        if reading is None:
            link.failures += 1
            link.last_error = order.reason if order.status != OrderStatus.SUCCEEDED else "the reading was damaged"
            link.next_at = self._now + timedelta(seconds=_pause(link.failures))
            return
        asked = SyncCodeHost.model_validate(order.asked)
        note_written(self._db, {each.id: each for each in asked.writes}, reading.written, self._now)
        link.last_at, link.last_error = self._now, reading.why
        # Only what holds up the comments delays the next reading: a pull request alone may be unreadable for good.
        failed = bool(reading.why) and not reading.comments_read
        link.failures = link.failures + 1 if failed else 0
        pause = _pause(link.failures) if failed else link.poll_seconds
        # Without an interval it is read once a day: webhooks get lost.
        link.next_at = self._now + timedelta(seconds=pause or (LONGEST_PAUSE if reading.why else 86_400))
        if not failed:
            self._read_up_to(order, reading)
        acting = Acting(self._db, self._core, link)
        acting.on(reading)
        self._left_out = reading.left_out
        self.changed += acting.changed
        if acting.look_again and link.news_at is None:
            link.news_at = self._now

    def _read_up_to(self, order: Order, reading: CodeHostReading) -> None:
        """Set where the next reading begins: at the last comment if there may be more behind it, and then at once."""
        link = self._link
        last = max((each.at for each in reading.comments), default=link.read_since)
        # An older drone does not say whether there are more.
        more = reading.more_comments or len(reading.comments) >= MOST_COMMENTS
        if more and last > link.read_since:
            link.read_since, link.news_at = last, self._now
        else:
            link.read_since = max(link.read_since, order.created_at - OVERLAP)

    # --- what is to be there --------------------------------------------------------------

    def refresh(self) -> None:
        """Set the texts of all comments, and move the branches of pull requests on to newer work."""
        for order, before in self._moving():
            self.changed += [ask_advance(self._db, self._core, order, before).id, order.id]
        for post, text in self._answers():
            set_text(post, text)
        for _, thread, text in self._states():
            set_text(ensure_post(self._db, self._link, f"status:{thread.id}", thread.place, self._now), text)
        self._db.flush()

    def _states(self) -> list[tuple[HostPost | None, HostThread, str]]:
        """The threads in which work was asked for, with the text of their one comment."""
        moved = or_(Order.ended_at.is_(None), Order.ended_at > self._now - RECENT)
        works = select(Order.id).where(Order.session_id == HostThread.session_id, moved).exists()
        active = HostThread.active_at > self._now - KEPT, or_(HostThread.active_at > self._now - RECENT, works)
        asked = HostThread.link_id == self._link.id, HostThread.asked.is_(True), *active
        found = []
        for thread in self._db.scalars(select(HostThread).where(*asked).order_by(HostThread.created_at)):
            own = Order.session_id == thread.session_id, Order.purpose == "work"
            orders = self._db.scalars(select(Order).where(*own).order_by(Order.number)).all()
            named = HostPost.link_id == self._link.id, HostPost.subject == f"status:{thread.id}"
            if orders:
                text = status_text(orders, self._causes(orders), self._core.settings.url)
                found.append((self._db.scalar(select(HostPost).where(*named)), thread, text))
        return found

    def _causes(self, orders: Sequence[Order]) -> dict[str, str]:
        ids = [each.id for each in orders]
        events = select(HostEvent).where(HostEvent.order_id.in_(ids)).order_by(HostEvent.at, HostEvent.key)
        causes: dict[str, list[str]] = {}
        for event in self._db.scalars(events):
            causes.setdefault(str(event.order_id), []).append(event.outcome)
        return {order_id: "; ".join(dict.fromkeys(each)) for order_id, each in causes.items()}

    def _answers(self) -> list[tuple[HostPost, str]]:
        """The answers to review comments that can be given: the order has ended, and its work is where they are."""
        news = or_(HostPost.text.is_(None), ReviewComment.answered_at > self._now - RECENT)
        young = HostPost.created_at > self._now - KEPT, news
        wanted = HostPost.link_id == self._link.id, HostPost.subject.startswith("answer:"), *young
        rows = self._db.execute(
            select(HostPost, ReviewComment)
            .join(ReviewComment, HostPost.subject == "answer:" + ReviewComment.id)
            .where(*wanted)
        )
        return [(post, answer_text(row)) for post, row in rows if self._is_settled(row)]

    def _is_settled(self, row: ReviewComment) -> bool:
        order = self._db.get(Order, row.answer_order_id or row.sent_order_id or "")
        if order is None or order.status not in ENDED:
            return False
        own = (each for each in self._pulls() if each.session_id == order.session_id)
        branch = next((str((each.pull_request or {})["head"]) for each in own), None)
        return branch is None or not is_moving(self._newest_done(order) or order, branch)

    def _newest_done(self, order: Order) -> Order | None:
        """The newest work of the order's session, from the order on, that can be on the branch of a pull request."""
        own = Order.session_id == order.session_id, Order.purpose == "work", Order.number >= order.number
        done = Order.status == OrderStatus.SUCCEEDED, Order.head_commit.is_not(None), Order.pushed.is_(True)
        return self._db.scalar(select(Order).where(*own, *done).order_by(Order.number.desc()).limit(1))

    def _pulls(self) -> list[Order]:
        """The orders whose pull requests are open."""
        return _open_pulls(self._db, self._link)

    def _moving(self) -> list[tuple[Order, dict[str, object]]]:
        """The newest work of each session with an open pull request, if its branch is not there yet."""
        found = {}
        for each in self._pulls():
            newest = self._newest_done(each)
            before = each.pull_request or {}
            if newest is not None and newest.pull_request is None and newest.branch != before["head"]:
                found[newest.id] = (newest, before)
        return list(found.values())

    # --- the next order -------------------------------------------------------------------

    def start(self) -> None:
        """Create the order that reads and writes, if it is due."""
        link, db = self._link, self._db
        if link.order_id is not None or not self._may_start():
            return
        project = db.get_one(Project, link.project_id)
        if project.removed_at is not None:
            link.enabled, link.last_error = False, f"project {project.slug} was removed"
            return
        session = new_session(self._core, project, "plan", None)
        session.name = f"code host {link.name}"
        draft = Draft(
            project=project,
            provider=no_provider(db, self._core, link.organization_id),
            session=session,
            prompt=f"Read {link.repository} at its code host.",
            mode="plan",
            purpose="code_host",
            asked=self._asked().model_dump(mode="json"),
            limits=Limits(max_run_seconds=SECONDS),
            priority=PRIORITY,
            drone_id=link.drone_id,
        )
        order = create_order(db, self._core, draft)
        # What happened meanwhile is read once all pull requests were.
        link.order_id, link.news_at = order.id, link.news_at if self._left_out else None
        self.changed.append(order.id)

    def _may_start(self) -> bool:
        link, now = self._link, self._now
        if link.failures and now < link.next_at:
            return False
        news = link.news_at is not None and now >= link.news_at + SETTLES
        return news or bool(self._left_out) or now >= link.next_at or bool(due_posts(self._db, link, now))

    def _asked(self) -> SyncCodeHost:
        link, db = self._link, self._db
        # The others were just read: a chain of readings ends, as each of them reads at least one.
        still_open, closed = pulls_to_read(db, link, self._now)
        pulls = [number for number in (*still_open, *closed) if number in self._left_out or not self._left_out]
        places = [f"pulls/{number}" for number in pulls[:MOST_PULLS]]
        return SyncCodeHost.model_validate(
            {
                "kind": link.kind,
                "mention": link.mention,
                "since": link.read_since,
                "pulls": tuple(pulls[:MOST_PULLS]),
                "known_checks": tuple(key.removeprefix("check:") for key in self._known("check", MOST_KNOWN)),
                "known": (
                    *self._known("comment", MOST_KNOWN),
                    *self._known("review", MOST_KNOWN_LINES, HostEvent.place.in_(places)),
                ),
                "writes": tuple(to_write(due_posts(db, link, self._now))),
            }
        )

    def _known(self, kind: str, most: int, *where: ColumnElement[bool]) -> Sequence[str]:
        """The keys of events that counted, newest first."""
        keys = select(HostEvent.key).where(HostEvent.link_id == self._link.id, HostEvent.kind == kind, *where)
        return self._db.scalars(keys.order_by(HostEvent.at.desc(), HostEvent.key.desc()).limit(most)).all()


def pulls_to_read(db: Session, link: HostLink, now: datetime) -> tuple[list[int], list[int]]:
    """The numbers of the pull requests that are open, and of those that may be reopened, newest first.

    The latter were closed lately and not merged. At most `MOST_PULLS` are read at once, open ones first.
    """
    sessions = select(HostThread.session_id).where(HostThread.link_id == link.id, HostThread.active_at > now - KEPT)
    closed = Order.pull_request["state"].as_string() == "closed", Order.session_id.in_(sessions)
    still_open = _numbers(_open_pulls(db, link))
    may_reopen = _numbers(orders_with_pulls(db, link, and_(*closed)))
    return still_open, [number for number in may_reopen if number not in still_open]


def _open_pulls(db: Session, link: HostLink) -> list[Order]:
    return orders_with_pulls(db, link, Order.pull_request["state"].as_string().in_(OPEN))


def _numbers(orders: Sequence[Order]) -> list[int]:
    """The numbers of their pull requests, newest first."""
    return sorted({number for each in orders if (number := pull_number(each))}, reverse=True)


def _reading(order: Order) -> CodeHostReading | None:
    if order.status != OrderStatus.SUCCEEDED:
        return None
    try:
        return CodeHostReading.model_validate_json(order.response or "")
    except ValidationError:
        return None


def _pause(failures: int) -> int:
    return int(min(FIRST_PAUSE * 2 ** min(failures - 1, 10), LONGEST_PAUSE))
