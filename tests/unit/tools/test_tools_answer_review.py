"""answer_review: each comment of a review gets one answer, and wrong use says how to do it right."""

from __future__ import annotations

from pathlib import Path

from drone.tools import AnswerReview
from shared.events import ReviewAnswerStep
from shared.work_order import CarriedComment
from tests.support.toolboxes import called, toolbox, workspace

__all__ = ["workspace"]
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
