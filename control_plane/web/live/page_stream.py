"""The one stream of a browser: news about all topics that its tabs show, and the text in flight of their orders."""

from __future__ import annotations

import asyncio
import functools
import json
import math
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import ParamSpec, TypeVar

from anyio import to_thread
from fastapi.sse import format_sse_event

from control_plane.core import Caller, Core
from control_plane.web.hub import ANY_ORDER, WAITING_DELTAS, Changes, Hub, Subscription
from control_plane.web.live.topics import FRESH_S, GONE, Versions, Wanted, with_step
from control_plane.web.stream import Pace, StillAllowed
from control_plane.web.text_in_flight import last_step_of, source_of
from shared.errors import FleetFault, Unauthenticated
from shared.events import Delta
from shared.names import new_id
from shared.terminal import logs
from shared.terminal.output import iso

P = ParamSpec("P")
T = TypeVar("T")
log = logs.get(__name__)

MOST_TOPICS = 400
"""Of all tabs: twice a page of the largest graph."""
BEAT_S = 5.0
FETCH_S = 0.25
"""In which a page fetches a step that it was told of, unless the server is busy with lists."""


@dataclass(eq=False)
class _Followed:
    """A topic of this stream."""

    wanted: Wanted
    mailbox: Subscription | None
    version: str
    """As the client last heard it; empty: never."""
    looked_at: float = 0.0
    due: float = 0.0
    """When it is looked at next, by the monotonic clock."""
    changed_at: float = 0.0
    """When it last changed since it was looked at; 0: not."""
    not_before: float = 0.0
    read_at: float = -math.inf
    """When all of it was read, and the caller's right to see it was checked."""
    stale: bool = False
    """Whether more than steps has changed since then."""
    last_step: int = 0
    held: list[Delta] = field(default_factory=list)

    def note(self, own: Changes, any_order: Changes) -> None:
        """Something changed: in the order that it is of, if there is one, or in any."""
        topic = self.wanted.topic
        of_any = any_order if topic.follows_orders else Changes()
        self._note(max(own.row, of_any.row), topic.pause_s)
        self.stale |= bool(own.row or of_any.row)
        if topic.steps_s is not None:
            self._note(max(own.steps, of_any.steps), max(topic.pause_s, topic.steps_s))

    def _note(self, moment: float, pause_s: float) -> None:
        if moment:
            self.changed_at = max(self.changed_at, moment)
            self.due = min(self.due, max(moment, self.looked_at + pause_s, self.not_before))

    def gives_way(self, until: float) -> None:
        """It is looked at when a page has fetched the step that it was just told of; but it gives way only once."""
        if self.wanted.topic.steps_s != 0.0 and self.not_before <= self.looked_at:
            self.not_before, self.due = until, max(self.due, until)

    def looking(self) -> float:
        """It is looked at now; returns the moment after which it must be read."""
        now = time.monotonic()
        changed_at, self.changed_at = self.changed_at or now - FRESH_S, 0.0
        self.looked_at, self.due = now, now + self.wanted.topic.every_s
        return changed_at


class PageStream:
    """One browser's stream. `follow` may be called while it runs."""

    def __init__(self, core: Core, hub: Hub, versions: Versions, caller: Caller, still_allowed: StillAllowed) -> None:
        self.id = new_id()
        self.caller = caller
        self._core = core
        self._hub = hub
        self._versions = versions
        self._still_allowed = still_allowed
        self._something = asyncio.Event()
        self._followed: dict[Wanted, _Followed] = {}
        self._any_order: Subscription | None = None
        self._reads = True
        """Whether the database answered the last time."""

    def follow(self, topics: Mapping[str, str]) -> None:
        """Follow exactly these topics from now on; the values are the versions that the client has."""
        wanted = {each: version for text, version in list(topics.items())[:MOST_TOPICS] if (each := Wanted.of(text))}
        for dropped in self._followed.keys() - wanted.keys():
            self._drop(self._followed.pop(dropped))
        for each, version in wanted.items():
            if each not in self._followed:
                mailbox = self._hub.subscribe(each.id, self._something) if each.topic.is_of_order else None
                self._followed[each] = _Followed(each, mailbox, version)
        self._something.set()

    async def events(self, pace: Pace) -> AsyncIterator[bytes]:
        """Events as bytes, until the server stops or the client's session is over."""
        self._any_order = self._hub.subscribe(ANY_ORDER, self._something)
        allowed_at = beat_at = time.monotonic()
        try:
            yield self._event("hello", {"stream": self.id, "now": iso(self._core.clock.now()), "beat_s": BEAT_S})
            while not self._any_order.closing:
                now = time.monotonic()
                if now - allowed_at >= pace.allowed_s:
                    if not await self._is_allowed():
                        return
                    allowed_at = now
                for news in await self._news():
                    yield news
                if now - beat_at >= BEAT_S:
                    beat_at = now
                    yield self._event("beat", {"now": iso(self._core.clock.now()), "reads": self._reads})
                await self._wait(min(beat_at + BEAT_S, allowed_at + pace.allowed_s))
        finally:
            self._hub.unsubscribe(self._any_order)
            self.follow({})

    # --- news ------------------------------------------------------------------------------

    async def _news(self) -> list[bytes]:
        """The changed version of the topic that has been due for longest, then the text in flight that may be shown.

        One topic at a time: a step, which is looked at first, does not wait until lists were read.
        """
        self._note_changes()
        due = min(self._followed.values(), key=lambda each: (each.due, each.wanted.topic.pause_s), default=None)
        changed = await self._look(due) if due is not None and due.due <= time.monotonic() else None
        events = [] if changed is None else [changed]
        return events + [event for each in self._followed.values() for event in self._deltas(each)]

    def _note_changes(self) -> None:
        any_order = self._any_order.take_changes() if self._any_order is not None else Changes()
        for each in self._followed.values():
            each.note(each.mailbox.take_changes() if each.mailbox is not None else Changes(), any_order)

    async def _look(self, followed: _Followed) -> bytes | None:
        """The event for a changed version; None if it is the one that the client has."""
        wanted, changed_at = followed.wanted, followed.looking()
        try:
            version = await self._read(self._version, followed, changed_at)
            self._reads = True
        except FleetFault as error:
            log.warning("a stream of pages is waiting for the database", topic=str(wanted), why=error.what)
            self._reads = False
            if not followed.version:
                followed.due = followed.looked_at + wanted.topic.pause_s
            return None
        if version == followed.version:
            return None
        followed.version = version
        if wanted.topic.steps_s == 0.0:
            for each in self._followed.values():
                each.gives_way(time.monotonic() + FETCH_S)
        return self._event("changed", {"topic": str(wanted), "version": version})

    def _version(self, followed: _Followed, changed_at: float) -> str:
        """The present version; where steps are shown, also the place after which text in flight goes on."""
        wanted, now = followed.wanted, time.monotonic()
        if wanted.topic.steps_s != 0.0:
            return self._versions.since(changed_at, self.caller, wanted)
        version = followed.version
        if followed.stale or now - followed.read_at >= wanted.topic.every_s:
            version = self._versions.since(changed_at, self.caller, wanted)
            followed.stale, followed.read_at = False, now
        if version == GONE:
            last, source = 0, None
        else:
            last = last_step_of(self._core, wanted.id)
            source = source_of(self._core, wanted.id, last)
            version = with_step(version, last)
        followed.last_step = last
        if followed.mailbox is not None:
            followed.mailbox.source = source
        return version

    def _deltas(self, followed: _Followed) -> Iterable[bytes]:
        """Text in flight that may be shown: text after a step waits until the client was told of that step."""
        mailbox = followed.mailbox
        if mailbox is None or mailbox.source is None:
            return
        source = mailbox.source
        own = [each for each in [*followed.held, *mailbox.deltas()] if each.run_id == source.run_id]
        followed.held = [each for each in own if each.after_seq > source.sent_seq][-WAITING_DELTAS:]
        for delta in own:
            if delta.after_seq == source.sent_seq:
                shown = {"topic": str(followed.wanted), "after": followed.last_step, "run": delta.run_id}
                yield self._event("delta", {**shown, "kind": delta.kind, "text": delta.text, "offset": delta.offset})

    # --- waiting -----------------------------------------------------------------------------

    async def _wait(self, latest: float) -> None:
        pause = min([latest, *(each.due for each in self._followed.values())]) - time.monotonic()
        if pause <= 0:
            return
        try:
            async with asyncio.timeout(max(pause, 0.01)):
                await self._something.wait()
        except TimeoutError:
            pass
        self._something.clear()

    async def _is_allowed(self) -> bool:
        try:
            await self._read(self._still_allowed)
        except Unauthenticated:
            return False
        except FleetFault:
            self._reads = False
        return True

    async def _read(self, question: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await to_thread.run_sync(functools.partial(question, *args, **kwargs), limiter=self._hub.readers)

    def _drop(self, followed: _Followed) -> None:
        if followed.mailbox is not None:
            self._hub.unsubscribe(followed.mailbox)

    def _event(self, name: str, data: Mapping[str, object]) -> bytes:
        return format_sse_event(event=name, data_str=json.dumps(data))
