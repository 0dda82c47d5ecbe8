"""When a run may call its model, by the answers of the control plane, and without them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from drone.agent.in_memory import KeptEvents, QuietControls
from drone.runs.fleet_permits import FleetPermits
from shared.errors import FleetError, FleetFault, Preempted, Unreachable
from shared.rates import UNLIMITED, CallReport, ModelPermit, PermitRequest, Rate, Tokens
from shared.work_order import OrderProvider
from tests.support import wait_until
from tests.support.clocks import HandClock

SOME = Tokens(input_tokens=1000, output_tokens=100)
LIMITED = {"x-ratelimit-limit-requests": "60", "x-ratelimit-remaining-requests": "0"}


class Run:
    """A run, and its control plane, which gives these answers one after another, and the last again and again."""

    def __init__(self, *answers: ModelPermit | FleetError, limited: bool) -> None:
        self.answers = list(answers)
        self.requests: list[PermitRequest] = []
        self.held = threading.Event()
        self.held.set()
        self.clock, self.recorder, self.controls = HandClock(), KeptEvents(), QuietControls()
        provider = OrderProvider(name="main", model="openai/x", limited=limited)
        self.permits = FleetPermits(self, provider, self.recorder, self.controls, self.clock)

    def permit(self, request: PermitRequest) -> ModelPermit:
        self.requests.append(request)
        assert self.held.wait(60)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, FleetError):
            raise answer
        return answer

    @property
    def reports(self) -> list[CallReport]:
        return [report for request in self.requests for report in request.reports]

    def calls(self, **headers: str) -> float:
        """One call that is answered; returns how long it waited."""
        before = self.clock.monotonic()
        permit = self.permits.take("main", SOME)
        waited = self.clock.monotonic() - before
        permit.answered(headers, SOME)
        return waited


@pytest.fixture
def run() -> Iterator[Callable[..., Run]]:
    """`run(*answers, limited=True)`: a run whose control plane gives these answers."""
    made: list[Run] = []

    def make(*answers: ModelPermit | FleetError, limited: bool = True) -> Run:
        made.append(Run(*answers, limited=limited))
        return made[-1]

    yield make
    for each in made:
        each.permits.close()


Make = Callable[..., Run]


def test_without_a_known_limit_no_call_waits_for_an_answer(run: Make) -> None:
    running = run(UNLIMITED, limited=False)
    assert [running.calls() for _ in range(20)] == [0.0] * 20
    wait_until(lambda: len(running.requests) > 0)
    assert all(request.expected is None for request in running.requests)
    # Headers that name a limit are reported at once.
    told = run(UNLIMITED, limited=False)
    told.calls(**LIMITED)
    wait_until(lambda: bool(told.reports))
    assert told.reports[0].rates == (Rate(kind="requests", limit=60, remaining=0),)
    assert told.reports[0].used == SOME


def test_a_limited_providers_first_call_waits_for_its_permit_and_says_for_how_long_and_why(run: Make) -> None:
    wait = ModelPermit(wait_s=8.0, left_s=12.0, limit=60, position=3, waiting=9, urgent=1)
    running = run(wait, ModelPermit(granted=True, at=5.0, wait_s=1.2))
    said: list[str] = []
    running.recorder.doing = lambda text, waits_for="": said.append(f"{waits_for}: {text}")  # type: ignore[method-assign]
    assert running.calls() == pytest.approx(9.2)
    assert running.requests[0].expected == SOME
    assert said[0] == (
        "provider: waiting for provider main for about 12 s: 60 requests per minute are allowed, "
        "position 3 of 9 (1 more urgent)"
    )
    assert said[-1] == ": waiting for the model"


def test_a_run_that_is_to_end_stops_waiting_and_gives_its_permit_back(run: Make) -> None:
    running = run(ModelPermit(granted=True, at=5.0, wait_s=1.2))
    running.controls.signal = Preempted()
    with pytest.raises(Preempted):
        running.calls()
    wait_until(lambda: running.reports == [CallReport(at=5.0, expected=SOME, made=False)])


def test_a_permit_that_comes_after_its_run_has_ended_is_given_back(run: Make) -> None:
    running = run(ModelPermit(granted=True, at=5.0, wait_s=1.2))
    running.held.clear()
    running.controls.signal = Preempted()
    with pytest.raises(Preempted):
        running.calls()
    threading.Timer(0.1, running.held.set).start()
    running.permits.close()
    assert running.reports == [CallReport(at=5.0, expected=SOME, made=False)]


def test_a_permit_that_comes_while_its_run_learns_that_it_is_to_end_is_given_back(
    run: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = run(ModelPermit(granted=True, at=5.0))
    running.held.clear()

    def ends() -> None:
        # Requests are sent one after another: with the second one, the first has its answer.
        running.permits.report("main", running.clock.monotonic(), CallReport(at=4.0, refused=True))
        running.held.set()
        wait_until(lambda: len(running.requests) == 2)
        raise Preempted

    monkeypatch.setattr(running.controls, "check", ends)
    with pytest.raises(Preempted):
        running.calls()
    running.permits.close()
    assert running.reports[-1] == CallReport(at=5.0, expected=SOME, made=False)


def test_calls_that_are_free_need_no_permit_until_they_or_their_time_are_used_up(run: Make) -> None:
    free = ModelPermit(granted=True, at=1.0, free_s=10, free_calls=2, free_tokens=10_000)
    running = run(free, ModelPermit(granted=True, at=2.0))
    taken = [running.permits.take("main", SOME) for _ in range(4)]
    assert [permit.at for permit in taken] == [1.0, None, None, 2.0]
    assert [request.unended for request in running.requests] == [0, 2]
    late = run(free)
    late.permits.take("main", SOME)
    late.clock.sleep(11)
    assert late.permits.take("main", SOME).at == 1.0
    # A call that was not reported yet counts as one of those that are free.
    one = run(*(ModelPermit(granted=True, at=at, free_s=10, free_calls=1, free_tokens=10_000) for at in (1, 2, 3)))
    assert [one.permits.take("main", SOME).at for _ in range(4)] == [1, None, 2, 3]


def test_no_call_is_free_while_a_request_takes_back_what_may_be_used_freely(run: Make) -> None:
    """The control plane may give it to others before the answer is there."""
    running = run(ModelPermit(granted=True, at=1.0, free_s=10, free_calls=2, free_tokens=10_000))
    first = running.permits.take("main", SOME)
    running.held.clear()
    first.answered({}, SOME)
    wait_until(lambda: len(running.requests) == 2)
    running.answers = [ModelPermit(granted=True, at=2.0)]
    threading.Timer(0.1, running.held.set).start()
    assert running.permits.take("main", SOME).at == 2.0


def test_the_pause_of_a_refusal_is_bounded_and_may_come_from_its_headers(run: Make) -> None:
    resets = {**LIMITED, "x-ratelimit-reset-requests": "7s"}
    for headers, wished, pause in (({}, float("inf"), 900.0), ({}, 0.0, 0.0), (resets, None, 7.0)):
        running = run(ModelPermit(granted=True))
        running.permits.take("main", SOME).refused(headers, wished)
        wait_until(lambda run=running: bool(run.reports))
        assert running.reports[0].retry_after_s == pause


def test_without_an_answer_calls_continue_at_the_last_known_rate_or_at_once(run: Make) -> None:
    for error in (Unreachable("away", code="E-NO-SERVER"), FleetFault("a bug", code="E-HTTP-500")):
        running = run(ModelPermit(granted=True, at=1.0, share=10.0), error)
        running.calls()
        wait_until(lambda run=running: len(run.requests) >= 2)
        assert [running.calls() for _ in range(2)] == pytest.approx([6.0, 6.0])
        assert not running.permits.take("main", SOME).refused({}, 1.0)
    running = run(Unreachable("away", code="E-NO-SERVER"))
    assert [running.calls() for _ in range(3)] == [0.0] * 3


def test_after_a_refusal_the_next_call_needs_a_permit_and_the_report_comes_first(run: Make) -> None:
    running = run(UNLIMITED, UNLIMITED, UNLIMITED, ModelPermit(granted=True, at=7.0, wait_s=1.0), limited=False)
    running.calls()
    assert running.permits.take("main", SOME).refused({}, 30.0)
    running.permits.take("main", SOME)
    wait_until(lambda: bool(running.reports))
    refusal = next(report for report in running.reports if report.refused)
    assert refusal.retry_after_s == 30.0
    assert any(request.expected is not None for request in running.requests)


def test_reports_are_kept_until_the_control_plane_answers_again(run: Make) -> None:
    running = run(Unreachable("away", code="E-NO-SERVER"), ModelPermit(granted=True))
    running.calls()
    running.clock.sleep(20)
    running.calls()
    wait_until(lambda: len(running.requests) >= 2)
    assert len(running.requests[1].reports) == 1
    assert running.requests[1].reports[0].age_s == pytest.approx(20)
