"""pydantic's findings in our words: each kind that our requests can meet, without the value."""

from __future__ import annotations

from typing import Any

import pytest

from control_plane.contract.declarations.orders import OrderFilter
from control_plane.contract.declarations.projects import ProjectRequest
from control_plane.contract.declarations.providers import ProviderRequest
from control_plane.contract.documents.base import Request
from control_plane.contract.validation.invalid_requests import InvalidRequest, checked

PROJECT = {"slug": "shop", "git_url": "https://git.example/shop.git"}
PROVIDER = {"name": "main", "model": "openai/x"}
CASES: list[tuple[type[Request], dict[str, Any], str]] = [
    (ProjectRequest, {"slug": "shop"}, "git_url: is required"),
    (ProjectRequest, {**PROJECT, "brunch": "x"}, "brunch: unknown field"),
    (ProjectRequest, {**PROJECT, "branch": 7}, "branch: must be text"),
    (ProjectRequest, {**PROJECT, "budget_usd_day": "much"}, "budget_usd_day: must be a number"),
    (OrderFilter, {"limit": 0}, "limit: must be at least 1"),
    (ProjectRequest, {**PROJECT, "pull_requests": "all"}, "pull_requests: must be 'never', 'ready' or 'open'"),
    (ProjectRequest, {**PROJECT, "setup": "make"}, "setup: must be a list"),
    (ProviderRequest, {**PROVIDER, "context_window": "wide"}, "context_window: must be a whole number"),
    (ProviderRequest, {**PROVIDER, "no_key": "perhaps"}, "no_key: must be true or false"),
    (ProviderRequest, {**PROVIDER, "params": []}, "params: must be an object"),
    (OrderFilter, {"limit": 1001}, "limit: must be at most 1000"),
    (OrderFilter, {"status": "dreaming"}, "status: must be 'queued'"),
]


def test_a_wrong_value_is_told_in_our_words_and_never_repeated() -> None:
    for model, given, words in CASES:
        with pytest.raises(InvalidRequest) as refused:
            checked(model, given, form="fleet help")
        assert refused.value.what.startswith(f"invalid request: {words}"), model
        assert (refused.value.code, refused.value.next) == ("E-REQUEST", "fleet help"), model
    with pytest.raises(InvalidRequest) as refused:
        checked(ProviderRequest, {**PROVIDER, "api_key": ["sk-secret"]}, form="fleet help")
    assert "sk-secret" not in repr(refused.value.__dict__)
