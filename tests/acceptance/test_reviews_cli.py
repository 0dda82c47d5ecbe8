"""A review through real processes: comments from the terminal, one message, and the agent's answers with the commit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from drone.model.scripted.script import Book
from drone.model.scripted.server import ScriptedServer
from tests.acceptance.scripts import FIX, Reply, calls
from tests.support.repositories import calc_project, git
from tests.support.whole_fleet import WholeFleet

pytestmark = pytest.mark.timeout(300)

Doc = dict[str, Any]


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedServer]:
    with ScriptedServer({"fix": FIX}) as server:
        yield server


def play(model: ScriptedServer, *replies: Reply) -> None:
    """Let the model answer the next review like this: the ids of the comments are known only now."""
    model.book = Book.of({"fix": FIX, "default": list(replies)})


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return calc_project(tmp_path_factory.mktemp("reviews") / "calc.git")


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory, model: ScriptedServer, remote: Path) -> Iterator[WholeFleet]:
    whole = WholeFleet(tmp_path_factory.mktemp("reviews") / "fleet")
    try:
        whole.start()
        whole.add_work(model.url, f"file://{remote}")
        yield whole
        assert whole.transcript_problems() == []
    finally:
        whole.close()


def test_comments_are_sent_answered_and_replied_to(fleet: WholeFleet, model: ScriptedServer, remote: Path) -> None:
    first = fleet.ended(fleet.submit("Mend it, script:fix")["id"])
    review = ("review", "add", first["id"])
    one = fleet.json(*review, "Use sum()", "--file", "calc.py", "--line", "5")
    two = fleet.json(*review, "Add a test", "--file", "calc.py")
    three = fleet.json(*review, "Why was it wrong?", "--file", "calc.py", "--line", "5", "--side", "old")
    four = fleet.json(*review, "To be removed", "--file", "calc.py")
    removed = fleet.fleet("review", "rm", first["id"], four["id"][:6])

    play(
        model,
        calls(("shell", {"command": "sed -i 's/a + b/sum((a, b))/' calc.py"})),
        calls(
            ("answer_review", {"comment": one["id"][:6], "verdict": "done", "text": "sum() it is."}),
            ("answer_review", {"comment": one["id"][:6], "verdict": "done"}),
            ("answer_review", {"comment": three["id"][:6], "verdict": "asks", "text": "Do you mean the sign?"}),
            ("answer_review", {"comment": "ffffff", "verdict": "done"}),
        ),
        {"text": "One is left."},
    )
    sent = fleet.json("review", "send", first["id"], "--text", "Nearly there")
    second = fleet.ended(sent["id"])
    listed = {each["id"]: each for each in fleet.json("review", "ls", first["id"])}

    assert removed.returncode == 0
    assert (second["session"], second["base_commit"]) == (first["session"], first["head_commit"])
    assert one["quote"] == "+    return a + b"
    assert [listed[each["id"]]["status"] for each in (one, two, three)] == ["done", "sent", "asks"]
    assert listed[one["id"]]["done_commit"] == second["head_commit"] == git(remote, "rev-parse", second["branch"])
    assert second["unsettled"] == 1
    assert "1 comment without an answer" in fleet.fleet("show", second["id"]).stdout
    assert re.search(rf"comment {one['id'][:6]} done: sum\(\) it is", fleet.fleet("show", second["id"]).stdout)
    outputs = " ".join(step["output"] for step in second["steps"] if step["kind"] == "tool_result")
    assert "already has an answer" in outputs
    assert "there is no review comment 'ffffff'" in outputs

    reply = fleet.json(*review, "Yes, the sign", "--parent", three["id"])
    play(
        model,
        calls(("answer_review", {"comment": reply["id"][:6], "verdict": "declined", "text": "It was a typo."})),
        {"text": "Answered."},
    )
    third = fleet.ended(fleet.json("review", "send", first["id"])["id"])
    answered = next(each for each in fleet.json("review", "ls", first["id"]) if each["id"] == reply["id"])
    assert (answered["status"], answered["answer"], answered["parent"]) == ("declined", "It was a typo.", three["id"])
    assert "Do you mean the sign?" in third["prompt"]


def test_wrong_use_of_reviews_is_told(fleet: WholeFleet) -> None:
    first = fleet.ended(fleet.submit("Mend it, script:fix")["id"])
    tries = [
        ("add", first["id"], "x", "--file", "other.py"),
        ("add", first["id"], "x", "--file", "calc.py", "--line", "400"),
        ("add", "0123456789ab", "x", "--file", "calc.py"),
        ("send", first["id"]),
        ("rm", first["id"], "ffffff"),
        ("edit", first["id"], "ffffff", "x"),
    ]
    assert [fleet.fleet("review", *words).returncode for words in tries] == [2, 2, 3, 4, 3, 3]
