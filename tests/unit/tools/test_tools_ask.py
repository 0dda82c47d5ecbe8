"""ask: a question with choices, a default and a deadline, each within its limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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


def test_it_exists_in_every_mode_of_an_order_that_may_ask_and_never_needs_approval(workspace: Path) -> None:
    for mode in MODES:
        asking = toolbox(workspace, mode, asks=True)
        assert set(asking.names) - set(toolbox(workspace, mode).names) == {"ask"}, mode
        assert "ask" in asking.read_only
    levels: tuple[Any, ...] = ("risky", "all")
    assert [AskingFor(level).why(ToolCall(id="c1", name="ask", arguments="{}")) for level in levels] == [None, None]


def test_a_question_comes_with_everything_that_was_given(workspace: Path) -> None:
    given = asked(workspace, question=" Which? ", choices=["a", " b "], default="b", deadline=60)
    assert given == AskedQuestion("Which?", ("a", "b"), "b", 60)
    assert asked(workspace, question="Which?") == AskedQuestion("Which?")
    assert asked(workspace, question="Which name?", default="shop").default == "shop"


def test_a_question_outside_its_limits_is_wrong_use(workspace: Path) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
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
    ]
    for arguments, problem in cases:
        result = called(toolbox(workspace, asks=True), "ask", **arguments)
        assert (result.is_error, result.asks) == (True, None), arguments
        assert problem in result.output, arguments
