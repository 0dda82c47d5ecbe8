"""Every order in which requests, answers, calls, crashes, losses and late reports of two runs can follow each other.

A model of the protocol between runs and the control plane, small enough to visit each of its states. The rule by which
money is granted is the real one. Amounts are whole units: a call costs between nothing and what was reserved for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import pytest

from control_plane.money.spending.ledger import more_for

LIMIT = 4
LEAST, WANTED = 1, 2
CALLS = 3
"""Of both runs together."""
ASKS = 3, 1
"""Requests of each of the two runs."""
REQUESTS = 2
"""Of one run that may be under way: one was given up by its sender, and arrives late."""


class Request(NamedTuple):
    number: int
    spent: int
    keep: int | None
    least: int
    wanted: int


class Run(NamedTuple):
    """A run as it sees itself, what is on its way, and how the control plane sees it."""

    asks: int
    """Requests that it may make."""
    granted: int = 0
    spent: int = 0
    in_flight: int = 0
    alive: bool = True
    asked: int = 0
    waiting: bool = False
    """Its last request has no answer yet."""
    on_the_way: frozenset[Request] = frozenset()
    answer: tuple[int, int] | None = None
    """The number of a request, and what it was granted in total."""
    report: int | None = None
    """What it cost, from the moment at which somebody knows that it ended."""
    charged: int = 0
    """By the provider."""
    known_granted: int = 0
    known_spent: int = 0
    known_number: int = 0
    closed: bool = False
    reported: bool = False

    @property
    def used(self) -> int:
        return self.spent + self.in_flight

    @property
    def paid(self) -> int:
        """What the provider has charged, and may still charge."""
        return self.charged + self.in_flight

    @property
    def counted(self) -> int:
        """What the control plane counts."""
        return self.reserved + self.known_spent

    @property
    def reserved(self) -> int:
        return 0 if self.closed else self.known_granted - self.known_spent


@dataclass
class Account:
    """What `more_for` looks at."""

    left: int


State = tuple[int, int, int]
"""The numbers of the two runs, the lower one first as they are alike, and how many calls are left."""


@dataclass
class Protocol:
    """The steps that are possible in a state; `broken` leaves out one of the rules. Equal runs have one number."""

    broken: str = ""
    runs: list[Run] = field(default_factory=list)
    numbers: dict[Run, int] = field(default_factory=dict)
    known: dict[tuple[int, int, bool], list[tuple[int, int]]] = field(default_factory=dict)

    def number(self, run: Run) -> int:
        if run not in self.numbers:
            self.numbers[run] = len(self.runs)
            self.runs.append(run)
        return self.numbers[run]

    def steps(self, state: State) -> Iterator[State]:
        *both, calls = state
        for number, other in (both, both[::-1]):
            for after, used in self._after(number, self.runs[other].counted, calls > 0):
                yield min(after, other), max(after, other), calls - used

    def _after(self, number: int, others: int, may_call: bool) -> list[tuple[int, int]]:
        """What a run can become, with the calls that it takes, while so much is counted of the other one."""
        asked = number, others, may_call
        if asked not in self.known:
            run = self.runs[number]
            free = [*self._drone(run), *self._control_plane(run)]
            free += [self._received(run, others, request) for request in run.on_the_way]
            found = [(self.number(each), 0) for each in free]
            self.known[asked] = found + [(self.number(each), 1) for each in self._call(run) if may_call]
        return self.known[asked]

    def _drone(self, run: Run) -> Iterator[Run]:
        may_ask = run.alive and not run.waiting and not run.in_flight and len(run.on_the_way) < REQUESTS
        if may_ask and run.asked < run.asks:
            yield from self._asks(run)
        if run.answer is not None:
            number, granted = run.answer
            heard = run._replace(answer=None)
            yield heard._replace(granted=granted, waiting=False) if number == run.asked and run.waiting else heard
        if run.waiting:
            yield run._replace(waiting=False)  # it gave up waiting for the answer
        if run.in_flight:
            for cost in (0, run.in_flight):
                done = run._replace(in_flight=0, charged=run.charged + cost)
                yield done._replace(spent=run.spent + cost)
                # The run dies during the call. Its file has what the call may have cost.
                report = run.spent + (0 if self.broken == "forget the call in flight" else run.in_flight)
                yield done._replace(alive=False, report=report, waiting=False)
        elif run.alive:
            yield run._replace(alive=False, report=run.spent, waiting=False)

    def _asks(self, run: Run) -> Iterator[Run]:
        """For a call, keeping nothing else; and ahead of one."""
        number = run.asked + 1
        now = Request(number, run.spent, run.used, run.used + LEAST, run.used + WANTED)
        ahead = Request(number, run.spent, None, run.used, run.used + WANTED)
        asking = run._replace(asked=number, waiting=True)
        yield asking._replace(granted=min(run.granted, run.used), on_the_way=run.on_the_way | {now})
        yield asking._replace(on_the_way=run.on_the_way | {ahead})

    def _call(self, run: Run) -> Iterator[Run]:
        free = run.granted - run.used
        if run.alive and not run.in_flight and free >= LEAST:
            yield run._replace(in_flight=min(free, WANTED))

    def _received(self, run: Run, others: int, request: Request) -> Run:
        arrived = run._replace(on_the_way=run.on_the_way - {request})
        if run.closed and self.broken != "grant after the end":
            return arrived
        if request.number <= run.known_number and self.broken != "accept late requests":
            return arrived
        kept = run.known_granted if request.keep is None else min(run.known_granted, max(request.keep, request.spent))
        known = arrived._replace(known_granted=kept, known_spent=request.spent, known_number=request.number)
        account = Account(LIMIT - others - known.counted)
        more, short = more_for([account], request.least - kept, request.wanted - kept, ample=1)
        granted = known._replace(known_granted=kept + (0 if short else more))
        # An answer that is lost is one whose request the run gives up.
        return granted._replace(answer=(request.number, granted.known_granted))

    def _control_plane(self, run: Run) -> Iterator[Run]:
        if not run.closed:
            # Given up, whether it lives or not.
            assumed = run.known_spent if self.broken == "return all of a lost run" else run.known_granted
            yield run._replace(closed=True, known_spent=assumed)
        if run.report is not None and not run.reported:
            yield run._replace(closed=True, reported=True, known_spent=run.report)

    def visit(self) -> tuple[int, str]:
        """Visit each state: how many there are, and what is wrong in the first that is wrong."""
        one, other = sorted(map(self.number, map(Run, ASKS)))
        waiting, seen = [(one, other, CALLS)], {(one, other, CALLS)}
        while waiting:
            state = waiting.pop()
            after = set(self.steps(state)) - {state}
            if problem := self._wrong(state, is_end=not after):
                return len(seen), problem
            waiting.extend(after - seen)
            seen |= after
        return len(seen), ""

    def _wrong(self, state: State, *, is_end: bool) -> str:
        runs = [self.runs[number] for number in state[:2]]
        if sum(run.paid for run in runs) > LIMIT or sum(run.counted for run in runs) > LIMIT:
            return f"more than the budget is spent or counted: {runs}"
        if is_end and any(run.reserved or run.known_spent < run.charged for run in runs):
            return f"in the end something is reserved, or was charged and is not counted: {runs}"
        return ""


def test_in_no_order_of_events_is_more_spent_or_counted_than_the_budget_or_anything_reserved_for_ever() -> None:
    states, problem = Protocol().visit()
    assert (states > 100_000, problem) == (True, "")


@pytest.mark.parametrize(
    "broken", ["accept late requests", "return all of a lost run", "forget the call in flight", "grant after the end"]
)
def test_the_exploration_notices_a_rule_that_is_left_out(broken: str) -> None:
    assert Protocol(broken).visit()[1]
