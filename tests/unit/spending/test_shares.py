"""What a run has spent is paid from its blocks in their order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from control_plane.spending.ledger import shares


@pytest.mark.parametrize(
    ("granted", "spent", "paid"),
    [
        ([10, 10], 0, [0, 0]),
        ([10, 10], 4, [4, 0]),
        ([10, 10], 10, [10, 0]),
        ([10, 10], 13, [10, 3]),
        ([10, 10], 25, [10, 15]),
        ([0], 7, [7]),
        ([], 7, []),
    ],
)
def test_the_first_blocks_pay_first_and_the_last_one_pays_what_exceeds_them_all(
    granted: list[int], spent: int, paid: list[int]
) -> None:
    assert shares(granted, spent) == paid


@given(st.lists(st.integers(0, 10**12), min_size=1), st.integers(0, 10**13))
def test_blocks_pay_exactly_what_was_spent(granted: list[int], spent: int) -> None:
    assert sum(shares(granted, spent)) == spent


@given(st.lists(st.integers(0, 100), min_size=1), st.integers(0, 1000), st.integers(0, 1000))
def test_no_block_pays_back_when_more_is_spent(granted: list[int], one: int, other: int) -> None:
    less, more = sorted((one, other))
    assert all(before <= after for before, after in zip(shares(granted, less), shares(granted, more), strict=True))
