"""Runs that mini-swe-agent recorded, played by our loop with the real tools."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from drone.replay import ReplayResult, ReplayWishes, replay
from drone.replay.trajectory_file import recording_of
from tests.support.command_tree import invoke
from tests.support.local_runs import files_of
from tests.support.mini_recording import FORMS, RECORDINGS, make_project

Doc = dict[str, Any]
COMMANDS = {"toolcall": 19, "textbased": 18}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository that the stored recordings are of."""
    return make_project(tmp_path_factory.mktemp("recorded") / "project")


def stored(form: str) -> Path:
    return RECORDINGS / f"{form}.traj.json"


def document_of(form: str) -> Doc:
    document: Doc = json.loads(stored(form).read_text())
    return document


def played(document: Doc, project: Path) -> ReplayResult:
    return replay(recording_of(document), ReplayWishes(str(project), "none"), os.environ)


def with_text_alone(document: Doc) -> Doc:
    """Without what is said beside the texts: only the message at the end keeps it."""
    bare = [
        message if message["role"] == "exit" else {name: value for name, value in message.items() if name != "extra"}
        for message in document["messages"]
    ]
    return {**document, "messages": bare}


@pytest.mark.usefixtures("bwrap")
def test_a_run_of_mini_swe_agent_replays_with_the_same_observations(project: Path) -> None:
    before, path = files_of(project), str(stored("toolcall"))

    done = invoke("drone", "replay", path, "--repo", str(project), "--sandbox", "bwrap", "--json")

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["compared"], found["same"]) == (COMMANDS["toolcall"], COMMANDS["toolcall"])
    assert (found["first_difference"], found["exit_status"]) == (None, "submitted")
    assert files_of(project) == before


@pytest.mark.parametrize("form", FORMS)
def test_the_text_of_the_observations_is_enough(project: Path, form: str) -> None:
    result = played(with_text_alone(document_of(form)), project)

    assert (result.difference, result.exit_status) == (None, "submitted")
    assert (result.same, result.compared) == (True, COMMANDS[form])


def changes_output(message: Doc) -> None:
    message["extra"]["raw_output"] = re.sub(r"(?s)(.*)\S", r"\1#", message["extra"]["raw_output"], count=1) or "#"


def changes_code(message: Doc) -> None:
    message["extra"]["returncode"] += 1


def changes_time_limit(message: Doc) -> None:
    message["extra"]["exception_info"] = ""


@pytest.mark.parametrize(
    ("form", "number", "change"),
    [
        ("textbased", 3, changes_code),
        ("toolcall", 5, changes_time_limit),
        ("textbased", 6, changes_output),
    ],
)
def test_a_changed_observation_is_named_and_no_other(
    project: Path, form: str, number: int, change: Callable[[Doc], None]
) -> None:
    document = document_of(form)
    observations = [message for message in document["messages"] if "raw_output" in message.get("extra", {})]
    change(observations[number])

    result = played(document, project)

    assert result.difference is not None
    assert (result.compared, result.document()["same"]) == (number + 1, number)
    first_two_are_one = form == "toolcall"
    assert result.difference.step == number + 1 - first_two_are_one
    assert result.exit_status is None


def test_the_submission_is_compared_too(project: Path) -> None:
    document = document_of("textbased")
    document["messages"][-1]["extra"]["submission"] += "more"

    result = played(document, project)

    assert result.difference is not None
    assert "COMPLETE_TASK" in result.difference.made.command
    assert "-more" in result.difference.diff()


def test_the_process_says_step_command_expected_and_actual(project: Path, tmp_path: Path) -> None:
    document = document_of("toolcall")
    document["messages"][3]["extra"] |= {"raw_output": "something else\n", "returncode": 7}
    path = tmp_path / "changed.traj.json"
    path.write_text(json.dumps(document))

    told = invoke("drone", "replay", str(path), "--repo", str(project), "--sandbox", "none")
    as_json = invoke("drone", "replay", str(path), "--repo", str(project), "--sandbox", "none", "--json")

    assert (told.returncode, as_json.returncode) == (1, 1)
    assert told.stdout.startswith("step 1, call 1 differs: shell\n  cat total.sh\nexpected: return code 7\nactual:")
    assert "\n-something else\n+#!/bin/sh\n" in told.stdout
    found = json.loads(as_json.stdout)
    first = found["first_difference"]
    assert (found["steps"], found["compared"], found["same"], found["exit_status"]) == (1, 1, 0, None)
    assert (first["step"], first["call"], first["command"]) == (1, 1, "cat total.sh")
    assert (first["expected"]["return_code"], first["actual"]["return_code"]) == (7, 0)
    assert first["expected"]["output"] == "something else\n"
