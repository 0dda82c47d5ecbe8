"""The table of limits: complete, bounded, and resolved by precedence."""

from __future__ import annotations

import pytest

from shared.limits import LIMITS, checked_limits, effective
from shared.work_order import Limits


def test_the_table_has_each_limit_of_a_run_with_a_default_within_its_bounds() -> None:
    assert {each.name for each in LIMITS} == set(Limits.model_fields)
    for each in LIMITS:
        assert each.checked(each.default) == each.default


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("max_steps", 5, "unknown limit 'max_steps'; the limits are max_iterations, cost_limit"),
        ("max_retries", 101, "max_retries must be 0 to 100"),
        ("max_retries", 1.5, "max_retries must be a whole number"),
        ("max_format_errors", 0, "max_format_errors must be 1 to 1,000"),
        ("base_delay", "soon", "base_delay must be a number"),
        ("base_delay", float("nan"), "base_delay must be a number"),
        ("base_delay", True, "base_delay must be a number"),
        ("retry_enabled", 1, "retry_enabled must be true or false"),
    ],
)
def test_a_wrong_limit_is_refused_with_its_name_and_what_is_possible(name: str, value: object, why: str) -> None:
    with pytest.raises(ValueError, match="^" + why):
        checked_limits({name: value})


def test_values_get_the_type_of_their_limit() -> None:
    found = checked_limits({"max_retries": 5.0, "base_delay": 1})
    assert [type(each) for each in (found or {}).values()] == [int, float]


def test_of_several_levels_the_first_that_sets_a_limit_counts_and_is_named() -> None:
    found = effective(
        [
            ("order", {"max_retries": 1}),
            ("session", {"max_retries": 2, "base_delay": 2.5}),
            ("organization", {"max_retries": 6, "base_delay": 6.0, "token_limit": 6}),
        ]
    )
    assert (found.limits.max_retries, found.limits.base_delay, found.limits.token_limit) == (1, 2.5, 6)
    assert found.sources == {"max_retries": "order", "base_delay": "session", "token_limit": "organization"}
    assert found.limits.command_timeout == 120
