"""Messages of users in a run with real tools and journal: given together or alone, recorded under their ids."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.control import Say, TakeBack
from shared.events import UserStep
from tests.support.runs import Bench, shell, small_repository
from tests.support.scripted import ScriptedFactory, says

pytestmark = pytest.mark.usefixtures("warm_model")
RUN = "run000000000"


def bench_that_says(tmp_path: Path, *messages: Say | TakeBack) -> Bench:
    """A bench whose run receives these messages while its first command runs."""
    bench = Bench(tmp_path / "bench", small_repository(tmp_path / "repository.git"))
    left = list(messages)

    def tell(doing: str) -> None:
        if "sleep" in doing:
            while left:
                bench.controls.receive(left.pop(0))

    bench.on_doing = tell
    return bench


def texts_of_questions(server_requests: list[dict[str, object]]) -> list[list[str]]:
    """The user's messages after the prompt, as each question to the model has them."""
    return [
        [str(m["content"]) for m in body["messages"] if m["role"] == "user"][1:]  # type: ignore[attr-defined]
        for body in server_requests
    ]


@pytest.mark.parametrize(
    ("messages", "questions"),
    [
        ([Say(run_id=RUN, text="a"), Say(run_id=RUN, text="b")], [[], ["a", "b"], ["a", "b"], ["a", "b"]]),
        (
            [Say(run_id=RUN, text="a", alone=True), Say(run_id=RUN, text="b", alone=True)],
            [[], ["a"], ["a", "b"], ["a", "b"]],
        ),
    ],
    ids=["together", "alone"],
)
def test_messages_are_given_together_or_one_at_a_time(
    tmp_path: Path, scripted: ScriptedFactory, messages: list[Say], questions: list[list[str]]
) -> None:
    bench = bench_that_says(tmp_path, *messages)
    server = scripted([shell("sleep 0.1"), shell("true"), shell("true"), says("done")])
    bench.run(server.url)
    assert texts_of_questions(server.requests) == questions


def test_follow_ups_that_are_answered_alone_come_one_for_each_stop(tmp_path: Path, scripted: ScriptedFactory) -> None:
    later = [Say(run_id=RUN, text=text, after=True, alone=True) for text in ("a", "b")]
    bench = bench_that_says(tmp_path, *later)
    server = scripted([shell("sleep 0.1"), says("one"), says("two"), says("three")])
    bench.run(server.url)
    assert texts_of_questions(server.requests) == [[], [], ["a"], ["a", "b"]]


def test_a_message_is_recorded_under_its_id_and_one_that_was_taken_back_is_not_given_to_the_model(
    tmp_path: Path, scripted: ScriptedFactory
) -> None:
    bench = bench_that_says(
        tmp_path,
        Say(run_id=RUN, text="a", message="7"),
        Say(run_id=RUN, text="b", message="8"),
        TakeBack(run_id=RUN, messages=("7",)),
    )
    server = scripted([shell("sleep 0.1"), says("done")])
    bench.run(server.url)
    assert texts_of_questions(server.requests) == [[], ["b"]]
    steps = [event.body for event in bench.events if isinstance(event.body, UserStep)]
    assert [(step.text, step.message) for step in steps[1:]] == [("b", "8")]
