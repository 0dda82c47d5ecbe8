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
def chat(tmp_path_factory: pytest.TempPathFactory, chats: ScriptedServer) -> Iterator[WholeFleet]:
    """A fleet with two drones on workstations, mila and oka, whose remote takes no pushes."""
    root = tmp_path_factory.mktemp("sessions")
    remote = calc_project(root / "closed.git")
    hook = remote / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    whole = WholeFleet(root / "fleet", drones=0)
    try:
        whole.start()
        whole.add_work(chats.url, f"file://{remote}")
        for name in ("mila", "oka"):
            whole.workstation(name).start()
        whole.online("mila", "oka")
        yield whole
        assert whole.transcript_problems() == []
    finally:
        whole.close()


def asked(chats: ScriptedServer, prompt: str) -> list[list[Doc]]:
    """The messages of every request whose last prompt is this one."""
    found = [request["messages"] for request in chats.requests]
    return [messages for messages in found if prompt in _last_prompt(messages)]


def _last_prompt(messages: list[Doc]) -> str:
    return next(str(message["content"]) for message in reversed(messages) if message["role"] == "user")


def test_a_turn_on_another_drone_begins_with_exactly_the_messages_and_the_work_of_the_turn_before(
    chat: WholeFleet, chats: ScriptedServer, tmp_path: Path
) -> None:
    first = chat.ended(chat.submit("Look around, script:look", "--drone", "mila")["id"])
    options = ("--session", first["session"], "--drone", "oka")
    second = chat.ended(chat.submit("What did you see, script:after", *options)["id"])
    third = chat.ended(chat.submit("Note it, script:note", *options)["id"])

    before = asked(chats, "Look around, script:look")[-1]
    [after] = asked(chats, "What did you see, script:after")
    assert [order["drone"] for order in (first, second, third)] == ["mila", "oka", "oka"]
    assert json.dumps(after[: len(before)]) == json.dumps(before)
    assert len(json.dumps(before)) > INLINE_CONTEXT
    assert [message["role"] for message in after[len(before) :]] == ["assistant", "user"]
    assert after[len(before)]["content"] == "I have seen it all."
    assert problems(after) == []
    assert second["base_commit"] == first["head_commit"]

    mine = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", str(chat.root.parent / "closed.git"), "clone")
    done = chat.fleet("session", "checkout", first["session"], "--directory", str(mine))
    assert [order["pushed"] for order in (first, third)] == [False, False]
    assert done.returncode == 0, done.stderr
    assert "from the bundle" in done.stderr
    assert (mine / "notes.txt").read_text().splitlines() == [*(f"note {n}" for n in range(1, 9)), "noted"]
    assert git(mine, "rev-parse", "--abbrev-ref", "HEAD") == third["branch"]


def test_the_journal_on_the_drone_and_the_steps_in_the_database_are_the_same(chat: WholeFleet, tmp_path: Path) -> None:
    mila = chat.workstations[0]
    order_id = chat.submit("Take your time, script:slow", "--drone", "mila")["id"]
    run_id = wait_until(lambda: [run["id"] for run in chat.order(order_id)["runs"]])[0]
    journal = DroneHome(Path(mila.environment["DRONE_HOME"])).run_dir(run_id) / "journal.jsonl"
    # The drone deletes the journal once all of it is confirmed; a hard link keeps the file.
    os.link(journal, tmp_path / "journal")

    steps = chat.ended(order_id)["steps"]

    events = [json.loads(line) for line in (tmp_path / "journal").read_text().splitlines()]
    assert [(event["seq"], event["body"]) for event in events] == [(step["seq"], _body(step)) for step in steps]
    assert {event["run_id"] for event in events} == {run_id}


def _body(step: Doc) -> Doc:
    return {key: value for key, value in step.items() if key not in {"seq", "run", "at", "late", "undone"}}
