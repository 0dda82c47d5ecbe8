"""Permits for model calls from the control plane, which shares an endpoint's limits between all runs of the fleet.

A request waits for an answer only where a limit applies and little is left; otherwise, calls are made at once and
reported in the background. Without an answer, the run continues at the last known rate: it never stops for this.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, Protocol

from drone.agent.protocols import Controls, Recorder
from drone.model.rate_headers import rates_in
from shared.clock import Clock
from shared.errors import FleetError
from shared.rates import LONGEST_PAUSE, MOST_REPORTS, CallReport, ModelPermit, PermitRequest, Rate, Tokens, wait_text
from shared.work_order import OrderProvider

log = logging.getLogger(__name__)

REPORTS_EVERY = 10.0
"""Seconds between two reports in the background while no limit is known."""
AWAY_SECONDS = 10.0
"""After a request without an answer, none waits for the next one for so long."""
LONGEST_RESET_PAUSE = 60.0
"""Seconds. A header names when all is available again, and the first part of it is earlier."""
_LOOK_UP_EVERY = 0.1


class PermitDesk(Protocol):
    """Gives permits: the control plane."""

    def permit(self, request: PermitRequest) -> ModelPermit:
        """Raises FleetError, NotFound if it knows no permits or not this run."""
        ...


Began = float
"""When a call began, by the monotonic clock."""


@dataclass
class _Standing:
    """What is known about one provider."""

    must_ask: bool
    last: ModelPermit | None = None
    free_until: float = 0.0
    free_calls: int = 0
    free_tokens: float = 0.0
    unended: int = 0
    """Calls that were made without a permit and have not ended."""
    away_until: float = 0.0
    called_at: float = float("-inf")
    sent_at: float = float("-inf")
    reports: list[tuple[Began, CallReport]] = field(default_factory=list)

    def may_call_freely(self, expected: Tokens, now: float) -> bool:
        """Use up one of the free calls, if there is one."""
        needed = expected.input_tokens + expected.output_tokens
        if self.must_ask or now > self.free_until or self.free_calls < 1 or self.free_tokens < needed:
            return False
        self.free_calls -= 1
        self.free_tokens -= needed
        return True

    def is_limited(self) -> bool:
        return self.must_ask or (self.last is not None and self.last.limited)

    def learn(self, answer: ModelPermit, now: float) -> None:
        """Take an answer in. Calls without a permit of which the control plane has no report count as free ones."""
        self.last, self.away_until = answer, 0.0
        unreported = self.unended + sum(report.at is None for _, report in self.reports)
        self.free_until = now + answer.free_s
        self.free_calls, self.free_tokens = max(0, answer.free_calls - unreported), answer.free_tokens
        self.must_ask = answer.limited and not self.free_calls

    def keep(self, *reports: tuple[Began, CallReport]) -> None:
        self.reports = [*self.reports, *reports][-MOST_REPORTS:]


@dataclass
class _PermitQuery:
    """One request to the control plane."""

    provider: str
    expected: Tokens | None
    answer: Future[ModelPermit | None] = field(default_factory=Future)


class FleetPermits:
    """Implements `drone.model.permits.Permits` for one run. Threads may share it."""

    def __init__(
        self, desk: PermitDesk, provider: OrderProvider, recorder: Recorder, controls: Controls, clock: Clock
    ) -> None:
        self.clock = clock
        self._desk = desk
        self._recorder = recorder
        self._controls = controls
        self._lock = threading.Lock()
        self._standings = {each.name: _Standing(each.limited) for each in (provider, *provider.fallbacks)}
        self._queries: SimpleQueue[_PermitQuery | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="permits", daemon=True)
        self._thread.start()

    def take(self, provider: str, expected: Tokens) -> FleetPermit:
        """See `Permits`."""
        standing = self._standings[provider]
        at = self._allowed(provider, standing, expected)
        with self._lock:
            standing.unended += at is None
        began = standing.called_at = self.clock.monotonic()
        return FleetPermit(self, provider, expected, at, began)

    def report(self, provider: str, began: Began, report: CallReport) -> bool:
        """Keep a report for the next request, and send it in the background if it should be known soon.

        Returns whether the next permit comes when it is time for a call.
        """
        standing = self._standings[provider]
        with self._lock:
            standing.keep((began, report))
            standing.unended -= report.at is None
            standing.must_ask |= report.refused
            now = self.clock.monotonic()
            available = now >= standing.away_until
            soon = report.refused or bool(report.rates) or standing.is_limited()
            due = available and (soon or now - standing.sent_at >= REPORTS_EVERY)
        if due:
            self._send(_PermitQuery(provider, None))
        return available

    def close(self) -> None:
        """Send what is left, and stop."""
        self._queries.put(None)
        self._thread.join()

    # --- one call ----------------------------------------------------------------------

    def _allowed(self, provider: str, standing: _Standing, expected: Tokens) -> float | None:
        """Return once a call may be made: the time that names its permit, None if it has none."""
        waited, at = False, None
        while self._needs_permit(provider, standing, expected):
            answer = self._answer(provider, standing, expected)
            if answer is None:
                waited = self._pace(standing)
                break
            if answer.granted:
                at = answer.at
                self._await_start(provider, answer, expected)
                break
            waited = True
            self._recorder.doing(wait_text(answer, provider), "provider")
            self._sleep(answer.wait_s)
        if waited:
            self._recorder.doing("waiting for the model")
        return at

    def _needs_permit(self, provider: str, standing: _Standing, expected: Tokens) -> bool:
        with self._lock:
            now = self.clock.monotonic()
            if standing.may_call_freely(expected, now):
                return False
            limited = standing.is_limited()
            due = not limited and now >= standing.away_until and now - standing.sent_at >= 1.0
        if due:
            # No limit is known: the call does not wait to learn whether there is one by now.
            self._send(_PermitQuery(provider, None))
        return limited

    def _answer(self, provider: str, standing: _Standing, expected: Tokens) -> ModelPermit | None:
        """Ask the control plane; None if it does not answer."""
        if self.clock.monotonic() < standing.away_until:
            return None
        query = _PermitQuery(provider, expected)
        self._send(query)
        while True:
            try:
                return query.answer.result(_LOOK_UP_EVERY)
            except TimeoutError:
                self._look_up(query)

    def _look_up(self, query: _PermitQuery) -> None:
        """Raise what the controls raise; a permit that comes after that is given back."""
        try:
            self._controls.check()
        except BaseException:
            if not query.answer.cancel() and query.answer.exception() is None:
                self._give_back(query, query.answer.result())
            raise

    def _await_start(self, provider: str, permit: ModelPermit, expected: Tokens) -> None:
        try:
            self._sleep(permit.wait_s)
        except BaseException:
            self.report(provider, self.clock.monotonic(), CallReport(at=permit.at, expected=expected, made=False))
            raise

    def _pace(self, standing: _Standing) -> bool:
        """Without the control plane: continue at the run's share of the last known limit. Returns whether it waited."""
        share = standing.last.share if standing.last is not None else 0.0
        left = standing.called_at + 60.0 / share - self.clock.monotonic() if share else 0.0
        if left <= 0:
            return False
        why = f"the control plane is unavailable; continuing with {share:.1f} calls per minute"
        self._recorder.doing(f"waiting for the model for about {left:.0f} s: {why}", "provider")
        self._sleep(left)
        return True

    def _sleep(self, seconds: float) -> None:
        until = self.clock.monotonic() + seconds
        while (left := until - self.clock.monotonic()) > 0:
            self._controls.check()
            self.clock.sleep(min(left, _LOOK_UP_EVERY))

    # --- requests, one after another, in a thread of their own ----------------------------

    def _send(self, query: _PermitQuery) -> None:
        with self._lock:
            self._standings[query.provider].sent_at = self.clock.monotonic()
        self._queries.put(query)

    def _work(self) -> None:
        while (query := self._queries.get()) is not None:
            try:
                self._answered(query, self._asked(query))
            except Exception as error:  # the body of a background loop: without it, the run would wait for ever
                log.exception("a request for a permit failed unexpectedly")
                with suppress(InvalidStateError):
                    query.answer.set_exception(error)

    def _answered(self, query: _PermitQuery, answer: ModelPermit | None) -> None:
        try:
            query.answer.set_result(answer)
        except InvalidStateError:  # canceled: no one waits for it any more
            self._give_back(query, answer)
            # At once: the run may have ended, and nothing that is sent now would be asked.
            self._asked(_PermitQuery(query.provider, None))

    def _give_back(self, query: _PermitQuery, answer: ModelPermit | None) -> None:
        if answer is not None and answer.granted:
            unused = CallReport(at=answer.at, expected=query.expected, made=False)
            self.report(query.provider, self.clock.monotonic(), unused)

    def _asked(self, query: _PermitQuery) -> ModelPermit | None:
        standing = self._standings[query.provider]
        with self._lock:
            if query.expected is None and not standing.reports and standing.is_limited():
                return None  # an earlier request took the report along
            began_reports, standing.reports = standing.reports, []
            now, unended = self.clock.monotonic(), standing.unended
            # The request gives back what may be used without asking: until its answer is there, every call asks.
            standing.free_calls = 0
        reports = tuple(report.model_copy(update={"age_s": max(0.0, now - began)}) for began, report in began_reports)
        try:
            asked = PermitRequest(
                provider=query.provider,
                expected=query.expected,
                reports=reports,
                unended=min(unended, MOST_REPORTS),
            )
            answer = self._desk.permit(asked)
        except FleetError as error:
            with self._lock:
                standing.reports = [*began_reports, *standing.reports][-MOST_REPORTS:]
                standing.away_until = self.clock.monotonic() + AWAY_SECONDS
            log.info("no permit for %s: %s", query.provider, error)
            return None
        with self._lock:
            standing.learn(answer, self.clock.monotonic())
        return answer


@dataclass(frozen=True)
class FleetPermit:
    """Implements `drone.model.permits.Permit`."""

    permits: FleetPermits
    provider: str
    expected: Tokens
    at: float | None
    """The time that names it; None: the call needed none."""
    began: Began

    def answered(self, headers: Mapping[str, Any], used: Tokens) -> None:
        rates = rates_in(headers, self.permits.clock.now())
        self._report(CallReport(at=self.at, expected=self.expected, used=used, rates=rates))

    def refused(self, headers: Mapping[str, Any], retry_after: float | None) -> bool:
        rates = rates_in(headers, self.permits.clock.now())
        pause = min(retry_after, LONGEST_PAUSE) if retry_after is not None else _until_reset(rates)
        return self._report(
            CallReport(at=self.at, expected=self.expected, refused=True, retry_after_s=pause, rates=rates)
        )

    def failed(self) -> None:
        self._report(CallReport(at=self.at, expected=self.expected))

    def unused(self) -> None:
        self._report(CallReport(at=self.at, expected=self.expected, made=False))

    def _report(self, report: CallReport) -> bool:
        return self.permits.report(self.provider, self.began, report)


def _until_reset(rates: tuple[Rate, ...]) -> float | None:
    """The pause that a refusal without `Retry-After` asks for: until something of what is used up is available."""
    resets = [rate.reset_s for rate in rates if rate.remaining is not None and rate.remaining < 1 and rate.reset_s]
    return min(max(resets), LONGEST_RESET_PAUSE) if resets else None
