"""Wherever a text is cut, no part of a secret is left at the cut."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from pydantic import ValidationError

from drone.agent.hooks.calling import described
from drone.model.errors import classify, sentence
from drone.runs.conclusion import sentence as ended
from drone.sandbox.output import HeadAndTail
from drone.services.pull_request.api import refusal_of
from drone.tools.arguments import TodoArguments
from drone.tools.editor import _around
from drone.tools.paths import resolve
from drone.tools.wrong_use import WrongUse, describe
from drone.workspace.failures import explain
from drone.workspace.git import GitFailed
from drone.workspace.push import _words
from drone.workspace.remote import Remote
from shared.redaction import cut_off, cut_short, know, known, last_part, shortened
from shared.work_order import OrderProvider

KEY = "Qk7-Zx9Wv2Tp4Ls6Rm1Jd8Hf3Gb5Ny0Cu_Ea"
"""36 characters of no well-known shape."""
PIECES = {KEY[start : start + 4] for start in range(len(KEY) - 3)}


@pytest.fixture(autouse=True)
def the_key_is_known() -> Iterator[None]:
    know([KEY])
    yield
    know([])


def model_error(text: str) -> str:
    failure = classify(httpx.InvalidURL(text), datetime.now(UTC))
    assert failure is not None
    return sentence(failure, OrderProvider(name="p", model="m"))


def elided(text: str) -> str:
    whole = HeadAndTail(400)
    for at in range(0, len(text), 7):
        whole.add(text[at : at + 7])
    # A whole key is removed later, with the rest of the step.
    return known().text(whole.text())


def wrong_argument(text: str) -> str:
    with pytest.raises(ValidationError) as refused:
        TodoArguments.model_validate({"items": [{"text": text, "status": "done"}]})
    return known().text(describe("todo", refused.value))


def path_outside(text: str) -> str:
    with pytest.raises(WrongUse) as refused:
        resolve(Path("/work"), f"/{text}")
    return known().text(str(refused.value))


CUTS: dict[str, tuple[Callable[[str], str], int]] = {
    "shortened": (lambda text: shortened(text, 100), 100),
    "cut short": (lambda text: known().text(cut_short(text, 100)), 100),
    "a model's error": (model_error, 120),
    "a run's error": (lambda text: ended(ValueError(text)), 200),
    "a hook's error": (lambda text: described(ValueError(text)), 300),
    "git's error": (lambda text: str(GitFailed("push", 1, text)), 500),
    "git's last words": (lambda text: str(explain(GitFailed("fetch", 1, text), Remote("https://h/x")).why), 500),
    "a refused push": (lambda text: _words(f"remote: {text}"), 300),
    "a code host's refusal": (lambda text: str(refusal_of("h", 400, {"message": text})), 300),
    "the head of an output": (elided, 200),
    "a wrong argument": (wrong_argument, 80),
    "a path outside": (path_outside, 199),
    "a line that was edited": (lambda text: known().text(_around(text.encode(), 1)), 400),
}


def test_a_key_across_the_cut_leaves_nothing_at_any_offset() -> None:
    for what, (cut, length) in CUTS.items():
        for start in range(length - len(KEY) - 12, length + 2):
            shown = cut("." * start + KEY + "." * 1000)
            assert [piece for piece in PIECES if piece in shown] == [], (what, start)


def test_nor_at_the_end_of_which_only_a_part_is_kept() -> None:
    for cut in (last_part, cut_off):
        for after in range(102):
            shown = cut("." * 1000 + KEY + "." * after, 100)
            whole = KEY in shown and cut is cut_off
            assert whole or not [piece for piece in PIECES if piece in shown], after


def test_the_tail_of_an_output_begins_after_a_secret_that_is_divided() -> None:
    for after in range(199, 199 - len(KEY), -1):
        shown = elided("." * 1000 + KEY + "." * after)
        assert [piece for piece in PIECES if piece in shown] == [], after


def test_a_text_without_secrets_is_cut_where_it_should_be() -> None:
    text = "x" * 50 + "y" * 50
    assert (cut_short(text, 60), cut_off(text, 60)) == (text[:60], text[-60:])
    assert shortened(text, 60, end="…") == text[:59] + "…"
    assert shortened(text, 100) == text
