"""The table of limits: complete, bounded, documented, and resolved by precedence."""

from __future__ import annotations

import re

import pytest

from shared.limits import LIMITS, checked_limits, effective
from shared.work_order import Limits
from tests.support.documents import ROOT


def test_the_table_has_each_limit_of_a_run_with_a_default_within_its_bounds() -> None:
    assert {each.name for each in LIMITS} == set(Limits.model_fields)
    for each in LIMITS:
        assert each.checked(each.default) == each.default


def test_a_wrong_limit_is_refused() -> None:
    for name, value in (
        ("max_steps", 5),
        ("max_retries", 101),
        ("max_retries", 1.5),
        ("max_format_errors", 0),
        ("base_delay", "soon"),
        ("base_delay", float("nan")),
        ("base_delay", True),
        ("retry_enabled", 1),
    ):
        with pytest.raises(ValueError, match=name):
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


def test_the_page_lists_each_limit_with_its_meaning() -> None:
    text = (ROOT / "docs" / "run-settings.md").read_text()
    listed = re.findall(r"^\| `(\w+)` \| ([^|]*) \|", text, re.MULTILINE)
    assert listed == [(each.name, each.help) for each in LIMITS]
