"""Sessions as users see them: the context of a turn on any drone, its journal, and its work in their own clone."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from drone.installation.home import DroneHome
from drone.model.scripted.server import ScriptedServer
from shared.blobs import INLINE_CONTEXT
from tests.acceptance.scripts import SCRIPTS, Reply, shell
from tests.support import wait_until
from tests.support.repositories import calc_project, git
from tests.support.transcripts import problems
from tests.support.whole_fleet import WholeFleet

pytestmark = pytest.mark.timeout(300)

Doc = dict[str, Any]
LOOK: list[Reply] = [
    {**shell("ls; cat calc.py; exit 3"), "text": "I look.", "thinking": "What is there?"},
    *[shell(f"seq {n}0000 {n}9999; echo note {n} >> notes.txt") for n in range(1, 9)],
    {"text": "I have seen it all."},
]


@pytest.fixture(scope="module")
def chats() -> Iterator[ScriptedServer]:
    """A scripted model (a stand-in) that only this module uses."""
    with ScriptedServer({**SCRIPTS, "look": LOOK, "after": [{"text": "I remember."}]}) as server:
        yield server


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A remote that takes no pushes."""
    remote = calc_project(tmp_path_factory.mktemp("sessions") / "closed.git")
    (remote / "hooks").mkdir(exist_ok=True)
    (remote / "hooks" / "pre-receive").write_text("#!/bin/sh\nexit 1\n")
    (remote / "hooks" / "pre-receive").chmod(0o755)
    return remote


@pytest.fixture(scope="module")
def chat(shared_fleet: WholeFleet, chats: ScriptedServer, closed: Path) -> Iterator[WholeFleet]:
    """The shared fleet with two workstations, mila and oka, and a project of this module."""
    shared_fleet.add_work(chats.url, closed.as_uri(), slug="closed", provider="chats")
    for name in ("mila", "oka"):
        shared_fleet.workstation(name).start()
    shared_fleet.online("mila", "oka")
    yield shared_fleet
    for name in ("mila", "oka"):
        shared_fleet.json("drone", "rm", name, "--yes")


def asked(chats: ScriptedServer, prompt: str) -> list[list[Doc]]:
    """The messages of every request whose last prompt is this one."""
    found = [request["messages"] for request in chats.requests]
    return [each for each in found if prompt in [m["content"] for m in each if m["role"] == "user"][-1]]


def test_a_turn_on_another_drone_begins_with_exactly_the_messages_and_the_work_of_the_turn_before(
    chat: WholeFleet, chats: ScriptedServer, closed: Path, tmp_path: Path
) -> None:
    first = chat.ended(chat.submit("Look around, script:look", "--drone", "mila", project="closed")["id"])
    options = ("--session", first["session"], "--drone", "oka")
    second = chat.ended(chat.submit("What did you see, script:after", *options, project="closed")["id"])
    third = chat.ended(chat.submit("Note it, script:note", *options, project="closed")["id"])

    before = asked(chats, "Look around, script:look")[-1]
    [after] = asked(chats, "What did you see, script:after")
    assert [order["drone"] for order in (first, second, third)] == ["mila", "oka", "oka"]
    assert json.dumps(after[: len(before)]) == json.dumps(before)
    assert len(json.dumps(before)) > INLINE_CONTEXT
    assert [message["role"] for message in after[len(before) :]] == ["assistant", "user"]
    assert after[len(before)]["content"] == "I have seen it all."
    assert problems(after) == []
    assert second["base_commit"] == first["head_commit"]

    # The remote took none of it.
    assert [order["pushed"] for order in (first, third)] == [False, False]
    git(tmp_path, "clone", "--quiet", str(closed), "clone")
    done = chat.fleet("session", "checkout", first["session"], "--directory", str(tmp_path / "clone"))
    assert (done.returncode, "from the bundle" in done.stderr) == (0, True), done.stderr
    assert (tmp_path / "clone" / "notes.txt").read_text().splitlines() == [*(f"note {n}" for n in range(1, 9)), "noted"]


def test_the_journal_on_the_drone_and_the_steps_in_the_database_are_the_same(chat: WholeFleet, tmp_path: Path) -> None:
    order_id = chat.submit("Take your time, script:slow", "--drone", "mila", project="closed")["id"]
    run_id = wait_until(lambda: [run["id"] for run in chat.order(order_id)["runs"]])[0]
    [mila] = [each for each in chat.workstations[-2:] if each.name == "mila"]
    journal = DroneHome(Path(mila.environment["DRONE_HOME"])).run_dir(run_id) / "journal.jsonl"
    # The drone deletes the journal once all of it is confirmed; a hard link keeps the file.
    os.link(journal, tmp_path / "journal")

    steps = chat.ended(order_id)["steps"]

    events = [json.loads(line) for line in (tmp_path / "journal").read_text().splitlines()]
    assert [(event["seq"], event["body"]) for event in events] == [(step["seq"], _body(step)) for step in steps]
    assert {event["run_id"] for event in events} == {run_id}


def _body(step: Doc) -> Doc:
    return {key: value for key, value in step.items() if key not in {"seq", "run", "at", "late", "undone"}}
