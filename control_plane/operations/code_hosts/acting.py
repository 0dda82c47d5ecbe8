"""What follows from what a drone read at a code host. Each event counts once: its key is stored with what it caused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, select, update
from sqlalchemy.orm import Session

from control_plane.core import Caller, Core
from control_plane.db.code_hosts import HostEvent, HostLink, HostThread
from control_plane.db.orders import Order
from control_plane.db.reviews import ReviewComment
from control_plane.db.types import without_nul
from control_plane.operations.code_hosts import texts, turns
from control_plane.operations.code_hosts.posts import ensure_post, set_text
from control_plane.operations.code_hosts.turns import NextTurn, TurnReceipt
from control_plane.operations.reviews.commenting import new_comment_id
from control_plane.operations.reviews.message import review_message
from control_plane.services.pull_request_text import quiet
from control_plane.services.pull_requests import order_ended
from shared.code_hosts import CodeHostReading, SeenComment, SeenPull, SeenReview, SeenReviewComment
from shared.errors import FleetError
from shared.names import new_id
from shared.states import ENDED, OrderStatus

QUIET = timedelta(seconds=5)
"""A review that is newer than this may not be complete yet, at hosts that send its comments one by one."""
BEFORE = timedelta(seconds=60)
"""How far the host's clock may be behind: comments from before the connection start nothing."""
OPEN = frozenset({"asked", "opened", "updated"})


@dataclass(frozen=True)
class _FollowUp:
    """A turn that nobody asked for."""

    cause: str
    prompt: str
    merge: dict[str, str] | None = None


@dataclass
class Acting:
    """One reading that is being acted on, in one transaction; the link is locked."""

    db: Session
    core: Core
    link: HostLink
    changed: list[str] = field(default_factory=list)
    """Orders that changed; announce them after the commit."""
    look_again: bool = False
    """Something is not complete yet: read it again soon."""
    _noted: int = 0
    """How many events were new."""

    def on(self, reading: CodeHostReading) -> None:
        """Act on everything that was read and is new."""
        for seen in reading.comments:
            self._comment(seen)
        for pull in reading.pulls:
            noted = self._noted
            self._pull(pull)
            # What counts now is left out then, so that the rest has room.
            self.look_again |= pull.more and self._noted > noted

    # --- comments -------------------------------------------------------------------------

    def _comment(self, seen: SeenComment) -> None:
        request = texts.request_in(seen.text, self.link.mention)
        if request is None or self._is_old(seen.at) or self._knows(f"comment:{seen.id}"):
            return
        event = self._event(f"comment:{seen.id}", "comment", seen.place, seen.author)
        caller = turns.mapped_caller(self.db, self.link, seen.author, seen.account)
        if caller is None:
            event.outcome = _not_mapped(seen.author)
            self._answer_stranger(seen)
        elif seen.edited:
            event.outcome = "ignored: it was edited before it was read; write a new comment"
        else:
            thread = self._thread(seen.place)
            self._attempt(event, lambda: self._asked(caller, thread, seen, request))

    def _asked(self, caller: Caller, thread: HostThread, seen: SeenComment, request: str) -> tuple[TurnReceipt, str]:
        before = turns.newest_of(self.db, thread.session_id) if thread.session_id is not None else None
        text = texts.prompt_of_comment(seen, request, self.link.repository, first=before is None)
        if before is None:
            received = turns.start(self.db, self.core, caller, self.link, text)
            thread.session_id = self.db.get_one(Order, received.order_id).session_id
        else:
            received = turns.go_on(self.db, self.core, before, NextTurn(caller, text))
            turns.deliver_message(self.db, self.core, received)
        thread.asked, thread.closed = True, False
        return received, f"asked by {seen.author}"

    def _answer_stranger(self, seen: SeenComment) -> None:
        """At most once per thread, and only if the link says so: else strangers could make the fleet write."""
        if self.link.strangers == "reply":
            text = "Only users who are connected to this fleet can start work here."
            self._post(f"stranger:{self._thread(seen.place).id}", seen.place, text)

    # --- pull requests --------------------------------------------------------------------

    def _pull(self, pull: SeenPull) -> None:
        orders = self._orders_of(pull.number)
        if not orders:
            return
        thread = self._thread(f"pulls/{pull.number}")
        thread.session_id = thread.session_id or orders[-1].session_id
        if pull.state != "open":
            self._closed(pull, thread, orders)
            return
        self._reopened(pull, thread, orders)
        newest = turns.newest_of(self.db, thread.session_id) or orders[-1]
        for review in pull.reviews:
            newest = self._review(review, thread, newest) or newest
        # The branch is about to change: what the host says of the commit before it is out of date.
        if newest.status not in ENDED or is_moving(newest, pull.branch):
            return
        if (newest := self._checks(pull, thread, newest) or newest).status in ENDED:
            self._conflict(pull, thread, newest)

    def _closed(self, pull: SeenPull, thread: HostThread, orders: Sequence[Order]) -> None:
        thread.closed = True
        last = _last_within(pull, orders)
        if not self._set_state([order for order in orders if order.number <= last], pull.state):
            return
        self._is_active(orders[-1].session_id)
        self._open_another(pull, orders[-1].session_id, last)
        self._note_state(pull, thread, pull.state)

    def _reopened(self, pull: SeenPull, thread: HostThread, orders: Sequence[Order]) -> None:
        thread.closed = False
        if self._set_state([order for order in orders if _state_of(order) == "closed"], "opened"):
            self._is_active(orders[-1].session_id)
            self._note_state(pull, thread, "reopened")

    def _set_state(self, orders: Sequence[Order], state: str) -> bool:
        """Show the state on the orders; returns whether any had another one."""
        changed = [order for order in orders if _state_of(order) != state]
        for order in changed:
            order.pull_request = {**(order.pull_request or {}), "state": state}
            self.changed.append(order.id)
        return bool(changed)

    def _note_state(self, pull: SeenPull, thread: HostThread, outcome: str) -> None:
        if not self._knows(key := f"pull:{pull.number}:{pull.state}"):
            self._event(key, "pull", thread.place, "").outcome = outcome

    def _open_another(self, pull: SeenPull, session_id: str, last: int) -> None:
        """Ask for a pull request for the work after order number `last`, which came too late for this one.

        Its newest order has all of it.
        """
        own = Order.session_id == session_id, Order.purpose == "work", Order.number > last
        done = Order.status == OrderStatus.SUCCEEDED, Order.head_commit.is_not(None), Order.head_commit != pull.head
        wanted = select(Order).where(*own, *done).order_by(Order.number).with_for_update()
        rows = self.db.scalars(wanted.execution_options(populate_existing=True)).all()
        late = [each for each in rows if each.pull_request is None or pull_number(each) == pull.number]
        for order in late:
            order.pull_request = None
            self.changed.append(order.id)
        if late and late[-1] is rows[-1]:
            order_ended(self.db, self.core, late[-1])

    def _review(self, review: SeenReview, thread: HostThread, newest: Order) -> Order | None:
        """Give the agent what is new in a review, as one message; returns the order that received it."""
        new = [each for each in review.comments if not self._knows(f"line:{each.id}")]
        knows = self._knows(f"review:{review.id}")
        if self._is_old(review.at) or not (new or (review.text.strip() and not knows)):
            return None
        if self.core.clock.now() - review.at < QUIET:
            self.look_again = True
            return None
        event = None if knows else self._event(f"review:{review.id}", "review", thread.place, review.author)
        lines = [self._event(f"line:{each.id}", "review", thread.place, each.author) for each in new]
        caller = turns.mapped_caller(self.db, self.link, review.author, review.account)
        first = event or lines[0]
        if caller is None:
            first.outcome = _not_mapped(review.author)
            return None
        kept = [each for each in new if not each.edited]
        text = "" if knows or review.edited else review.text
        if not kept and not text.strip():
            first.outcome = "ignored: it was edited before it was read; write a new comment"
            return None
        received = self._attempt(first, lambda: self._reviewed(caller, thread, newest, (kept, text, review.author)))
        for each in lines:
            each.outcome, each.order_id = first.outcome, first.order_id
        return self.db.get_one(Order, received.order_id) if received is not None else None

    def _reviewed(
        self,
        caller: Caller,
        thread: HostThread,
        newest: Order,
        what: tuple[Sequence[SeenReviewComment], str, str],
    ) -> tuple[TurnReceipt, str]:
        seen, text, author = what
        rows = [self._review_row(caller, newest, each) for each in seen]
        turn = NextTurn(caller, review_message(newest.id, rows, text, {}))
        received = turns.go_on(self.db, self.core, newest, turn)
        for row, each in zip(rows, seen, strict=True):
            row.sent_order_id, row.message_number = received.order_id, received.message_number
            post = ensure_post(self.db, self.link, f"answer:{row.id}", thread.place, self.core.clock.now())
            post.reply_to = each.thread
        turns.deliver_message(self.db, self.core, received)
        count = "1 comment" if len(rows) == 1 else f"{len(rows)} comments"
        return received, f"review by {author}, {count}"

    def _review_row(self, caller: Caller, order: Order, seen: SeenReviewComment) -> ReviewComment:
        now = self.core.clock.now()
        row = ReviewComment(
            id=new_comment_id(self.db, self.link.organization_id),
            organization_id=self.link.organization_id,
            order_id=order.id,
            author=caller.user_id or "",
            user=caller.user,
            commit=seen.commit or None,
            path=seen.path,
            side=seen.side,
            start_line=seen.start_line,
            end_line=seen.end_line,
            quote=seen.quote,
            text=without_nul(seen.text),
            created_at=seen.at,
            updated_at=seen.at,
            sent_at=now,
        )
        self.db.add(row)
        self.db.flush()
        return row

    def _checks(self, pull: SeenPull, thread: HostThread, newest: Order) -> Order | None:
        new = [each for each in pull.checks if not self._knows(f"check:{each.id}")]
        if not new:
            return None
        events = [self._event(f"check:{each.id}", "check", thread.place, each.name) for each in new]
        names = ", ".join(each.name for each in new)
        what = _FollowUp(f"failed check {names}", texts.prompt_of_checks(new, pull))
        order = self._follow_up(events[0], thread, newest, what)
        for each in events:
            each.outcome, each.order_id = events[0].outcome, events[0].order_id
        return order

    def _conflict(self, pull: SeenPull, thread: HostThread, newest: Order) -> None:
        key = f"conflict:{pull.number}:{pull.head}"
        if not pull.conflicts or not pull.base_commit or self._knows(key):
            return
        event = self._event(key, "conflict", thread.place, "")
        merge = {"branch": pull.base, "commit": pull.base_commit}
        what = _FollowUp(f"conflict with {pull.base}", texts.prompt_of_conflict(pull), merge)
        self._follow_up(event, thread, newest, what)

    def _follow_up(self, event: HostEvent, thread: HostThread, newest: Order, what: _FollowUp) -> Order | None:
        """Start a turn that nobody asked for, as long as there are not too many of them."""
        cause = what.cause
        if thread.follow_ups >= self.link.max_follow_ups:
            event.outcome = f"no follow-up: {thread.follow_ups} of {self.link.max_follow_ups} were used"
            limit = f"the limit of {self.link.max_follow_ups} automatic follow-ups is reached"
            self._post(f"limit:{thread.id}", thread.place, f"{cause[:1].upper()}{cause[1:]}: {limit}.")
            return None

        def follow() -> tuple[TurnReceipt, str]:
            caller = turns.caller_of_order(self.db, self.link, newest)
            return turns.go_on(self.db, self.core, newest, NextTurn(caller, what.prompt, what.merge)), cause

        received = self._attempt(event, follow)
        if received is None:
            return None
        thread.follow_ups += 1
        return self.db.get_one(Order, received.order_id)

    # --- rows -----------------------------------------------------------------------------

    def _attempt(self, event: HostEvent, do: Callable[[], tuple[TurnReceipt, str]]) -> TurnReceipt | None:
        """Do what an event asks for; if it is refused, only that is undone, and the event and its thread say why."""
        try:
            with self.db.begin_nested():
                received, event.outcome = do()
        except FleetError as error:
            event.outcome = f"not started: {error.what}"
            self._post(f"refused:{new_id()}", event.place, f"This was not started: {error.what}.")
            return None
        event.order_id = received.order_id
        self._is_active(self.db.get_one(Order, received.order_id).session_id)
        self.changed.append(received.order_id)
        return received

    def _is_active(self, session_id: str) -> None:
        own = HostThread.link_id == self.link.id, HostThread.session_id == session_id
        self.db.execute(update(HostThread).where(*own).values(active_at=self.core.clock.now()))

    def _post(self, subject: str, place: str, text: str) -> None:
        set_text(ensure_post(self.db, self.link, subject, place, self.core.clock.now()), quiet(text))

    def _thread(self, place: str) -> HostThread:
        """The thread; that of a pull request of the fleet continues the session of its order."""
        known = select(HostThread).where(HostThread.link_id == self.link.id, HostThread.place == place)
        thread = self.db.scalar(known)
        if thread is None:
            kind, _, number = place.partition("/")
            orders = self._orders_of(int(number)) if kind == "pulls" else []
            thread = HostThread(
                id=new_id(),
                organization_id=self.link.organization_id,
                link_id=self.link.id,
                place=place,
                session_id=orders[-1].session_id if orders else None,
                asked=False,
                follow_ups=0,
                closed=False,
                created_at=self.core.clock.now(),
                active_at=self.core.clock.now(),
            )
            self.db.add(thread)
            self.db.flush()
        return thread

    def _orders_of(self, number: int) -> list[Order]:
        return orders_with_pulls(self.db, self.link, Order.pull_request["number"].as_integer() == number)

    def _knows(self, key: str) -> bool:
        return self.db.get(HostEvent, (self.link.id, key)) is not None

    def _event(self, key: str, kind: str, place: str, author: str) -> HostEvent:
        event = HostEvent(
            organization_id=self.link.organization_id,
            link_id=self.link.id,
            key=key,
            kind=kind,
            place=place,
            author=author,
            outcome="",
            at=self.core.clock.now(),
        )
        self.db.add(event)
        self.db.flush()
        self._noted += 1
        return event

    def _is_old(self, at: datetime) -> bool:
        return at < self.link.created_at - BEFORE


def orders_with_pulls(db: Session, link: HostLink, condition: ColumnElement[bool]) -> list[Order]:
    """The project's orders with a pull request at the host that meets the condition, oldest first."""
    wanted = select(Order).where(Order.project_id == link.project_id, Order.pull_request.is_not(None), condition)
    return [each for each in db.scalars(wanted.order_by(Order.number)) if pull_number(each) is not None]


def _not_mapped(author: str) -> str:
    return f"ignored: {author or 'a deleted account'} is not mapped to a user who may start work"


def _last_within(pull: SeenPull, orders: Sequence[Order]) -> int:
    """The number of the last order whose work the pull request has; users may have pushed to its branch, too."""
    at_head = [each.number for each in orders if each.head_commit == pull.head]
    on_branch = [each.number for each in orders if each.branch == (each.pull_request or {}).get("head")]
    return max(at_head or on_branch or [orders[-1].number])


def pull_number(order: Order) -> int | None:
    number = (order.pull_request or {}).get("number")
    return number if isinstance(number, int) else None


def _state_of(order: Order) -> str | None:
    """The state of the order's pull request."""
    return (order.pull_request or {}).get("state")


def is_moving(order: Order, branch: str) -> bool:
    """Whether the pull request's branch is to be moved on to the order's work, and was not yet."""
    if order.status != OrderStatus.SUCCEEDED or order.head_commit is None or not order.pushed or order.branch == branch:
        return False
    return order.pull_request is None or order.pull_request["state"] == "asked"
