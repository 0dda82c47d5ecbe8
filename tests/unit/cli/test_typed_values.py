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


def test_labels_stay_text() -> None:
    assert typed.value(["gpu=1"], dict[str, str], "") == {"gpu": "1"}


@pytest.mark.parametrize("pair", ["temperature", "=1", ""])
def test_what_is_no_pair_is_refused(pair: str) -> None:
    with pytest.raises(Invalid, match="invalid parameter"):
        typed.value([pair], dict[str, Any], "")


@pytest.mark.parametrize("text", ["2.5", "$2.5", "2.5/day", "$2.5/day"])
def test_an_amount_may_be_typed_with_its_unit(text: str) -> None:
    assert typed.value(text, float, "USD/day") == "2.5"


def test_a_secret_comes_from_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-1")
    assert typed.secret("key", "MY_KEY", from_stdin=False) == "sk-1"


def test_a_secret_comes_from_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("sk-2\nmore\n"))
    assert typed.secret("key", None, from_stdin=True) == "sk-2"


def test_a_variable_that_is_empty_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "")
    with pytest.raises(Invalid, match="MY_KEY is not set") as refused:
        typed.secret("key", "MY_KEY", from_stdin=False)
    assert refused.value.code == "E-KEY-VARIABLE"


def test_two_sources_of_a_secret_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-1")
    with pytest.raises(Invalid, match="one source of the key"):
        typed.secret("key", "MY_KEY", from_stdin=True)


def test_without_a_source_there_is_no_secret() -> None:
    assert typed.secret("key", None, from_stdin=False) is None
