"""How long a run may act without having heard of the control plane."""

from __future__ import annotations

from drone.runs.lease import OFFLINE_GRACE_SECONDS, VALID_SECONDS, WAKING_SECONDS, RunLease
from tests.support.clocks import HandClock


def test_a_renewal_counts_from_when_it_left_and_an_older_one_moves_nothing_back() -> None:
    clock = HandClock()
    lease = RunLease(clock)
    clock.sleep(30)
    lease.renewed(left_at=20)
    lease.renewed(left_at=10)
    assert lease.valid_until == 20 + VALID_SECONDS


def test_past_its_end_the_lease_is_not_valid_and_ten_minutes_later_the_run_is_abandoned() -> None:
    clock = HandClock()
    lease = RunLease(clock)
    clock.sleep(VALID_SECONDS)
    assert not lease.valid()
    clock.sleep(OFFLINE_GRACE_SECONDS - WAKING_SECONDS)
    assert not lease.abandoned()
    clock.sleep(WAKING_SECONDS - 1)
    assert not lease.abandoned()
    clock.sleep(1)
    assert lease.abandoned()


def test_whoever_slept_through_the_grace_waits_for_word_before_the_run_counts_as_abandoned() -> None:
    clock = HandClock()
    lease = RunLease(clock)
    clock.suspend(8 * 3600)
    assert not lease.abandoned()
    clock.sleep(WAKING_SECONDS - 1)
    assert not lease.abandoned()
    lease.renewed(left_at=clock.boottime())
    clock.sleep(WAKING_SECONDS)
    assert not lease.abandoned()


def test_whoever_hears_nothing_after_a_sleep_either_is_abandoned() -> None:
    clock = HandClock()
    lease = RunLease(clock)
    clock.suspend(8 * 3600)
    assert not lease.valid()
    assert not lease.abandoned()
    clock.sleep(WAKING_SECONDS)
    assert lease.abandoned()
