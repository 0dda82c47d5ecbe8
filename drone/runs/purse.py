"""The money of one run: what it was granted, has spent, and has reserved for calls in flight.

A call is sent only after the most that it may cost was reserved here, within the order's cost limit and, where a budget
applies, within what the control plane has granted. Grants are requested in the background during the call before, so
that a call rarely waits for one. Decision 16 explains why this bounds what a fleet spends.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Literal, Protocol

from drone.runs.kept_spending import KeptSpending
from shared.budgets import Allowance, AllowanceRequest, ModelPrice, Money
from shared.errors import Conflict, FleetError, LimitsExceeded, NotFound, Unreachable
from shared.outcome import ExitStatus, Outcome

log = logging.getLogger(__name__)

IDLE_SECONDS = 30.0
"""Without a call: then the run gives back what it holds, since a command may take hours and others may wait."""
BLOCK_USD = 0.05
"""Requested for the calls to come, if they may cost less: cheap calls share one request."""
CLOSE_SECONDS = 5.0
"""For a request that is under way when the run has ended."""
LEAST_USD = 1e-9
"""Smaller rests are rounding errors of sums."""
UNANSWERED_SECONDS = 2.0
"""Until the control plane is asked again after it did not answer."""


class AllowanceSource(Protocol):
    """The control plane's account of this run."""

    def allow(self, request: AllowanceRequest) -> Allowance:
        """Report and request. Raises Unreachable, Conflict if the run is over, NotFound from older control planes."""
        ...


class Asking(Enum):
    """Why the control plane is asked."""

    NOW = "a call waits for it"
    AHEAD = "for the next call"
    NOTHING = "the rest is given back"
    UNPRICED = "for a model without a known price"


@dataclass(frozen=True)
class Need:
    """What a call may cost: with the shortest useful answer, and with the longest one that it should have. USD."""

    model: str
    least: float
    wanted: float
    price: ModelPrice


class Purse:
    """Threads may share it."""

    def __init__(
        self,
        limit: float,
        before: float,
        account: AllowanceSource | None,
        money: Money,
        kept: KeptSpending | None = None,
    ) -> None:
        """`limit`: the order's cost limit in USD, 0 for none, against which `before` counts already.

        `account` None: there is no control plane, and only the limit applies. `kept` survives a crash of the run.
        """
        self._limit = limit
        self._before = before
        self._account = account
        self._kept = kept
        self._lock = threading.Condition()
        self._asking = threading.Lock()
        self._granted = 0.0
        self._spent = 0.0
        self._in_flight = 0.0
        self._bounded = money.bounded
        self._prices = money.prices
        self._requested = 0
        self._closed = False
        self._coming: Need | None = None
        self._last: Need | None = None
        self._thread: threading.Thread | None = None

    @property
    def prices(self) -> tuple[ModelPrice, ...]:
        """The prices that the organization has set, as far as the control plane has reported them."""
        return self._prices

    @property
    def spent(self) -> float:
        with self._lock:
            return self._spent

    def reserve(self, need: Need, pause: Callable[[float, str], None]) -> float:
        """Reserve for a call: between `least` and `wanted`. `pause` waits, and says why; it may raise.

        Raises MoneyUsedUp if there is not enough money, and will not be without a person.
        """
        need = self._within_limit(need)
        while True:
            with self._lock:
                free = self._granted - self._spent - self._in_flight
                account = self._account
                if account is None or not self._bounded or free >= need.wanted:
                    return self._take(need, need.wanted)
            answer = self._ask(account, need, pause, Asking.NOW)
            with self._lock:
                free = self._granted - self._spent - self._in_flight
                if free >= need.least and self._bounded:
                    return self._take(need, min(free, need.wanted))
            if answer is not None and answer.refused:
                raise MoneyUsedUp("budget", answer.refused)
            if answer is not None and self._bounded:
                pause(UNANSWERED_SECONDS if answer.wait_s is None else answer.wait_s, answer.waits_for)

    @property
    def limit(self) -> float:
        """The order's cost limit in USD; 0: none."""
        return self._limit

    def raise_limit(self, usd: float) -> None:
        """Raise the order's cost limit, because a person said so."""
        with self._lock:
            self._limit += usd

    def check_unpriced(self, model: str, pause: Callable[[float, str], None]) -> None:
        """Raises MoneyUsedUp if a budget applies: nothing can be reserved for a model without a known price."""
        while (account := self._account) is not None and self._bounded:
            answer = self._ask(account, Need(model, 0.0, 0.0, ModelPrice(model=model)), pause, Asking.UNPRICED)
            if answer is not None and answer.refused:
                raise MoneyUsedUp("budget", answer.refused)

    def settle(self, reserved: float, cost: float) -> None:
        """A call ended: `cost` was spent, and the rest of what was reserved for it is free."""
        with self._lock:
            rest = self._in_flight - reserved
            self._in_flight = rest if rest > LEAST_USD else 0.0
            self._spent += cost
            self._keep()

    def close(self) -> None:
        """Stop requesting money ahead. A request that is under way gets some seconds."""
        with self._lock:
            self._closed = True
            self._lock.notify_all()
        if self._thread is not None:
            self._thread.join(CLOSE_SECONDS)

    def _within_limit(self, need: Need) -> Need:
        if not self._limit:
            return need
        with self._lock:
            spent = self._before + self._spent + self._in_flight
        left = self._limit - spent
        if left <= 0 or left < need.least:
            raise MoneyUsedUp(
                "limit",
                f"The cost limit was reached: {spent:.4f} of {self._limit:.2f} USD spent, "
                f"and the next model call may cost {need.least:.4f} USD.",
                1.25 * need.least,
            )
        return Need(need.model, need.least, min(need.wanted, left), need.price)

    def _take(self, need: Need, amount: float) -> float:
        """Reserve it, and have more requested if the next call of this size would have to wait. Holds the lock."""
        self._in_flight += amount
        self._last = need
        self._keep()
        if self._account is not None and self._granted - self._spent - self._in_flight < need.wanted and need.wanted:
            self._coming = need
            if self._thread is None:
                self._thread = threading.Thread(target=self._requests, name="allowance", daemon=True)
                self._thread.start()
            self._lock.notify_all()
        return amount

    def _requests(self) -> None:
        """Request money ahead, and give back what is not used, in a thread of its own."""
        while (account := self._account) is not None:
            with self._lock:
                self._lock.wait_for(lambda: self._coming is not None or self._closed, IDLE_SECONDS)
                if self._closed:
                    return
                need, self._coming = self._coming, None
                idle = need is None and not self._in_flight and self._granted > self._spent
            try:
                if need is not None:
                    self._exchange(account, need, Asking.AHEAD)
                elif idle and self._last is not None:
                    self._exchange(account, self._last, Asking.NOTHING)
            except FleetError as error:
                # The next call asks again, and waits if it has to.
                log.info("no money was granted ahead: %s", error)

    def _ask(
        self, account: AllowanceSource, need: Need, pause: Callable[[float, str], None], how: Asking
    ) -> Allowance | None:
        try:
            return self._exchange(account, need, how)
        except Unreachable as error:
            pause(UNANSWERED_SECONDS, f"the control plane does not answer, and the granted money is used up ({error})")
        except Conflict:
            pause(UNANSWERED_SECONDS, "the fleet has given up this run")
        return None

    def _exchange(self, account: AllowanceSource, need: Need, how: Asking) -> Allowance | None:
        """Report what was spent, request what is needed, and take over the answer; one request at a time."""
        with self._asking:
            try:
                answer = account.allow(self._request(need, how))
            except NotFound:
                self._account = None
                return None
            if self._kept is not None and answer.granted > self._granted:
                self._kept.granted(answer.granted)
            with self._lock:
                self._granted = answer.granted
                self._bounded, self._prices = answer.bounded, answer.prices
            return answer

    def _request(self, need: Need, how: Asking) -> AllowanceRequest:
        """What to ask for. A run that waits keeps only what its calls in flight need, or two could wait for ever."""
        with self._lock:
            used = self._spent + self._in_flight
            after = max(need.wanted, BLOCK_USD) if need.wanted else 0.0
            more = {Asking.NOW: need.wanted + after, Asking.AHEAD: after}.get(how, 0.0)
            keep = None
            if how in {Asking.NOW, Asking.NOTHING}:
                # From here on, so that no other thread uses it meanwhile.
                keep = self._granted = min(self._granted, used)
            self._requested += 1
            return AllowanceRequest(
                number=self._requested,
                model=need.model,
                spent=self._spent,
                least=used + need.least if how is Asking.NOW else used,
                wanted=used + more,
                keep=keep,
                priced=how is not Asking.UNPRICED,
                price=need.price,
            )

    def _keep(self) -> None:
        if self._kept is not None:
            self._kept.write(self._spent, self._in_flight)


class MoneyUsedUp(LimitsExceeded):
    """A call may cost more than is left."""

    def __init__(self, about: Literal["limit", "budget"], reason: str, least: float = 0.0) -> None:
        super().__init__(outcome=Outcome(ExitStatus.COST_LIMIT, reason))
        self.about = about
        self.reason = reason
        self.least = least
        """USD that suffice for the shortest useful answer, to a question that is a little longer."""
