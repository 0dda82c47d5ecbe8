"""ask: a question with choices, a default and a deadline, each within its limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from drone.agent.approvals import AskingFor
from drone.agent.values import AskedQuestion
from shared.messages import ToolCall
from tests.support.toolboxes import called, toolbox, workspace

__all__ = ["workspace"]
MODES = ["plan", "build", "test", "ship", "develop"]


def asked(workspace: Path, **arguments: Any) -> AskedQuestion:
    """The question of a call that is in order."""
    result = called(toolbox(workspace, asks=True), "ask", **arguments)
    assert result.asks is not None, result.output
    return result.asks


@pytest.mark.parametrize("mode", MODES)
def test_it_exists_in_every_mode_of_an_order_that_may_ask(workspace: Path, mode: str) -> None:
    assert set(toolbox(workspace, mode, asks=True).names) - set(toolbox(workspace, mode).names) == {"ask"}


@pytest.mark.parametrize("approve", ["risky", "all"])
def test_it_never_needs_approval(workspace: Path, approve: Any) -> None:
    assert AskingFor(approve).why(ToolCall(id="c1", name="ask", arguments="{}")) is None
    assert "ask" in toolbox(workspace, asks=True).read_only


def test_a_question_comes_with_everything_that_was_given(workspace: Path) -> None:
    given = asked(workspace, question=" Which? ", choices=["a", " b "], default="b", deadline=60)
    assert given == AskedQuestion("Which?", ("a", "b"), "b", 60)
    assert asked(workspace, question="Which?") == AskedQuestion("Which?")


def test_without_choices_any_text_can_be_the_default(workspace: Path) -> None:
    assert asked(workspace, question="Which name?", default="shop").default == "shop"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "the argument `question` is required"),
        ({"question": " \n"}, "`question` is empty"),
        ({"question": "x" * 4001}, "`question` has 4,001 characters (maximum 4,000)"),
        ({"question": "Which?", "choices": [""]}, "`choices` is empty"),
        ({"question": "Which?", "choices": ["x" * 201]}, "`choices` has 201 characters (maximum 200)"),
        ({"question": "Which?", "choices": [str(n) for n in range(13)]}, "13 choices are too many (maximum 12)"),
        ({"question": "Which?", "choices": ["Yes", "yes "]}, "two choices are the same"),
        ({"question": "Which?", "choices": ["a", "b"], "default": "c"}, "'c' is not one of the choices: a, b"),
        ({"question": "Which?", "default": " "}, "`default` is empty"),
        ({"question": "Which?", "deadline": 9}, "the deadline must be 10 to 604800 seconds (given: 9)"),
        ({"question": "Which?", "deadline": 604801}, "the deadline must be 10 to 604800 seconds"),
        ({"question": "Which?", "wait": 5}, "unknown argument `wait`"),
    ],
)
def test_a_question_outside_its_limits_is_wrong_use(workspace: Path, arguments: dict[str, Any], problem: str) -> None:
    result = called(toolbox(workspace, asks=True), "ask", **arguments)
    assert (result.is_error, result.asks) == (True, None)
    assert problem in result.output
