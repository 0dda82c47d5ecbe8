"""`make bench`: what it measures and how it judges, without what it compares with."""

from __future__ import annotations

import pytest

from tests.bench.side_by_side.clients import Alone, Floor, StepClient, steps_of
from tests.bench.side_by_side.report import Aim, BenchReport, BenchRow, Found, read_accepted


@pytest.mark.parametrize("client", [Floor(), Alone()], ids=lambda client: client.name)
def test_a_client_makes_the_steps_that_it_is_asked_for(client: StepClient) -> None:
    found = steps_of(client, 5)
    assert len(found.gaps_ms) == 5
    assert min(found.gaps_ms) > 0
    assert found.to_first_s > 0
    assert found.processor_s > 0


def report(*ours: float, beside: float = 10.0, most: float = 1.5) -> BenchReport:
    row = BenchRow("a step", dict, "ms", (Aim("floor", most),), bound="the floor")
    return BenchReport([Found(row, {"ours": ours, "floor": [beside] * len(ours)})])


def test_a_ratio_is_the_median_of_those_of_the_rounds() -> None:
    (line,) = report(11.0, 12.0, 40.0).table().split("\n")[2:]
    assert line == "| a step | 12 ms | floor: 10 ms | 1.20 (1.10 to 4.00) | ≤ 1.5 | yes | the floor |"


def test_an_aim_that_is_not_met_says_by_how_much() -> None:
    assert "| no: 2 times the aim |" in report(30.0, 30.0, 30.0).table()


def test_a_figure_without_a_neighbor_counts_itself() -> None:
    row = BenchRow("memory", dict, "MB", (Aim("", 260.0),))
    table = BenchReport([Found(row, {"ours": [300.0, 310.0, 312.0]})]).table()
    assert "| memory | 310 MB | – | – | ≤ 260 MB | no: 1.2 times the aim |" in table


@pytest.mark.parametrize(
    ("now", "is_worse"),
    [
        ((12.0, 12.0, 12.0), False),  # 20 % is allowed
        ((13.0, 13.0, 13.0), True),
        ((10.4, 13.0, 13.0), False),  # one of the rounds was as good as before
        ((9.0, 9.0, 9.0), False),
    ],
)
def test_a_ratio_is_worse_beyond_a_fifth_and_beyond_the_spread_of_the_rounds(
    now: tuple[float, ...], is_worse: bool
) -> None:
    accepted = report(9.5, 10.0, 10.5).document()
    sentences = report(*now).worse_than(accepted)
    assert bool(sentences) is is_worse
    if is_worse:
        assert sentences == ["a step beside floor: 1.3, and 1 in the accepted run"]


def test_a_new_row_is_not_worse() -> None:
    assert report(99.0).worse_than({"rows": []}) == []


@pytest.mark.parametrize(("text", "why"), [("[]", "no rows"), ('{"rows": 1}', "no rows"), ("{", "Expecting")])
def test_a_file_that_is_no_accepted_run_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_accepted(text)
