"""`drone run` as its user sees it: a process, a repository, and a scripted model behind a real HTTP endpoint.

Each run here has to load the model library; everything that can be tested in process is in tests/integration.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from control_plane.contract.documents.orders import OrderDocument
from drone.model.scripted.server import ScriptedServer
from tests.support import wait_until, warm_processes
from tests.support.command_tree import PROGRAMS, clean_environment, invoke
from tests.support.ending import wait_for_end
from tests.support.local_runs import FIXED, MEND, MODEL, TALK, WRITE, call, files_of, git, make_repository
from tests.support.transcripts import transcript_problems

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.apart,
]  # on a busy machine the model library alone takes half a minute to load

CONTROL_PLANE_ALONE = {
    *("profile", "reviewer", "after", "merge_only", "graph", "race", "batch", "key", "session_title", "files_changed"),
    *("lines_added", "lines_removed", "ticket", "verify", "agent", "task", "purpose", "pull_request", "limits"),
    *("unsettled", "plan", "removed"),
}
"""Fields of an order that a run without a control plane does not have."""


@pytest.fixture(autouse=True)
def copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory in which copies are made, so that a test can check that they were removed."""
    directory = tmp_path / "copies"
    directory.mkdir()
    monkeypatch.setenv("TMPDIR", str(directory))
    return directory


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "my project")


@pytest.fixture
def mending() -> Iterator[ScriptedServer]:
    with ScriptedServer(MEND) as server:
        yield server


def drone_run(repo: Path, server: ScriptedServer, *more: str, **options: Any) -> subprocess.CompletedProcess[str]:
    words = ("run", "Mend the sum", "--repo", str(repo), "--model", MODEL, "--api-base", server.url, *more)
    return invoke("drone", *words, seconds=170, **options)


def test_the_patch_is_printed_and_applies_and_progress_is_told_beside_it(
    repo: Path, mending: ScriptedServer, copies: Path, tmp_path: Path
) -> None:
    before = files_of(repo)

    done = drone_run(repo, mending, env={"HOME": str(tmp_path / "nobody")})

    assert done.returncode == 0, done.stderr
    assert files_of(repo) == before
    assert list(copies.iterdir()) == []
    assert not (tmp_path / "nobody").exists()
    assert ["✓ shell: " in done.stderr, " ms)" in done.stderr, "The sum is right now." in done.stderr] == [True] * 3
    subprocess.run(["git", "-C", str(repo), "apply"], input=done.stdout, text=True, check=True)
    assert (repo / "sums.py").read_text() == FIXED


def test_a_trajectory_is_written_beside_the_document_and_replays_the_same(
    repo: Path, mending: ScriptedServer, tmp_path: Path
) -> None:
    file = tmp_path / "run.traj.json"

    options = ("--json", "--thinking", "xhigh", "--trajectory", str(file), "--context-window", "64000")
    done = drone_run(repo, mending, *options)
    again = invoke("drone", "replay", str(file), "--repo", str(repo), "--json", seconds=170)

    assert (done.returncode, again.returncode) == (0, 0), (done.stderr, again.stderr)
    found, replayed = json.loads(done.stdout), json.loads(again.stdout)
    assert set(found) == set(OrderDocument.model_fields) - CONTROL_PLANE_ALONE
    assert [found["thinking"], *(each["reasoning_effort"] for each in mending.requests)] == ["xhigh"] * 5
    expected = {
        **{"status": "succeeded", "exit_status": "stopped", "outcome": "done", "mode": "build", "model": MODEL},
        **{"prompt": "Mend the sum", "response": "The sum is right now.", "drone": None, "organization": None},
        "base_commit": git(repo, "rev-parse", "HEAD"),
    }
    assert {name: found[name] for name in expected} == expected
    assert "+    return a + b" in found["patch"]
    assert found["stats"]["tool_calls"] == 3
    assert transcript_problems(found) == []
    assert json.loads(file.read_text())["trajectory_format"] == "mini-swe-agent-1.1"
    assert replayed["first_difference"] is None
    assert replayed["same"] == replayed["compared"] > 0


def test_a_run_that_fails_ends_with_1_and_one_sentence(repo: Path) -> None:
    with ScriptedServer(TALK, api_key="right") as server:
        done = drone_run(repo, server, "--api-key-env", "KEY", env={"KEY": "wrong-key-1234"})

    assert (done.returncode, done.stdout) == (1, "")
    assert "failed: " in done.stderr
    assert "Traceback" not in done.stderr
    assert "wrong-key-1234" not in done.stderr


def test_ctrl_c_ends_the_run_and_prints_the_work_so_far(repo: Path, copies: Path, tmp_path: Path) -> None:
    with _interrupted(repo, "sleep 600", told=tmp_path / "told") as running:
        patch, _ = running.communicate(timeout=60)
    told = (tmp_path / "told").read_text()

    assert running.returncode == 130
    assert "+    return a + b" in patch
    assert "Traceback" not in told
    assert told.rstrip().endswith("interrupted")
    assert list(copies.iterdir()) == []


def test_a_second_ctrl_c_ends_it_at_once_and_says_where_the_copy_is(repo: Path, copies: Path, tmp_path: Path) -> None:
    stubborn = "trap '' TERM INT; while true; do sleep 1; done"
    with _interrupted(repo, stubborn, "--sandbox", "none", told=tmp_path / "told") as running:
        processes = psutil.Process(running.pid).children(recursive=True)
        wait_until(lambda: "press Ctrl-C again to end it immediately" in (tmp_path / "told").read_text())
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=60)
    told = (tmp_path / "told").read_text()

    assert running.returncode == 130
    assert "Traceback" not in told
    assert [path.name for path in copies.iterdir() if path.name in told] != []
    wait_for_end(each.pid for each in processes)


@contextmanager
def _interrupted(repo: Path, command: str, *more: str, told: Path) -> Iterator[subprocess.Popen[str]]:
    """A run that changed a file, after one Ctrl-C in this command, which sleeps; its stderr goes to the file `told`."""
    script = [WRITE, call("shell", command=command), *TALK]
    environment = {**clean_environment(), "TMPDIR": os.environ["TMPDIR"]}
    with ScriptedServer(script) as server, told.open("w") as talk:
        words = ("run", "Mend the sum", "--repo", str(repo), "--model", MODEL, "--api-base", server.url, *more)
        with warm_processes.popen(
            [*PROGRAMS["drone"], *words], stdout=subprocess.PIPE, stderr=talk, text=True, env=environment
        ) as running:
            try:
                wait_until(lambda: _sleeps_below(running.pid), seconds=150)
                running.send_signal(signal.SIGINT)
                yield running
            finally:
                running.kill()


def _sleeps_below(pid: int) -> bool:
    return any(_name(process) == "sleep" for process in psutil.Process(pid).children(recursive=True))


def _name(process: psutil.Process) -> str:
    """The name of the process; empty if it has ended since it was found."""
    with suppress(psutil.NoSuchProcess):
        return str(process.name())
    return ""
