"""Tools by which an agent tells people something: remember, ask, answer_review and add_comment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from drone.agent.approvals import AskingFor
from drone.agent.values import AskedQuestion, ToolResult
from drone.tools import AddComment, AnswerReview
from drone.tools.arguments import RememberArguments
from drone.tools.telling import MOST_NOTES, Remember
from drone.tools.wrong_use import WrongUse
from shared.events import CommentStep, RememberStep, ReviewAnswerStep
from shared.messages import ToolCall
from shared.work_order import CarriedComment
from tests.support.toolboxes import called, toolbox


def said(note: str, why: str = "It took an hour to find.") -> RememberArguments:
    return RememberArguments(note=note, why=why)


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
    assert "a user decides" in remember(said(" Run the tests\n with make test. ")).output
    assert kept == [RememberStep(text="Run the tests with make test.", why="It took an hour to find.")]
    for number in range(1, MOST_NOTES):
        remember(said(f"note {number}"))
    with pytest.raises(WrongUse, match="already"):
        remember(said("note 1"))
    with pytest.raises(WrongUse, match=f"{MOST_NOTES} notes are the most"):
        remember(said("one more"))
    assert len(kept) == MOST_NOTES


MODES = ["plan", "build", "test", "ship", "develop"]


def test_it_exists_in_every_mode_of_an_order_that_may_ask_and_never_needs_approval(workspace: Path) -> None:
    for mode in MODES:
        asking = toolbox(workspace, mode, asks=True)
        assert set(asking.names) - set(toolbox(workspace, mode).names) == {"ask"}, mode
        assert "ask" in asking.read_only
    levels: tuple[Any, ...] = ("risky", "all")
    assert [AskingFor(level).why(ToolCall(id="c1", name="ask", arguments="{}")) for level in levels] == [None, None]


def test_a_question_comes_with_everything_that_was_given_within_its_limits(workspace: Path) -> None:
    tools = toolbox(workspace, asks=True)
    given = called(tools, "ask", question=" Which? ", choices=["a", " b "], default="b", deadline=60)
    assert given.asks == AskedQuestion("Which?", ("a", "b"), "b", 60)
    assert called(tools, "ask", question="Which?", default="shop").asks == AskedQuestion("Which?", (), "shop")
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, "the argument `question` is required"),
        ({"question": " \n"}, "`question` is empty"),
        ({"question": "x" * 4001}, "`question` has 4,001 characters (maximum 4,000)"),
        ({"question": "Which?", "choices": [""]}, "`choices` is empty"),
        ({"question": "Which?", "choices": ["x" * 201]}, "`choices` has 201 characters (maximum 200)"),
        ({"question": "Which?", "choices": [str(n) for n in range(13)]}, "13 choices are too many (maximum 12)"),
        ({"question": "Which?", "choices": ["Yes", "yes "]}, "two choices are the same"),
        ({"question": "Which?", "choices": ["a", "b"], "default": "c"}, "'c' is not one of the choices: a, b"),
        ({"question": "Which?", "deadline": 9}, "the deadline must be 10 to 604800 seconds (given: 9)"),
        ({"question": "Which?", "deadline": 604801}, "the deadline must be 10 to 604800 seconds"),
    ]
    for arguments, problem in cases:
        result = called(tools, "ask", **arguments)
        assert (result.is_error, result.asks, problem in result.output) == (True, None, True), arguments


ONE, TWO = "a1b2c3000000", "d4e5f6000000"


def review(kept: list[ReviewAnswerStep], *more: str) -> AnswerReview:
    return AnswerReview(kept.append, [CarriedComment(id=ONE), CarriedComment(id=TWO, answered=True)], lambda: more)


def test_an_answer_is_recorded_at_once_under_the_full_id(workspace: Path) -> None:
    kept: list[ReviewAnswerStep] = []
    tools = toolbox(workspace, review=review(kept, "ffffff000000"))
    answer = called(tools, "answer_review", comment="A1B2C3", verdict="declined", text=" It is used elsewhere. ")
    assert kept == [ReviewAnswerStep(comment=ONE, verdict="declined", text="It is used elsewhere.")]
    assert answer.output == "comment a1b2c3 is declined; not answered yet: ffffff"
    last = called(tools, "answer_review", comment="ffffff000000", verdict="done")
    assert last.output == "comment ffffff is done; all comments are answered"


def test_wrong_use_is_told_and_records_nothing(workspace: Path) -> None:
    wrong = [
        ({"comment": "123456", "verdict": "done"}, "there is no review comment '123456'; not answered yet: a1b2c3"),
        ({"comment": "a1", "verdict": "done"}, "there is no review comment 'a1'"),
        ({"comment": "d4e5f6", "verdict": "done"}, "comment d4e5f6 already has an answer, which stays"),
        ({"comment": "a1b2c3", "verdict": "declined"}, "with the verdict declined, `text` must say the reason"),
        ({"comment": "a1b2c3", "verdict": "asks", "text": " "}, "`text` must say the question"),
        ({"comment": "a1b2c3", "verdict": "maybe"}, "verdict"),
        ({"comment": "a1b2c3", "verdict": "done", "text": "x" * 10_001}, "10,001 characters; 10,000 are allowed"),
    ]
    kept: list[ReviewAnswerStep] = []
    tools = toolbox(workspace, review=review(kept))
    for call, said in wrong:
        answer = called(tools, "answer_review", **call)
        assert (answer.is_error, said in answer.output, kept) == (True, True, []), call
    answers = [called(tools, "answer_review", comment="a1b2c3", verdict="done") for _ in range(2)]
    assert ("already has an answer" in answers[1].output, len(kept)) == (True, 1)


def test_it_is_offered_only_once_the_conversation_carries_a_review(workspace: Path) -> None:
    arrived: list[str] = []
    tools = toolbox(workspace, "plan", review=AnswerReview(print, (), lambda: arrived))
    before = [spec.name for spec in tools.specs()]
    refused = called(tools, "answer_review", comment=ONE, verdict="done")
    arrived.append(ONE)
    assert "answer_review" not in before
    assert "unknown tool 'answer_review'" in refused.output
    assert [spec.name for spec in tools.specs()] == [*before[:-1], "answer_review", before[-1]]


def test_an_agent_of_a_team_has_it_in_every_mode_and_an_order_without_a_team_in_none(workspace: Path) -> None:
    for mode in MODES:
        tools = toolbox(workspace, mode, thread=AddComment(print))
        assert set(tools.names) - set(toolbox(workspace, mode).names) == {"add_comment"}, mode
        assert "add_comment" in tools.read_only, "it needs no approval"


def test_a_comment_is_recorded_at_once_for_the_thread(workspace: Path) -> None:
    kept: list[CommentStep] = []
    tools = toolbox(workspace, thread=AddComment(kept.append))

    first = called(tools, "add_comment", message="  I begin.\n")
    # Several tags, and one of nobody: whom they name is decided when the turn ends.
    second = called(tools, "add_comment", message="Done. @tester @nobody")

    assert kept == [CommentStep(text="I begin.", to_task=True), CommentStep(text="Done. @tester @nobody", to_task=True)]
    assert [first, second] == [ToolResult(f"comment {n} of this turn is in the thread") for n in (1, 2)]


def test_a_comment_that_is_empty_or_could_not_travel_whole_is_wrong_use(workspace: Path) -> None:
    kept: list[CommentStep] = []
    tools = toolbox(workspace, thread=AddComment(kept.append))
    for message in ("", " \n\t", "x" * 100_001, "\N{SNOWMAN}" * 90_000):
        assert called(tools, "add_comment", message=message).is_error
    assert kept == []
    called(tools, "add_comment", message="word\n" * 19_999 + "@user")
    assert len(kept[0].text) == 100_000


def test_what_a_broken_off_run_wrote_is_not_written_again_but_anything_else_is(workspace: Path) -> None:
    kept: list[CommentStep] = []
    tools = toolbox(workspace, thread=AddComment(kept.append, ["Half done.", "Half done."]))

    said = [called(tools, "add_comment", message=text).output for text in (*["Half done."] * 3, "All done.")]

    assert [step.text for step in kept] == ["Half done.", "All done."]
    assert ["already" in text for text in said] == [True, True, False, False]
