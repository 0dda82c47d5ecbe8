"""Events that arrived before their predecessors: held back until the drone has sent those again."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field

from shared.events import Event, Hello


@dataclass(frozen=True)
class Held:
    """An event that waits for earlier ones. Its entry stays unacknowledged, so it survives the end of this process."""

    entry_id: str
    event: Event


@dataclass(frozen=True)
class HeldHello:
    """A hello that gives up runs whose last steps are still missing. Its entry stays unacknowledged, too."""

    entry_id: str
    said: Hello
    since: float


@dataclass
class Gaps:
    """The events that one stream's reader holds back, by run. Times are on the monotonic clock."""

    _held: dict[str, dict[int, Held]] = field(default_factory=dict)
    _since: dict[str, tuple[int, float]] = field(default_factory=dict)
    """By run: the last stored seq when its current gap was first seen, and the time of that."""
    _asked: dict[str, float] = field(default_factory=dict)
    hello: HeldHello | None = None

    def __bool__(self) -> bool:
        return bool(self._held) or self.hello is not None

    def copied(self) -> Gaps:
        """A copy to work on in a transaction that may be rolled back."""
        held = {run: copy(events) for run, events in self._held.items()}
        return Gaps(held, dict(self._since), dict(self._asked), self.hello)

    def runs(self) -> list[str]:
        """Runs with held events."""
        return list(self._held)

    def hold(self, entry_id: str, event: Event) -> None:
        self._held.setdefault(event.run_id, {})[event.seq] = Held(entry_id, event)

    def first(self, run_id: str) -> Event:
        """The run's earliest held event."""
        held = self._held[run_id]
        return held[min(held)].event

    def take_next(self, run_id: str, stored: int) -> Held | None:
        """Remove and return the run's next event, or one that is already stored; None if an earlier one is missing."""
        held = self._held.get(run_id)
        if not held or min(held) > stored + 1:
            return None
        taken = held.pop(min(held))
        if not held:
            self._forget(run_id)
        return taken

    def note(self, run_id: str, stored: int, now: float) -> None:
        """Record when the run began to wait for the event after `stored`."""
        if self._since.get(run_id, (-1, 0.0))[0] != stored:
            self._since[run_id] = (stored, now)

    def waited(self, run_id: str, now: float) -> float:
        return now - self._since[run_id][1]

    def may_ask(self, run_id: str, now: float, every: float) -> bool:
        return now - self._asked.get(run_id, float("-inf")) >= every

    def asked(self, run_id: str, now: float) -> None:
        self._asked[run_id] = now

    def hold_hello(self, entry_id: str, said: Hello, now: float) -> str | None:
        """Keep the latest hello; returns the entry of the previous one, which no longer matters."""
        before = self.hello
        if before is not None and before.entry_id == entry_id:
            return None
        self.hello = HeldHello(entry_id, said, now)
        return before.entry_id if before is not None else None

    def _forget(self, run_id: str) -> None:
        del self._held[run_id]
        self._since.pop(run_id, None)
        self._asked.pop(run_id, None)
