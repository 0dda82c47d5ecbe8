"""What a person types, as the values of a request: mappings, amounts with their unit, secrets that are never typed."""

from __future__ import annotations

import io
from typing import Any

import pytest

from control_plane.cli import typed_values as typed
from shared.errors import Invalid


def test_a_mapping_takes_json_where_it_is_json_and_text_where_not() -> None:
    given = ["temperature=0.2", "stop=[1]", "voice=a=b"]
    assert typed.value(given, dict[str, Any], "") == {"temperature": 0.2, "stop": [1], "voice": "a=b"}
    assert typed.value(["gpu=1"], dict[str, str], "") == {"gpu": "1"}
    for pair in ("temperature", "=1", ""):
        with pytest.raises(Invalid):
            typed.value([pair], dict[str, Any], "")


def test_an_amount_may_be_typed_with_its_unit() -> None:
    assert {typed.value(text, float, "USD/day") for text in ("2.5", "$2.5", "2.5/day", "$2.5/day")} == {"2.5"}


def test_a_secret_comes_from_a_variable_or_from_stdin_and_not_from_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-1")
    monkeypatch.setattr("sys.stdin", io.StringIO("sk-2\nmore\n"))
    assert typed.secret("key", "MY_KEY", from_stdin=False) == "sk-1"
    assert typed.secret("key", None, from_stdin=True) == "sk-2"
    assert typed.secret("key", None, from_stdin=False) is None
    with pytest.raises(Invalid):
        typed.secret("key", "MY_KEY", from_stdin=True)
    monkeypatch.setenv("MY_KEY", "")
    with pytest.raises(Invalid) as refused:
        typed.secret("key", "MY_KEY", from_stdin=False)
    assert refused.value.code == "E-KEY-VARIABLE"
