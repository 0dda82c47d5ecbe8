"""The money of one run: what it was granted, has spent, and has reserved for calls in flight.

A call is sent only after the most that it may cost was reserved here, within the order's cost limit and, where a budget
applies, within what the control plane has granted. Grants are requested in the background during the call before, so
that a call rarely waits for one. Decision 16 explains why this bounds what a fleet spends. All amounts are whole
nanodollars: what was granted for a call is enough for it, without a rounding error that says otherwise.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from enum import Enum
from typing import Literal, Protocol

from drone.runs.kept_spending import KeptSpending
from shared.amounts import charged, dollars, reserved
from shared.budgets import Allowance, AllowanceRequest, ModelPrice, Money
from shared.errors import Conflict, FleetError, LimitsExceeded, NotFound, Unreachable
from shared.outcome import ExitStatus, Outcome

log = logging.getLogger(__name__)

IDLE_SECONDS = 5.0
"""Without a call: then the run gives back what it holds, since it may wait for hours and others may need it now."""
BLOCK_NUSD = 50_000_000
"""Requested for the calls to come, if they may cost less: cheap calls share one request."""
CLOSE_SECONDS = 5.0
"""For a request that is under way when the run has ended."""
NEWS_SECONDS = 30.0
"""How often a run asks for budgets and prices that are new, if its calls need no money."""
UNANSWERED_SECONDS = 2.0
"""Until the control plane is asked again after it did not answer."""


class AllowanceSource(Protocol):
    """The control plane's account of this run."""

    def allow(self, request: AllowanceRequest) -> Allowance:
        """Report and request. Raises Unreachable, Conflict if the run is over, NotFound if it is unknown."""
        ...


class Asking(Enum):
    """Why the control plane is asked."""

    NOW = "a call waits for it"
    AHEAD = "for the next call"
    NOTHING = "the rest is given back"
    UNPRICED = "for a model without a known price"


@dataclass(frozen=True)
class Need:
    """What a call may cost: with the shortest useful answer, and with the longest one that it should have."""

    model: str
    least: int
    """Nanodollars."""
    wanted: int
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
        self._limit = charged(limit)
        self._before = charged(before)
        self._account = account
        self._kept = kept
        self._lock = threading.Condition()
        self._asking = threading.Lock()
        self._granted = 0
        self._unsure = False
        """The control plane may count more than `_granted`: it did not answer the last request."""
        self._spent = 0
        self._in_flight = 0
        self._bounded = money.bounded
        self._prices = money.prices
        self._requested = 0
        self._closed = False
        self._coming: Need | None = None
        self._news_at = 0.0
        """When the next request for news may be made; monotonic."""
        self._last: Need | None = None
        self._thread: threading.Thread | None = None

    @property
    def prices(self) -> tuple[ModelPrice, ...]:
        """The prices that the organization has set, as far as the control plane has reported them."""
        return self._prices

    @property
    def spent(self) -> float:
        """USD."""
        with self._lock:
            return dollars(self._spent)

    def reserve(self, need: Need) -> int:
        """Reserve for a call: between `least` and `wanted`.

        Raises MoneyAwaited if there will be enough money without a person, and MoneyUsedUp if there will not. The run
        then holds nothing but what its calls in flight may cost.
        """
        need = self._within_limit(need)
        with self._lock:
            account = self._account
            if account is None or not self._bounded or self._free >= need.wanted:
                return self._take(need, need.wanted)
        answer, amount = self._ask(account, need, Asking.NOW)
        if amount is not None:
            return amount
        if answer.refused:
            raise MoneyUsedUp("budget", answer.refused)
        if answer.wait_s is None:
            raise MoneyAwaited(
                UNANSWERED_SECONDS, f"the control plane granted {answer.granted:.9f} USD, which is too little"
            )
        raise MoneyAwaited(
            answer.wait_s, answer.waits_for or "other orders hold what is left of a budget", by_others=True
        )

    @property
    def limit(self) -> float:
        """The order's cost limit in USD; 0: none."""
        return dollars(self._limit)

    def raise_limit(self, usd: float) -> None:
        """Raise the order's cost limit, because a person said so."""
        with self._lock:
            self._limit += reserved(usd)

    def check_unpriced(self, model: str) -> None:
        """Raises MoneyUsedUp if a budget applies: nothing can be reserved for a model without a known price.

        Raises MoneyAwaited while it is not known whether one does.
        """
        account = self._account
        if account is None:
            return
        need = Need(model, 0, 0, ModelPrice(model=model))
        if not self._bounded:
            with self._lock:
                self._look_ahead(need)
            return
        answer, _ = self._ask(account, need, Asking.UNPRICED)
        if answer.refused:
            raise MoneyUsedUp("budget", answer.refused)

    def settle(self, amount: int, cost: int) -> None:
        """A call ended: `cost` was spent, and the rest of what was reserved for it is free."""
        with self._lock:
            self._in_flight -= amount
            self._spent += cost
            self._keep()

    def close(self) -> None:
        """Stop requesting money ahead. A request that is under way gets some seconds."""
        with self._lock:
            self._closed = True
            self._lock.notify_all()
        if self._thread is not None:
            self._thread.join(CLOSE_SECONDS)

    @property
    def _free(self) -> int:
        return self._granted - self._spent - self._in_flight

    def _within_limit(self, need: Need) -> Need:
        if not self._limit:
            return need
        with self._lock:
            spent = self._before + self._spent + self._in_flight
        left = self._limit - spent
        if left <= 0 or left < need.least:
            raise MoneyUsedUp(
                "limit",
                f"The cost limit was reached: {dollars(spent):.4f} of {self.limit:.2f} USD spent, "
                f"and the next model call may cost {dollars(need.least):.4f} USD.",
                dollars(max(-left, 0)) + 1.25 * dollars(need.least),
            )
        return Need(need.model, need.least, min(need.wanted, left), need.price)

    def _take(self, need: Need, amount: int) -> int:
        """Reserve it, and have more requested if the next call of this size would have to wait. Holds the lock."""
        self._in_flight += amount
        self._last = need
        self._keep()
        if self._account is not None:
            self._look_ahead(need)
        return amount

    def _look_ahead(self, need: Need) -> None:
        """Have money requested for the next call, or at least budgets and prices that are new. Holds the lock."""
        if self._free < need.wanted:
            self._coming = need
        elif not need.wanted and self._coming is None and time.monotonic() >= self._news_at:
            # Nothing has to be granted, so that no other request may ever be made.
            self._coming, self._news_at = need, time.monotonic() + NEWS_SECONDS
        self._begin_requests()
        self._lock.notify_all()

    def _begin_requests(self) -> None:
        """Start the thread for them, once. Holds the lock."""
        if self._thread is None and not self._closed:
            self._thread = threading.Thread(target=self._requests, name="allowance", daemon=True)
            self._thread.start()

    def _requests(self) -> None:
        """Request money ahead, and give back what is not used, in a thread of its own."""
        while (account := self._account) is not None:
            with self._lock:
                self._lock.wait_for(lambda: self._coming is not None or self._closed, IDLE_SECONDS)
                if self._closed:
                    return
                need, self._coming = self._coming, None
                idle = need is None and not self._in_flight and (self._unsure or self._granted > self._spent)
            try:
                if need is not None:
                    self._exchange(account, need, Asking.AHEAD)
                elif idle and self._last is not None:
                    self._exchange(account, self._last, Asking.NOTHING)
            except FleetError as error:
                # The next call asks again, and waits if it has to.
                log.info("no money was granted ahead: %s", error)

    def _ask(self, account: AllowanceSource, need: Need, how: Asking) -> tuple[Allowance, int | None]:
        try:
            return self._exchange(account, need, how)
        except Unreachable as error:
            why = f"the control plane does not answer, and the granted money is used up ({error})"
            raise MoneyAwaited(UNANSWERED_SECONDS, why) from error
        except (Conflict, NotFound) as error:
            raise MoneyAwaited(UNANSWERED_SECONDS, "the fleet has given up this run") from error

    def _exchange(self, account: AllowanceSource, need: Need, how: Asking) -> tuple[Allowance, int | None]:
        """Report what was spent, request what is needed, and take over the answer; one request at a time.

        Returns the answer, and what was reserved for a call that waited for it: no other thread takes it first.
        """
        with self._asking:
            try:
                answer = account.allow(self._request(need, how))
            except Unreachable:
                self._note_unanswered(need)
                raise
            granted = charged(answer.granted)
            if self._kept is not None:
                self._kept.granted(granted)
            with self._lock:
                self._granted, self._unsure = granted, False
                self._bounded, self._prices = answer.bounded, answer.prices
                return answer, self._taken(need) if how is Asking.NOW and not answer.refused else None

    def _note_unanswered(self, need: Need) -> None:
        """A request may have arrived, or not: once idle, the run asks until it knows that it holds nothing."""
        with self._lock:
            self._unsure, self._last = True, self._last or need
            self._begin_requests()

    def _taken(self, need: Need) -> int | None:
        """What is reserved for the call that waited, if it is enough. Holds the lock."""
        if not self._bounded:
            return self._take(need, need.wanted)
        return self._take(need, min(self._free, need.wanted)) if self._free >= need.least else None

    def _request(self, need: Need, how: Asking) -> AllowanceRequest:
        """What to ask for. A run that waits keeps only what its calls in flight need, or two could wait for ever."""
        with self._lock:
            used = self._spent + self._in_flight
            after = max(need.wanted, BLOCK_NUSD) if need.wanted else 0
            more = {Asking.NOW: need.wanted + after, Asking.AHEAD: after}.get(how, 0)
            keep = None
            if how in {Asking.NOW, Asking.NOTHING}:
                # From here on, so that no other thread uses it meanwhile.
                keep = self._granted = min(self._granted, used)
            self._requested += 1
            return AllowanceRequest(
                number=self._requested,
                model=need.model,
                spent=dollars(self._spent),
                least=dollars(used + need.least if how is Asking.NOW else used),
                wanted=dollars(used + more),
                keep=None if keep is None else dollars(keep),
                priced=how is not Asking.UNPRICED,
                price=need.price,
            )

    def _keep(self) -> None:
        if self._kept is not None:
            self._kept.write(self._spent, self._in_flight)


class MoneyAwaited(Exception):
    """A call has no money now, and will have it without a person. The run holds none while it waits."""

    def __init__(self, seconds: float, why: str, *, by_others: bool = False) -> None:
        super().__init__(why)
        self.seconds = seconds
        """Ask again after so many."""
        self.why = why
        self.by_others = by_others
        """Other runs hold what is left of a budget."""


class MoneyUsedUp(LimitsExceeded):
    """A call may cost more than is left."""

    def __init__(self, about: Literal["limit", "budget"], reason: str, least: float = 0.0) -> None:
        super().__init__(outcome=Outcome(ExitStatus.COST_LIMIT, reason))
        self.about = about
        self.reason = reason
        self.least = least
        """USD that suffice for the shortest useful answer, to a question that is a little longer."""
