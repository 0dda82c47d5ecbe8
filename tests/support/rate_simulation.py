"""Runs that ask a group for permits, and an endpoint that enforces a limit, in simulated time."""

from __future__ import annotations

import heapq
import random
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from control_plane.money.rates.permits import Asker, PermitDecision
from control_plane.money.rates.state import GroupState
from shared.rates import CallReport, ModelPermit, PermitRequest, Rate, Tokens

Names = Literal["settings", "headers", "nothing"]
"""How the fleet learns about the limit: from the provider's settings, from headers, only from 429s."""
TOKENS = Tokens(input_tokens=1000, output_tokens=100)


@dataclass
class SimulatedRun:
    """One run that always has a next call."""

    asker: Asker
    thinks_s: float = 0.0
    """Between an answer and its next call, for its tools."""
    reports: list[tuple[float, CallReport]] = field(default_factory=list)
    last: ModelPermit | None = None
    free_until: float = 0.0
    free_calls: int = 0


@dataclass
class Simulation:
    """An endpoint with a strict sliding window, and the runs that call it."""

    limit: int
    names: Names = "settings"
    window: float = 60.0
    latency_s: float = 2.0
    delay_s: float = 0.3
    """A request takes up to so long to reach the endpoint."""
    changes: dict[float, int] = field(default_factory=dict)
    """Times at which the limit changes."""
    now: float = 1_000_000.0
    group: GroupState = field(default_factory=GroupState)
    accepted: list[tuple[float, str]] = field(default_factory=list)
    refused: list[tuple[float, str]] = field(default_factory=list)
    asked: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._random = random.Random(7)
        self._window: deque[float] = deque()
        self.began = self.now

    def add(self, run_id: str) -> SimulatedRun:
        """A run that calls from now on."""
        rpm = self.limit if self.names == "settings" else 0
        run = SimulatedRun(Asker(run_id, "a", "provider", "model", rpm, 0, 1))
        self._at(self.now, lambda: self._next_call(run))
        return run

    def run(self, seconds: float) -> None:
        """Let so much time pass."""
        until = self.now + seconds
        while self._events and self._events[0][0] <= until:
            self.now, _, happens = heapq.heappop(self._events)
            happens()
        self.now = until

    def used_part(self, since: float, until: float) -> float:
        """The accepted requests between two times since the beginning, as a part of those allowed."""
        count = sum(self.began + since <= at < self.began + until for at, _ in self.accepted)
        return count / (self._limit_at(self.began + since) * (until - since) / self.window)

    def refused_part(self, since: float, until: float) -> float:
        """The refused requests, as a part of all."""
        span = self.began + since, self.began + until
        refused, accepted = (sum(span[0] <= at < span[1] for at, _ in each) for each in (self.refused, self.accepted))
        return refused / max(1, refused + accepted)

    def ask(self, run: SimulatedRun, expected: Tokens | None = TOKENS) -> ModelPermit:
        """One request of a run, with its reports."""
        reports = tuple(r.model_copy(update={"age_s": self.now - began}) for began, r in run.reports)
        run.reports = []
        self.asked[run.asker.run_id] += expected is not None
        stored = GroupState.model_validate_json(self.group.model_dump_json())
        answer = PermitDecision(stored, run.asker, self.now).answer(
            PermitRequest(provider="provider", expected=expected, reports=reports)
        )
        self.group = stored
        run.last, run.free_calls, run.free_until = answer, answer.free_calls, self.now + answer.free_s
        return answer

    # --- what runs and endpoint do ---------------------------------------------------------

    def _at(self, time: float, happens: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._events, (time, self._count, happens))

    def _next_call(self, run: SimulatedRun) -> None:
        if run.free_calls and self.now < run.free_until:
            run.free_calls -= 1
            self._send(run, None)
            return
        if run.asker.rpm == 0 and (run.last is None or not run.last.limited):
            # As a drone: it asks in the background, and calls at once.
            self.ask(run, None)
            self._send(run, None)
            return
        permit = self.ask(run)
        if permit.granted:
            self._at(permit.at, lambda: self._send(run, permit.at))
        else:
            self._at(self.now + permit.wait_s, lambda: self._next_call(run))

    def _send(self, run: SimulatedRun, at: float | None) -> None:
        began = self.now
        self._at(began + self._random.uniform(0.01, self.delay_s), lambda: self._arrive(run, at, began))

    def _arrive(self, run: SimulatedRun, at: float | None, began: float) -> None:
        while self._window and self._window[0] <= self.now - self.window:
            self._window.popleft()
        if len(self._window) < self._limit_at(self.now):
            self._window.append(self.now)
            self.accepted.append((self.now, run.asker.run_id))
            rates = tuple(self._headers())
            report = CallReport(at=at, expected=TOKENS, used=TOKENS, rates=rates)
            self._at(self.now + self.latency_s, lambda: self._answered(run, began, report))
        else:
            self.refused.append((self.now, run.asker.run_id))
            free_in = self._window[len(self._window) - self._limit_at(self.now)] + self.window - self.now
            pause = free_in if self.names != "nothing" else None
            refusal = CallReport(
                at=at, expected=TOKENS, refused=True, retry_after_s=pause, rates=tuple(self._headers())
            )
            self._answered(run, began, refusal)

    def _answered(self, run: SimulatedRun, began: float, report: CallReport) -> None:
        run.reports.append((began, report))
        if report.refused or report.rates or (run.last is not None and run.last.limited):
            self.ask(run, None)
        self._at(self.now + run.thinks_s, lambda: self._next_call(run))

    def _headers(self) -> Iterator[Rate]:
        if self.names == "headers":
            limit = self._limit_at(self.now)
            yield Rate(kind="requests", limit=limit, remaining=max(0, limit - len(self._window)))

    def _limit_at(self, time: float) -> int:
        return next(
            (new for at, new in sorted(self.changes.items(), reverse=True) if time >= self.began + at), self.limit
        )
