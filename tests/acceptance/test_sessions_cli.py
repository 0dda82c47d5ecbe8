"""Sessions as users see them: the context of a turn on any drone, switching back, forking and checking out."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from drone.installation.home import DroneHome
from drone.model.scripted.server import ScriptedServer
from shared.blobs import INLINE_CONTEXT
from shared.transcripts import problems
from tests.acceptance.scripts import Reply, shell
from tests.support import wait_until
from tests.support.repositories import calc_project, git
from tests.support.whole_fleet import WholeFleet, WorkstationDrone

pytestmark = pytest.mark.timeout(300)

Doc = dict[str, Any]
LOOK: list[Reply] = [
    {**shell("ls; cat calc.py; exit 3"), "text": "I look.", "thinking": "What is there?"},
    *[shell(f"seq {n}0000 {n}9999; echo note {n} >> notes.txt") for n in range(1, 9)],
    {"text": "I have seen it all."},
]
SCRIPTS: dict[str, list[Reply]] = {
    "look": LOOK,
    "after": [{"text": "I remember."}],
    "note": [shell("echo noted >> notes.txt"), {"text": "Noted."}],
    "slow": [shell("echo begun; sleep 4; echo done > slow.txt"), {"text": "Done, slowly."}],
    "refused": [{"status": 401, "error": "Incorrect API key provided"}],
}


@pytest.fixture(scope="module")
def chats() -> Iterator[ScriptedServer]:
    """A scripted model (a stand-in) that only this module uses."""
    with ScriptedServer(SCRIPTS) as server:
        yield server


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return calc_project(tmp_path_factory.mktemp("chats") / "calc.git")


@pytest.fixture(scope="module")
def fleet(
    tmp_path_factory: pytest.TempPathFactory, chats: ScriptedServer, remote: Path
) -> Iterator[tuple[WholeFleet, WorkstationDrone]]:
    """A fleet with two drones on workstations, mila and oka; the second value is mila."""
    whole = WholeFleet(tmp_path_factory.mktemp("sessions") / "fleet", drones=0)
    try:
        whole.start()
        whole.add_work(chats.url, f"file://{remote}")
        mila, oka = whole.workstation("mila"), whole.workstation("oka")
        mila.start()
        oka.start()
        whole.online("mila", "oka", seconds=60)
        yield whole, mila
        assert whole.transcript_problems() == []
    finally:
        whole.close()


@pytest.fixture(scope="module")
def chat(fleet: tuple[WholeFleet, WorkstationDrone]) -> WholeFleet:
    return fleet[0]


def turn(chat: WholeFleet, prompt: str, *options: str) -> Doc:
    """An order that was submitted and has ended."""
    return chat.ended(chat.submit(prompt, *options)["id"])


def asked(chats: ScriptedServer, prompt: str) -> list[list[Doc]]:
    """The messages of every request whose last prompt is this one."""
    found = [request["messages"] for request in chats.requests]
    return [messages for messages in found if prompt in _last_prompt(messages)]


def _last_prompt(messages: list[Doc]) -> str:
    return next(str(message["content"]) for message in reversed(messages) if message["role"] == "user")


def seen(chats: ScriptedServer, prompt: str) -> str:
    """The last request with this prompt, as one text."""
    return json.dumps(asked(chats, prompt)[-1])


def test_a_turn_on_another_drone_begins_with_exactly_the_messages_of_the_turn_before(
    chat: WholeFleet, chats: ScriptedServer
) -> None:
    first = turn(chat, "Look around, script:look", "--drone", "mila")
    second = turn(chat, "What did you see, script:after", "--session", first["session"], "--drone", "oka")

    before = asked(chats, "Look around, script:look")[-1]
    [after] = asked(chats, "What did you see, script:after")
    assert (first["drone"], second["drone"]) == ("mila", "oka")
    assert json.dumps(after[: len(before)]) == json.dumps(before)
    assert len(json.dumps(before)) > INLINE_CONTEXT
    assert [message["role"] for message in after[len(before) :]] == ["assistant", "user"]
    assert after[len(before)]["content"] == "I have seen it all."
    assert sum(len(message.get("tool_calls") or ()) for message in after) == len(LOOK) - 1
    assert problems(after) == []
    assert second["base_commit"] == first["head_commit"]


def test_the_journal_on_the_drone_and_the_steps_in_the_database_are_the_same(
    fleet: tuple[WholeFleet, WorkstationDrone], tmp_path: Path
) -> None:
    chat, mila = fleet
    order_id = chat.submit("Take your time, script:slow", "--drone", "mila")["id"]
    run_id = wait_until(lambda: [run["id"] for run in chat.order(order_id)["runs"]])[0]
    # The drone deletes the journal once all of it is confirmed; a hard link keeps the file.
    os.link(_journal(mila, run_id), tmp_path / "journal")

    steps = chat.ended(order_id)["steps"]

    events = [json.loads(line) for line in (tmp_path / "journal").read_text().splitlines()]
    assert [(event["seq"], event["body"]) for event in events] == [(step["seq"], _body(step)) for step in steps]
    assert {event["run_id"] for event in events} == {run_id}


def _journal(drone: WorkstationDrone, run_id: str) -> Path:
    return DroneHome(Path(drone.environment["DRONE_HOME"])).run_dir(run_id) / "journal.jsonl"


def _body(step: Doc) -> Doc:
    return {key: value for key, value in step.items() if key not in {"seq", "run", "at", "late", "undone"}}


def test_a_turn_whose_model_refuses_stays_marked_and_the_next_one_does_not_see_it(
    chat: WholeFleet, chats: ScriptedServer
) -> None:
    first = turn(chat, "Note the first, script:note")
    failed = turn(chat, "Ask in vain, script:refused", "--session", first["session"])
    turn(chat, "Go on after the failure, script:after", "--session", first["session"])

    entries = chat.json("session", "show", first["session"])["entries"]
    assert failed["exit_status"] == "model_error"
    assert [(entry["error"], entry["on_path"]) for entry in entries if entry["kind"] == "turn"] == [
        (False, True),
        (True, False),
        (False, True),
    ]
    assert "Note the first" in seen(chats, "Go on after the failure, script:after")
    assert "Ask in vain" not in seen(chats, "Go on after the failure, script:after")


def test_going_back_and_aside_takes_words_and_files_along(chat: WholeFleet, chats: ScriptedServer) -> None:
    first = turn(chat, "Note one, script:note")
    session = first["session"]
    second = turn(chat, "Note two, script:note", "--session", session)

    fork = chat.json("session", "fork", session, "--at", first["id"], "--name", "aside")
    aside = turn(chat, "Note aside, script:note", "--session", fork["id"])
    switched = chat.fleet("session", "switch", session, first["id"])
    back = turn(chat, "Note back, script:note", "--session", session)

    assert second["base_commit"] == first["head_commit"]
    assert [aside["base_commit"], back["base_commit"]] == [first["head_commit"]] * 2
    assert (switched.returncode, first["id"] in switched.stderr) == (0, True)
    assert "Note two" not in seen(chats, "Note aside, script:note") + seen(chats, "Note back, script:note")
    assert "Note one" in seen(chats, "Note aside, script:note")


def test_the_tree_is_drawn_with_branches_labels_and_where_it_goes_on(chat: WholeFleet) -> None:
    first = turn(chat, "Note one, script:note")
    session = first["session"]
    second = turn(chat, "Note two, script:note", "--session", session)
    chat.json("session", "label", session, first["id"], "good start")
    chat.json("session", "switch", session, "good start")
    third = turn(chat, "Note three, script:note", "--session", session)

    drawn = chat.fleet("session", "show", session).stdout

    lines = [line for line in drawn.splitlines() if any(order["id"] in line for order in (first, second, third))]
    assert [line.split()[0] for line in lines] == ["●", "├─", "●"]
    assert "[good start]" in lines[0]
    assert lines[2].endswith("← the next turn continues here")


def test_a_busy_session_is_not_moved(chat: WholeFleet) -> None:
    order = chat.submit("Take your time, script:slow")

    done = chat.fleet("session", "switch", order["session"], "root")

    assert done.returncode == 4
    assert f"its order {order['id']} is" in done.stderr
    assert "fleet follow" in done.stderr
    assert chat.ended(order["id"])["status"] == "succeeded"


def test_sessions_are_begun_listed_renamed_and_set_to_a_mode(chat: WholeFleet) -> None:
    made = chat.fleet("session", "new", "--project", "demo", "--name", "Parser", "--mode", "plan")
    session = made.stdout.strip()

    chat.json("session", "rename", session, "The parser")
    chat.json("session", "mode", session, "test")

    listed = {each["id"]: each for each in chat.json("session", "ls")}
    assert made.returncode == 0
    assert (listed[session]["name"], listed[session]["mode"], listed[session]["turns"]) == ("The parser", "test", 0)
    assert "The parser" in chat.fleet("session", "ls").stdout
    assert turn(chat, "What mode, script:after", "--session", session)["mode"] == "test"


def test_a_compaction_asked_of_an_idle_session_is_kept_and_said(chat: WholeFleet) -> None:
    session = chat.json("session", "new", "--project", "demo")["id"]

    done = chat.fleet("session", "compact", session, "--instructions", "Keep the names.")

    assert "before its first model call" in done.stderr
    assert chat.json("session", "show", session)["compact"] == "Keep the names."


def test_wrong_use_of_sessions_is_told(chat: WholeFleet) -> None:
    session = chat.json("session", "new", "--project", "demo")["id"]
    tries = [
        ("show", "0123456789ab"),
        ("switch", session, "nothing"),
        ("mode", session, "sing"),
        ("checkout", session),
        ("new",),
    ]

    codes = [chat.fleet("session", *words).returncode for words in tries]

    assert codes == [3, 3, 3, 3, 2]


# --- checkouts into the user's own repository --------------------------------------------------


def clone(remote: Path, directory: Path) -> Path:
    git(directory, "clone", "--quiet", str(remote), "clone")
    return directory / "clone"


def test_a_sessions_work_is_checked_out_into_ones_own_clone(chat: WholeFleet, remote: Path, tmp_path: Path) -> None:
    session = turn(chat, "Note it, script:note")["session"]
    last = turn(chat, "And again, script:note", "--session", session)
    mine = clone(remote, tmp_path)
    git(mine, "remote", "rename", "origin", "upstream")

    printed = chat.fleet("session", "checkout", session).stdout
    done = chat.fleet("session", "checkout", session, "--directory", str(mine))

    assert f"git fetch origin {last['branch']}" in printed
    assert done.returncode == 0, done.stderr
    assert (mine / "notes.txt").read_text().split() == ["noted", "noted"]
    assert git(mine, "rev-parse", "--abbrev-ref", "HEAD") == last["branch"]


def test_a_checkout_overwrites_nothing(chat: WholeFleet, remote: Path, tmp_path: Path) -> None:
    session = turn(chat, "Note it, script:note")["session"]
    mine = clone(remote, tmp_path)
    (mine / "notes.txt").write_text("mine\n")

    done = chat.fleet("session", "checkout", session, "--directory", str(mine))

    assert done.returncode == 4
    assert "E-CHECKOUT-CHANGES" in done.stderr
    assert (mine / "notes.txt").read_text() == "mine\n"


def test_work_that_could_not_be_pushed_comes_from_the_bundle(
    chat: WholeFleet, chats: ScriptedServer, tmp_path: Path
) -> None:
    closed = calc_project(tmp_path / "closed.git")
    hook = closed / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    chat.json("project", "add", "closed", "--no-check", "--git-url", f"file://{closed}", "--provider", "scripted")
    first = chat.ended(chat.submit("Note it, script:note", project="closed")["id"])
    options = ("--session", first["session"], "--drone", "oka")
    last = chat.ended(chat.submit("And again, script:note", *options, project="closed")["id"])
    mine = clone(closed, tmp_path)

    done = chat.fleet("session", "checkout", first["session"], "--directory", str(mine))

    assert (first["pushed"], last["pushed"]) == (False, False)
    assert done.returncode == 0, done.stderr
    assert "from the bundle" in done.stderr
    assert (mine / "notes.txt").read_text().split() == ["noted", "noted"]


# --- pages --------------------------------------------------------------------------------------


def test_the_pages_show_the_sessions_and_a_tree(chat: WholeFleet) -> None:
    first = turn(chat, "Note <b>one</b>, script:note")
    second = turn(chat, "Note two, script:note", "--session", first["session"])
    chat.json("session", "rename", first["session"], "Parser & co")
    token = json.loads((chat.root / "fleet home" / "server.json").read_text())["token"]

    with httpx.Client(
        base_url=chat.url, headers={"Authorization": f"Bearer {token}"}, trust_env=False, verify=False
    ) as http:
        listed = http.get("/sessions")
        shown = http.get(f"/sessions/{first['session']}")

    assert (listed.status_code, shown.status_code) == (200, 200)
    assert f"/sessions/{first['session']}" in listed.text
    assert "Parser &amp; co" in shown.text
    assert f"/orders/{first['id']}" in shown.text
    assert f"/orders/{second['id']}" in shown.text
    assert "<b>one</b>" not in shown.text
    assert "next turn continues here" in shown.text
