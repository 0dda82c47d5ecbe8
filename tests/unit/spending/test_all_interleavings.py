"""Every order in which requests, answers, calls, crashes, losses and late reports of two runs can follow each other.

A model of the protocol between runs and the control plane, small enough to visit each of its states. The rule by which
money is granted is the real one. Amounts are whole units: a call costs between nothing and what was reserved for it.

In every state, what providers have charged and may still charge stays within the budget, and so does what the control
plane counts. From every state, one is reached in which nothing is reserved.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import pytest

from control_plane.spending.ledger import more_for

LIMIT = 4
LEAST, WANTED = 1, 2
CALLS = 3
"""Of both runs together."""
ASKS = ((2, 2), (3, 1))
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
    def reserved(self) -> int:
        return 0 if self.closed else self.known_granted - self.known_spent


class State(NamedTuple):
    runs: tuple[Run, ...]
    calls: int = CALLS

    def with_run(self, index: int, run: Run) -> State:
        """The runs are alike, so their order does not matter."""
        return self._replace(runs=tuple(sorted((*self.runs[:index], run, *self.runs[index + 1 :]), key=hash)))


@dataclass
class Account:
    """What `more_for` looks at."""

    left: int


@dataclass
class Protocol:
    """The steps that are possible in a state; `broken` leaves out one of the rules."""

    asks: tuple[int, int]
    broken: str = ""
    states: set[State] = field(default_factory=set)
    problem: str = ""

    def steps(self, state: State) -> Iterator[State]:
        for index, run in enumerate(state.runs):
            yield from (state.with_run(index, after) for after in self._drone(run))
            yield from (
                state.with_run(index, after)._replace(calls=state.calls - 1) for after in self._call(state, run)
            )
            for request in run.on_the_way:
                yield from self._received(state, index, request)
            yield from (state.with_run(index, after) for after in self._control_plane(run))

    def _drone(self, run: Run) -> Iterator[Run]:
        if (
            run.alive
            and not run.waiting
            and not run.in_flight
            and len(run.on_the_way) < REQUESTS
            and run.asked < run.asks
        ):
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

    def _call(self, state: State, run: Run) -> Iterator[Run]:
        free = run.granted - run.used
        if run.alive and not run.in_flight and state.calls and free >= LEAST:
            yield run._replace(in_flight=min(free, WANTED))

    def _received(self, state: State, index: int, request: Request) -> Iterator[State]:
        run = state.runs[index]
        arrived = run._replace(on_the_way=run.on_the_way - {request})
        if run.closed and self.broken != "grant after the end":
            yield state.with_run(index, arrived)
            return
        if request.number <= run.known_number and self.broken != "accept late requests":
            yield state.with_run(index, arrived)
            return
        kept = run.known_granted if request.keep is None else min(run.known_granted, max(request.keep, request.spent))
        known = arrived._replace(known_granted=kept, known_spent=request.spent, known_number=request.number)
        others = sum(each.reserved + each.known_spent for place, each in enumerate(state.runs) if place != index)
        account = Account(LIMIT - others - known.reserved - known.known_spent)
        more, short = more_for([account], request.least - kept, request.wanted - kept, ample=1)
        granted = known._replace(known_granted=kept + (0 if short else more))
        # An answer that is lost is one whose request the run gives up.
        yield state.with_run(index, granted._replace(answer=(request.number, granted.known_granted)))

    def _control_plane(self, run: Run) -> Iterator[Run]:
        if not run.closed:
            # Given up, whether it lives or not.
            assumed = run.known_spent if self.broken == "return all of a lost run" else run.known_granted
            yield run._replace(closed=True, known_spent=assumed)
        if run.report is not None and not run.reported:
            yield run._replace(closed=True, reported=True, known_spent=run.report)

    def visit(self) -> str:
        """Visit each state; return what is wrong in one of them, or ''."""
        first = State(tuple(Run(asks) for asks in self.asks))
        waiting, self.states = [first], {first}
        while waiting:
            state = waiting.pop()
            if problem := wrong_in(state):
                return problem
            new = [after for after in self.steps(state) if after not in self.states]
            self.states.update(new)
            waiting.extend(new)
        return ""

    def ends(self) -> list[State]:
        """The states that nothing follows."""
        return [state for state in self.states if not any(after != state for after in self.steps(state))]


def wrong_in(state: State) -> str:
    paid = sum(run.charged + run.in_flight for run in state.runs)
    if paid > LIMIT:
        return f"the providers may charge {paid} of {LIMIT}: {state}"
    counted = sum(run.reserved + run.known_spent for run in state.runs)
    return f"{counted} of {LIMIT} are counted: {state}" if counted > LIMIT else ""


@pytest.fixture(scope="module", params=ASKS, ids=str)
def protocol(request: pytest.FixtureRequest) -> Protocol:
    """All states, or those up to the first one that is wrong."""
    explored = Protocol(request.param)
    explored.problem = explored.visit()
    return explored


def test_in_no_order_of_events_is_more_spent_or_counted_than_the_budget(protocol: Protocol) -> None:
    assert protocol.problem == ""
    assert len(protocol.states) > 10_000


def test_no_reservation_stays_for_ever_and_all_that_was_charged_is_counted_in_the_end(protocol: Protocol) -> None:
    ends = protocol.ends()
    assert ends
    for state in ends:
        assert sum(run.reserved for run in state.runs) == 0
        assert all(run.known_spent >= run.charged for run in state.runs)


@pytest.mark.parametrize("broken", ["accept late requests", "return all of a lost run", "forget the call in flight"])
def test_the_exploration_notices_a_rule_that_is_left_out(broken: str) -> None:
    assert "of 4" in Protocol((3, 1), broken).visit()


def test_the_exploration_notices_money_that_is_granted_after_the_end() -> None:
    protocol = Protocol((2, 2), "grant after the end")
    assert protocol.visit() or any(run.reserved for state in protocol.ends() for run in state.runs)
