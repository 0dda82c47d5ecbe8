"""The live stream of one order: every stored step exactly once and in order, changes of the order, text in flight."""

from __future__ import annotations

import functools
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import ParamSpec, TypeVar

from anyio import to_thread
from fastapi.sse import format_sse_event
from pydantic import BaseModel

from control_plane.contract.documents.orders import OrderSummary, StepDocument
from control_plane.core import Caller, Core
from control_plane.operations.orders import reading
from control_plane.web.hub import WAITING_DELTAS, Hub, Subscription
from control_plane.web.text_in_flight import Source, source_of
from shared.errors import FleetFault, Unauthenticated
from shared.events import Delta
from shared.states import ENDED, OrderStatus
from shared.terminal import logs
from shared.terminal.output import iso

P = ParamSpec("P")
T = TypeVar("T")
log = logs.get(__name__)

STEPS_AT_ONCE = 200


@dataclass(frozen=True)
class Pace:
    """The intervals of a stream's timed actions, in seconds."""

    heartbeat_s: float = 10.0
    allowed_s: float = 3.0
    """How often the client's token or session is checked: a stream ends within 5 s of a revocation."""
    poll_s: float = 1.0
    """How often the database is polled while the broker is unavailable."""
    figures_s: float = 2.0
    """Tokens and cost change with every step; an `order` event for them alone is not sent more often than this."""


@dataclass(frozen=True)
class News:
    """The state of the database at one moment."""

    order: OrderSummary | None
    """None: it was not read, since only steps came."""
    source: Source | None
    steps: list[StepDocument]
    last_step: int
    """The number of the last step that the client has after these."""

    @property
    def more(self) -> bool:
        return len(self.steps) >= STEPS_AT_ONCE

    @property
    def ended(self) -> bool:
        return self.order is not None and OrderStatus(self.order.status) in ENDED and not self.more


StillAllowed = Callable[[], object]
"""Raises Unauthenticated once the client's token or session is no longer valid."""


@dataclass(frozen=True)
class Live:
    """What the streams of one process share."""

    hub: Hub
    pace: Pace


class OrderStream:
    """One client's view of one order, from the step that it saw last."""

    def __init__(self, core: Core, live: Live, caller: Caller, order_id: str, still_allowed: StillAllowed) -> None:
        self._core = core
        self._hub = live.hub
        self._pace = live.pace
        self._caller = caller
        self._order_id = order_id
        self._still_allowed = still_allowed
        self._held: list[Delta] = []
        self._shown: OrderSummary | None = None
        self._shown_at = 0.0
        self._withheld = False
        self._steps_only = False
        """Whether nothing but steps came since the order was read, a short time ago."""
        self._read_at = 0.0
        self._beat_at = self._allowed_at = time.monotonic()

    async def events(self, after: int) -> AsyncIterator[bytes]:
        """Events as bytes, until the order ended or the server stops; steps from number `after` + 1 on."""
        last = after
        with self._hub.subscription(self._order_id) as mailbox:
            while not mailbox.closing and await self._is_allowed():
                news = await self._news(last)
                if news is not None:
                    mailbox.source = news.source
                    async for event in self._events_of(news):
                        yield event
                    last = news.last_step
                    if news.ended:
                        yield _event(
                            "end", await self._read(reading.show_order, self._core, self._caller, self._order_id)
                        )
                        return
                    if news.more:
                        self._steps_only = False
                        continue
                async for event in self._until_changed(mailbox, calm=news is not None):
                    yield event

    async def _is_allowed(self) -> bool:
        """Checked again and again: a revoked token must not be able to follow for as long as a run takes."""
        if time.monotonic() - self._allowed_at < self._pace.allowed_s:
            return True
        try:
            await self._read(self._still_allowed)
        except Unauthenticated:
            # The client reconnects, and receives a 401.
            return False
        except FleetFault:
            pass
        self._allowed_at = time.monotonic()
        return True

    async def _news(self, last: int) -> News | None:
        if not self._steps_only:
            self._read_at = time.monotonic()
        try:
            question = _read_steps if self._steps_only else _read_news
            return await self._read(question, self._core, self._caller, self._order_id, last)
        except FleetFault as error:
            # A stream outlives a short outage of the database; changes in the meantime are read when it is back.
            log.warning("a live stream is waiting for the database", order=self._order_id, why=error.what)
            return None

    async def _events_of(self, news: News) -> AsyncIterator[bytes]:
        """The news as events. The end of an order is sent after its last step, any other change before its steps."""
        order = news.order
        worth = order is not None and self._is_worth_telling(order)
        self._withheld = not worth and order != self._shown
        if order is not None and worth and not news.ended:
            yield self._order_event(order)
        for step in news.steps:
            yield _event("step", step, id=str(step.seq))
        if order is not None and news.ended:
            yield self._order_event(order)

    async def _until_changed(self, mailbox: Subscription, *, calm: bool) -> AsyncIterator[bytes]:
        """Deltas and heartbeats, until it is time to query the database again."""
        looked_at = time.monotonic()
        while not mailbox.closing and await self._is_allowed():
            now = time.monotonic()
            asking = self._pace.heartbeat_s if calm and self._hub.connected else self._pace.poll_s
            if self._withheld:
                asking = min(asking, self._pace.figures_s)
            if now - self._beat_at >= self._pace.heartbeat_s:
                self._beat_at = now
                yield format_sse_event(event="heartbeat", data_str=f'{{"at":"{iso(self._core.clock.now())}"}}')
            due = min(
                looked_at + asking,
                self._beat_at + self._pace.heartbeat_s,
                self._allowed_at + self._pace.allowed_s,
            )
            for delta in self._due(mailbox):
                yield _event("delta", _Delta.of(delta))
            await mailbox.wait(max(due - now, 0.05))
            changes, now = mailbox.take_changes(), time.monotonic()
            # Also without a message from the broker: a lost message costs one heartbeat, not the stream.
            is_time = now - looked_at >= asking
            if (changes.last and calm) or is_time:
                recent = now - self._read_at < self._pace.figures_s
                self._steps_only = recent and not changes.row and not is_time
                return

    def _due(self, mailbox: Subscription) -> list[Delta]:
        """Text in flight that is due: pub/sub is faster than the database, and must not overtake a step."""
        self._held += mailbox.deltas()
        source = mailbox.source
        if source is None:
            return []
        own = [delta for delta in self._held if delta.run_id == source.run_id]
        self._held = [delta for delta in own if delta.after_seq > source.sent_seq][-WAITING_DELTAS:]
        # A piece that is later than the step after it was shown with that step.
        return [delta for delta in own if delta.after_seq == source.sent_seq]

    def _is_worth_telling(self, order: OrderSummary) -> bool:
        if self._shown is None or order == self._shown:
            return self._shown is None
        same = {"stats": self._shown.stats, "doing": self._shown.doing}
        only_figures = order.model_copy(update=same) == self._shown
        return not only_figures or time.monotonic() - self._shown_at > self._pace.figures_s

    def _order_event(self, order: OrderSummary) -> bytes:
        self._shown, self._shown_at = order, time.monotonic()
        return _event("order", order)

    async def _read(self, question: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await to_thread.run_sync(functools.partial(question, *args, **kwargs), limiter=self._hub.readers)


class _Delta(BaseModel):
    run: str
    kind: str
    text: str
    offset: int | None
    """As in `shared.events.Delta`."""

    @classmethod
    def of(cls, delta: Delta) -> _Delta:
        return cls(run=delta.run_id, kind=delta.kind, text=delta.text, offset=delta.offset)


def _read_news(core: Core, caller: Caller, order_id: str, last: int) -> News:
    # The order before its steps: everything that led to the state seen here is then among the steps.
    order = reading.order_summary(core, caller, order_id)
    return replace(_read_steps(core, caller, order_id, last), order=order)


def _read_steps(core: Core, caller: Caller, order_id: str, last: int) -> News:
    steps = reading.steps_after(core, caller, order_id, last, STEPS_AT_ONCE)
    last_step = steps[-1].seq if steps else last
    return News(None, source_of(core, order_id, last_step), steps, last_step)


def _event(name: str, document: BaseModel, id: str | None = None) -> bytes:
    return format_sse_event(event=name, data_str=document.model_dump_json(), id=id)
