"""Calls of several runs below one limit, in simulated time, against an endpoint with a strict sliding window."""

from __future__ import annotations

import pytest

from tests.support.rate_simulation import Names, Simulation


def eight_runs(simulation: Simulation) -> Simulation:
    for number in range(8):
        simulation.add(f"run{number}")
    return simulation


@pytest.mark.parametrize("names", ["settings", "headers"])
def test_eight_runs_use_a_known_limit_and_do_not_exceed_it(names: Names) -> None:
    simulation = eight_runs(Simulation(60, names))
    simulation.run(300)
    assert simulation.refused_part(0, 300) <= 0.01
    assert simulation.used_part(0, 300) >= 0.93


@pytest.mark.parametrize("names", ["headers", "nothing"])
def test_a_limit_is_found_and_followed_when_it_is_halved(names: Names) -> None:
    after = 500
    simulation = eight_runs(Simulation(60, names, latency_s=0.5, delay_s=0.05, changes={after: 30}))
    simulation.run(after + 420)
    # Without headers, it is found by the refusals.
    assert simulation.refused_part(120, after) <= 0.03
    assert simulation.used_part(120, after) >= 0.9
    assert simulation.refused_part(after + 180, after + 420) <= 0.03
    assert simulation.used_part(after + 180, after + 420) >= 0.9
    assert len(simulation.refused) <= 20


def test_a_limit_that_is_raised_is_followed() -> None:
    simulation = eight_runs(Simulation(30, "headers", changes={200: 60}))
    simulation.run(960)
    assert simulation.used_part(720, 960) >= 0.93
    assert simulation.refused_part(60, 960) <= 0.03


def test_one_run_far_below_the_limit_asks_seldom() -> None:
    simulation = Simulation(600)
    simulation.add("run").thinks_s = 3.0
    simulation.run(300)
    assert len(simulation.accepted) > 50
    assert simulation.asked["run"] <= len(simulation.accepted) / 5
    assert not simulation.refused
