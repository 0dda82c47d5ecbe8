"""What a group decides about one request: limits, pauses, the order of those who wait, and calls without asking."""

from __future__ import annotations

from control_plane.money.rates.permits import AHEAD, Asker, PermitDecision
from control_plane.money.rates.state import GroupState
from shared.rates import MOST, CallReport, Kind, ModelPermit, PermitRequest, Rate, Tokens, wait_text

T0 = 1_000_000.0
SOME = Tokens(input_tokens=1000, output_tokens=100)


def asker(run_id: str = "run", org: str = "a", *, rank: int = 1, model: str = "m", rpm: int = 0, tpm: int = 0) -> Asker:
    return Asker(run_id, org, f"provider {rpm} {tpm}", model, rpm, tpm, rank)


def ask(
    state: GroupState, who: Asker, at: float = T0, expected: Tokens | None = SOME, reports: tuple[CallReport, ...] = ()
) -> ModelPermit:
    return PermitDecision(state, who, at).answer(PermitRequest(provider="main", expected=expected, reports=reports))


def used_up(**limits: int) -> GroupState:
    """A group that used what its limit allows for now."""
    state = GroupState()
    while ask(state, asker("before", "before", **limits)).wait_s == 0:
        pass
    return state


def given(*answers: ModelPermit) -> int:
    """How many calls these answers allow, if each is another run's."""
    return sum(answer.granted + answer.free_calls for answer in answers)


def refused(pause: float | None = None, *rates: Rate) -> CallReport:
    return CallReport(refused=True, retry_after_s=pause, rates=rates)


def test_without_a_known_limit_calls_need_no_permit_and_the_provider_s_setting_limits_all_runs_together() -> None:
    answer = ask(GroupState(), asker(), expected=None)
    assert (answer.limited, answer.free_calls > 1000) == (False, True)
    state = GroupState()
    granted = [ask(state, asker(f"run{n}", rpm=60), T0 + n / 1000) for n in range(30)]
    assert (given(*granted), granted[-1].limit) == (10, 60)
    assert "position 25 of 25" in wait_text(granted[-1], "main")


def test_a_limit_in_headers_applies_to_every_run_of_the_group() -> None:
    kinds: tuple[Kind, ...] = ("requests", "tokens", "input_tokens", "output_tokens")
    for kind in kinds:
        state = GroupState()
        ask(state, asker("first"), expected=None, reports=(CallReport(used=SOME, rates=(Rate(kind=kind, limit=600),)),))
        answers = [ask(state, asker(f"run{n}")) for n in range(120)]
        assert not answers[-1].granted
        assert (answers[-1].kind, answers[-1].limit) == (kind, 600)


def test_the_smaller_one_of_two_settings_or_of_setting_and_headers_applies_to_its_model() -> None:
    state = GroupState()
    ask(state, asker(rpm=600), expected=None, reports=(CallReport(rates=(Rate(kind="requests", limit=12),)),))
    assert [ask(state, asker(rpm=600)).granted for _ in range(3)] == [True, False, False]
    assert ask(state, asker(rpm=600)).limit == 12
    assert ask(state, asker("other", rpm=600, model="another")).granted
    state = GroupState()
    first = ask(state, asker("one", rpm=12), expected=None)
    assert given(first, *(ask(state, asker(f"other{n}", rpm=6000)) for n in range(4))) == 2


def test_a_call_that_needs_more_than_a_minute_s_tokens_is_made_when_nothing_else_counts() -> None:
    state, large = GroupState(), Tokens(input_tokens=50_000)
    assert ask(state, asker(tpm=10_000), expected=large).granted
    assert not ask(state, asker(tpm=10_000), T0 + 30, expected=large).granted
    assert ask(state, asker(tpm=10_000), T0 + 62, expected=large).granted


def test_tokens_that_a_call_did_not_use_and_a_permit_that_was_not_used_are_available_again() -> None:
    state, large = GroupState(), Tokens(input_tokens=100, output_tokens=5_500)
    first = ask(state, asker(tpm=10_000), expected=large)
    assert not ask(state, asker("b", tpm=10_000), T0 + 1, expected=large).granted
    used = CallReport(at=first.at, expected=large, used=Tokens(input_tokens=100, output_tokens=10))
    ask(state, asker(tpm=10_000), T0 + 1, expected=None, reports=(used,))
    assert ask(state, asker("b", tpm=10_000), T0 + 1, expected=large).granted
    state = used_up(rpm=12)
    assert not ask(state, asker(rpm=12)).granted
    ask(state, asker(rpm=12), expected=None, reports=(CallReport(at=T0, expected=SOME, made=False),))
    assert ask(state, asker(rpm=12)).granted


def test_a_refusal_with_retry_after_stops_every_run_of_the_group_until_then() -> None:
    state = GroupState()
    ask(state, asker("one"), expected=None, reports=(refused(30.0),))
    other = ask(state, asker("other", "b", model="another"), T0 + 1)
    assert (other.granted, other.left_s >= 29, "429" in wait_text(other, "main")) == (False, True, True)
    assert ask(state, asker("other", "b", model="another"), T0 + 30.1).granted
    # A wish for an endless pause is bounded.
    ask(state, asker("one"), T0 + 60, expected=None, reports=(refused(86_400.0 * 300),))
    assert ask(state, asker("one"), T0 + 60 + 901).granted


def test_refusals_without_a_header_pause_longer_each_time_and_a_success_ends_that() -> None:
    state, at, pauses = GroupState(), T0, []
    for _ in range(4):
        ask(state, asker(), at, expected=None, reports=(refused(),))
        pauses.append(round(state.paused_until - at))
        at = state.paused_until + 2
    assert pauses == [2, 4, 8, 16]
    ask(state, asker(), at, expected=None, reports=(CallReport(used=SOME),))
    ask(state, asker(), at + 60, expected=None, reports=(refused(),))
    assert round(state.paused_until - at - 60) == 2


def test_what_others_use_of_the_same_key_is_left_to_them() -> None:
    state = GroupState()
    seen = Rate(kind="requests", limit=60, remaining=12)
    first = ask(state, asker(), expected=None, reports=(CallReport(used=SOME, rates=(seen,)),))
    assert given(first, *(ask(state, asker(f"run{n}")) for n in range(20))) == 4


def times_of_grants(state: GroupState, *askers: Asker, seconds: float) -> dict[str, float]:
    """Let runs ask, in this order and again whenever their time has come; return when each may make its call."""
    asks = {who: T0 + n / 1000 for n, who in enumerate(askers)}
    granted: dict[str, float] = {}
    while asks and (now := min(asks.values())) < T0 + seconds:
        who = min(asks, key=lambda each: asks[each])
        answer = ask(state, who, now)
        asks[who] = now + answer.wait_s
        if answer.granted:
            del asks[who]
            granted[who.run_id] = answer.at - T0
    return granted


def test_one_hundred_runs_of_an_organization_do_not_delay_the_only_one_of_another() -> None:
    many = [asker(f"many{n}", "a", rpm=12) for n in range(100)]
    times = times_of_grants(used_up(rpm=12), *many, asker("only", "b", rpm=12), seconds=60)
    assert sorted(times, key=lambda run: times[run]).index("only") <= 1


def test_a_more_urgent_run_goes_first_and_one_that_stopped_asking_delays_the_others_only_briefly() -> None:
    many = [asker(f"batch{n}", rank=0, rpm=12) for n in range(30)]
    times = times_of_grants(used_up(rpm=12), *many, asker("urgent", "a", rank=9, rpm=12), seconds=60)
    assert times["urgent"] == min(times.values())
    state = used_up(rpm=60)
    ask(state, asker("gone", rank=9, rpm=60))
    assert times_of_grants(state, asker("patient", rpm=60), seconds=20)["patient"] < 14


def test_calls_without_a_permit_count_when_they_are_reported() -> None:
    made = tuple(CallReport(age_s=n / 100, used=SOME) for n in range(10))
    answer = ask(GroupState(), asker(rpm=60), T0 + 0.1, reports=made)
    assert (answer.granted, answer.wait_s > AHEAD) == (False, True)


def test_a_call_without_a_permit_that_has_not_ended_is_left_to_its_run() -> None:
    state = GroupState()
    first = ask(state, asker("one", rpm=60))
    assert (first.granted, first.free_calls > 1) == (True, True)
    request = PermitRequest(provider="main", unended=first.free_calls)
    PermitDecision(state, asker("one", rpm=60), T0).answer(request)
    others = [ask(state, asker(f"other {n}", rpm=60)) for n in range(20)]
    assert given(*others) + first.free_calls + 1 == 10


def test_reports_with_odd_values_break_nothing() -> None:
    reports = [
        CallReport(at=0.0, expected=Tokens(input_tokens=MOST), used=Tokens()),
        CallReport(at=-1e300, used=SOME),
        CallReport(at=1e300, used=SOME),
        CallReport(age_s=86_400 * 366, used=Tokens(output_tokens=MOST)),
        CallReport(rates=(Rate(kind="requests", limit=0), Rate(kind="tokens", limit=0.5, remaining=0))),
        CallReport(rates=(Rate(kind="requests", limit=MOST, remaining=MOST, reset_s=86_400 * 366),)),
        CallReport(refused=True, retry_after_s=0.0),
        CallReport(refused=True, made=False, at=5.0),
    ]
    for report in reports:
        state = GroupState()
        ask(state, asker(rpm=60), expected=None, reports=(report,) * 5)
        stored = GroupState.model_validate_json(state.model_dump_json())
        assert ask(stored, asker(rpm=60), T0 + 1000).granted, report


def test_a_clock_that_is_set_back_or_forward_stops_no_call() -> None:
    state = used_up(rpm=60)
    ask(state, asker(rpm=60), T0 + 1, expected=None, reports=(refused(20.0),))
    assert ask(state, asker(rpm=60), T0 - 3600).granted
    assert ask(used_up(rpm=60), asker(rpm=60), T0 + 3600).granted
