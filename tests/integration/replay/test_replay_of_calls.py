"""Replaying what is made by hand: our own tools, calls that were not run, long outputs, Ctrl-C, wrong use."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from drone.replay import ReplayResult, ReplayWishes, replay
from drone.replay.comparing import diff_of
from drone.replay.trajectory_file import recording_of
from shared.errors import FleetError, Precondition
from shared.trajectories import FORMAT, NOT_EXECUTED
from tests.support import wait_until
from tests.support.command_tree import BIN, clean_environment, invoke
from tests.support.local_runs import FIXED, make_repository
from tests.support.sandboxes import processes_with

Doc = dict[str, Any]
SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
SKIPPED = {"raw_output": "", "returncode": -1, "exception_info": NOT_EXECUTED}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "project")


def step(*made: tuple[str, Doc, Doc | None], text: str = "I go on.") -> list[Doc]:
    """An assistant message with calls of (tool, arguments, what is said beside the result), and the results."""
    calls = [
        {"id": f"c{at}", "function": {"name": tool, "arguments": json.dumps(arguments)}}
        for at, (tool, arguments, _) in enumerate(made)
    ]
    results = [
        {"role": "tool", "tool_call_id": f"c{at}", "content": "", "extra": extra}
        for at, (_, _, extra) in enumerate(made)
        if extra is not None
    ]
    return [{"role": "assistant", "content": text, "tool_calls": calls}, *results]


def ran(command: str, output: str, code: int = 0) -> tuple[str, Doc, Doc]:
    return "bash", {"command": command}, {"raw_output": output, "returncode": code, "exception_info": ""}


def document_of(*messages: list[Doc], **info: Any) -> Doc:
    return {"trajectory_format": FORMAT, "messages": [each for some in messages for each in some], "info": info}


def played(repo: Path, *messages: list[Doc], timeout: float | None = None, **info: Any) -> ReplayResult:
    return replay(recording_of(document_of(*messages, **info)), ReplayWishes(str(repo), "none", timeout), os.environ)


def test_our_own_tools_are_played_by_their_names(repo: Path) -> None:
    written = ("file_write", {"path": "sums.py", "content": FIXED}, None)

    result = played(
        repo,
        step(written, ran("cat sums.py", FIXED)),
        step(("file_read", {"mode": "lines", "path": "sums.py", "start_line": 9}, {"raw_output": "nothing such"})),
    )

    assert result.unreadable == 1
    assert result.difference is not None
    assert (result.difference.step, result.difference.made.tool) == (2, "file_read")


def test_what_was_not_run_then_or_is_not_here_is_passed_over(repo: Path) -> None:
    refusal = [{"role": "user", "content": "No!", "extra": {"interrupt_type": "UserRejection"}}]
    task = [{"role": "user", "content": "And now this.", "extra": {"interrupt_type": "UserNewTask"}}]
    useless = [{"role": "assistant", "content": ""}, {"role": "user", "content": "Say something."}]

    result = played(
        repo,
        step(("bash", {"command": "rm sums.py"}, SKIPPED)),
        refusal,
        step(
            ran("cd /testbed && ls -d /testbed", "/testbed\n"), ("look_up", {"word": "sum"}, {"raw_output": "A total."})
        ),
        *[useless] * 5,
        step(("bash", {"command": SUBMIT}, SKIPPED)),
        task,
        *[step(ran(f"echo {n}", f"{n}\n")) for n in range(3)],
        config={"environment": {"cwd": "/testbed"}},
    )

    assert (result.difference, result.same, result.compared, result.not_run) == (None, True, 4, 2)


def test_a_recording_without_end_or_observations_is_not_the_same_and_without_its_commit_refused(repo: Path) -> None:
    result = played(repo, step(ran(SUBMIT, "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n")), step(ran("echo a", "a\n")))

    assert (result.same, result.left, result.difference) == (False, 1, None)
    assert not played(repo, step(("bash", {"command": "echo a"}, None))).same
    with pytest.raises(Precondition) as refused:
        played(repo, step(ran("ls", "")), dronefleet={"base_commit": "1" * 40})
    assert refused.value.code == "E-TRAJECTORY-BASE"


def test_every_character_of_a_long_output_counts_unless_it_was_elided(repo: Path) -> None:
    command, output, own = "printf '%030000d' 0 | tr 0 x", "x" * 30_000, {"dronefleet": {"run": "r"}}
    elided = f"{'x' * 5000}\n[… 20,000 characters elided …]\n{'x' * 5000}"
    for changed in (0, 15_000, 29_999):
        assert not played(repo, step(ran(command, f"{output[:changed]}y{output[changed + 1 :]}"))).same
    assert played(repo, step(ran(command, output))).same
    assert played(repo, step(ran(command, elided)), **own).same
    assert not played(repo, step(ran(command, elided.replace("20,000", "20,001"))), **own).same


def test_what_is_no_trajectory_ends_with_2_before_anything_is_run(repo: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.traj.json"
    path.write_text("no\0thing")

    done = invoke("drone", "replay", str(path), "--repo", str(repo), "--json")

    assert (done.returncode, done.stdout) == (2, "")
    assert json.loads(done.stderr)["code"] == "E-TRAJECTORY-FORMAT"
    for document in ({}, {"trajectory_format": "mini-swe-agent-1"}):
        with pytest.raises(FleetError) as refused:
            recording_of(document)
        assert refused.value.code == "E-TRAJECTORY-FORMAT"


def test_ctrl_c_ends_it_with_130_and_leaves_nothing_behind(repo: Path, tmp_path: Path) -> None:
    path, copies = tmp_path / "x.traj.json", tmp_path / "copies"
    path.write_text(json.dumps(document_of(step(ran("sleep 61.87654", "")))))
    copies.mkdir()
    process = subprocess.Popen(
        [str(BIN / "drone"), "replay", str(path), "--repo", str(repo), "--sandbox", "none"],
        env={**clean_environment(), "TMPDIR": str(copies)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    wait_until(lambda: processes_with("61.87654"), seconds=60)

    os.kill(process.pid, signal.SIGINT)
    said = process.communicate(timeout=60)

    assert (process.returncode, said[0]) == (130, b"")
    assert processes_with("61.87654") == []
    assert list(copies.iterdir()) == []


def test_a_diff_begins_where_the_outputs_part() -> None:
    old = "\n".join(map(str, range(10_000)))

    shown = diff_of(old, old.replace("\n9000\n", "\nother\n")).splitlines()

    assert {"-9000", "+other"} <= set(shown)
    assert len(shown) < 1000
    line = diff_of("a" * 50_000 + "b", "a" * 50_000 + "c")
    assert len(line) < 1000
    assert "ab" in line
    assert "ac" in line
