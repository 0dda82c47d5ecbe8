"""A run that begins with the summary of a branch that was left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shared.events import ChargeStep, CommentStep, ErrorStep, UserStep
from shared.messages import Message
from tests.support.runs import Bench, small_repository
from tests.support.scripted import ScriptedFactory, says

pytestmark = pytest.mark.usefixtures("warm_model")
LEFT = (Message(role="user", content="Try a cache."), Message(role="assistant", content="It was slower."))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "bench", small_repository(tmp_path / "repository.git"))


def leave(bench: Bench, **fields: Any) -> None:
    session = bench.order.session.model_copy(update={"left": LEFT, "left_leaf": "e1", **fields})
    bench.order = bench.order.model_copy(update={"session": session})


def of(bench: Bench, kind: type[Any]) -> list[Any]:
    return [event.body for event in bench.events if isinstance(event.body, kind)]


def test_the_model_writes_it_first_and_reads_it_with_the_prompt(bench: Bench, scripted: ScriptedFactory) -> None:
    leave(bench)
    server = scripted({"default": [says("done")], "summary": [says("A cache made it slower.")]})
    bench.run(server.url)
    asked, turn = server.requests
    assert "It was slower." in asked["messages"][-1]["content"]
    opening = turn["messages"][-1]["content"]
    assert opening.startswith("Write a file")
    assert "Summary of the branch of this conversation that was left:\n\nA cache made it slower." in opening
    assert [(step.text, step.left_leaf) for step in of(bench, CommentStep)] == [("A cache made it slower.", "e1")]
    assert [step.about for step in of(bench, ChargeStep)] == ["summary"]
    assert of(bench, UserStep)[0].text == opening


def test_a_summary_that_was_written_before_is_not_paid_again(bench: Bench, scripted: ScriptedFactory) -> None:
    leave(bench, left=(), left_summary="A cache made it slower.")
    server = scripted([says("done")])
    bench.run(server.url)
    assert len(server.requests) == 1
    assert "A cache made it slower." in server.requests[0]["messages"][-1]["content"]


def test_without_a_summary_the_run_begins_all_the_same(bench: Bench, scripted: ScriptedFactory) -> None:
    leave(bench)
    server = scripted({"default": [says("done")], "summary": [{"status": 401, "error": "no"}]})
    ended = bench.run(server.url)
    assert ended.exit_status == "stopped"
    (problem,) = [step.what for step in of(bench, ErrorStep)]
    assert problem.startswith("The branch that was left was not summarized: ")
