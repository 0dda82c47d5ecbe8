"""The main job as users see it: a prompt goes in, a branch and a patch come back."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from drone.model.scripted.server import ScriptedServer
from tests.support.repositories import calc_project, git
from tests.support.transcripts import transcript_problems
from tests.support.whole_fleet import WholeFleet

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bare repository whose only test fails."""
    return calc_project(tmp_path_factory.mktemp("remote") / "calc.git")


@pytest.fixture(scope="module")
def fleet(shared_fleet: WholeFleet, model: ScriptedServer, remote: Path) -> WholeFleet:
    shared_fleet.add_work(model.url, f"file://{remote}")
    return shared_fleet


def test_a_work_order_becomes_a_branch_on_the_remote_and_a_patch_that_applies(
    fleet: WholeFleet, remote: Path, tmp_path: Path
) -> None:
    done = fleet.fleet("submit", "Fix the failing test, script:fix", "--project", "demo", "--follow")
    order = fleet.json("show", "@last")

    assert done.returncode == 0, done.stdout + done.stderr
    for shown in ("I look at the files first.", "✓ shell: python3 test_calc.py (", "return a - b", "✓ done"):
        assert shown in done.stdout
    assert (order["status"], order["exit_status"], order["pushed"]) == ("succeeded", "submitted", True)
    assert git(remote, "rev-parse", order["branch"]) == order["head_commit"]
    git(tmp_path, "clone", "--quiet", str(remote), "clone")
    subprocess.run(["git", "apply"], cwd=tmp_path / "clone", input=order["patch"], text=True, check=True)
    assert "return a + b" in (tmp_path / "clone" / "calc.py").read_text()

    # Every call has its one result, and the document holds the whole story.
    assert transcript_problems(order) == []
    assert order["response"] == "calc.add adds now, and its test passes."
    assert (order["stats"]["tool_calls"], order["stats"]["input_tokens"] > 0) == (4, True)
    assert [run["status"] for run in order["runs"]] == ["success"]


def test_following_as_json_gives_an_event_a_line_and_the_document_last(fleet: WholeFleet) -> None:
    done = fleet.fleet("submit", "Go on, script:flaky", "--project", "demo", "--follow", "--json")
    failed = fleet.fleet("submit", "Ask in vain, script:refused", "--project", "demo", "--follow")

    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0
    assert {"step", "delta", "order"} >= {line["event"] for line in lines[:-1]}
    assert (lines[-1]["status"], lines[-1]["response"]) == ("succeeded", "Said at last.")
    # The model failed twice on the way.
    assert [step["attempt"] for step in lines[-1]["steps"] if step["kind"] == "retry"] == [1, 2]
    seqs = [line["seq"] for line in lines[:-1] if line["event"] == "step"]
    assert seqs == list(range(1, len(lines[-1]["steps"]) + 1))
    assert failed.returncode == 1
    assert "✗ failed" in failed.stdout
    assert "Traceback" not in failed.stdout + failed.stderr
