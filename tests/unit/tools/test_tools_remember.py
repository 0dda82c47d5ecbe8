"""remember: short notes for later orders, which a user decides about."""

from __future__ import annotations

import pytest

from drone.tools.arguments import RememberArguments
from drone.tools.remember import MOST, Remember
from drone.tools.wrong_use import WrongUse
from shared.events import RememberStep


def said(note: str, why: str = "It took an hour to find.") -> RememberArguments:
    return RememberArguments(note=note, why=why)


def test_a_note_is_recorded_on_one_line() -> None:
    kept: list[RememberStep] = []
    result = Remember(kept.append)(said(" Run the tests\n with make test. "))
    assert kept == [RememberStep(text="Run the tests with make test.", why="It took an hour to find.")]
    assert "a user decides" in result.output


def test_a_note_that_is_too_long_empty_or_holds_a_secret_is_refused() -> None:
    cases: list[tuple[str, str, str]] = [
        ("x" * 501, "y", "`note` has 501 characters"),
        ("x" * 10_000_000, "y", "`note` has 10,000,000 characters"),
        ("x", "y" * 501, "`why` has 501 characters"),
        (" \n ", "y", "`note` is empty"),
        ("The key is ghp_0123456789abcdefghijklmnopqrstuvwxyz", "y", "`note` contains a secret"),
        ("x", "ghp_0123456789abcdefghijklmnopqrstuvwxyz works", "`why` contains a secret"),
    ]
    for note, why, problem in cases:
        kept: list[RememberStep] = []
        with pytest.raises(WrongUse, match=problem):
            Remember(kept.append)(said(note, why))
        assert kept == [], note


def test_a_run_proposes_a_note_once_and_only_a_few() -> None:
    kept: list[RememberStep] = []
    remember = Remember(kept.append)
    for number in range(MOST):
        remember(said(f"note {number}"))
    with pytest.raises(WrongUse, match="already"):
        remember(said("note 0"))
    with pytest.raises(WrongUse, match=f"{MOST} notes are the most"):
        remember(said("one more"))
    assert len(kept) == MOST
