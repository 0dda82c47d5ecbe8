"""Extensions in `drone run`: the owner's always, the repository's only where the owner's policy says so."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from drone.local.document import LocalResult, document
from drone.local.order import LocalWishes
from drone.local.run import run_here
from drone.model.scripted.server import ScriptedServer
from tests.support.extensions import write
from tests.support.local_runs import MODEL, call, files_of, git, make_repository
from tests.support.scripted import ScriptedFactory, says
from tests.support.transcripts import transcript_problems

CLOCK = """
    def extend(api):
        api.tool("clock", "The time.", None, lambda arguments: "half past {word}", read_only=True)
"""
NO_PUSH = """
    from drone.extensions import Verdict

    class NoPush:
        def before_call(self, call):
            return Verdict("block", "nothing is pushed.", "no_push") if "git push" in call.arguments else None

    guardrail = NoPush()
"""
SCRIPT = [call("clock"), call("shell", command="git push"), call("shell", command="echo fine"), says("Done.")]

pytestmark = [pytest.mark.usefixtures("warm_model"), pytest.mark.timeout(180)]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The drone's home; the owner's configuration is beside it."""
    copies = tmp_path / "copies"
    copies.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(copies))
    monkeypatch.setenv("DRONE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DRONE_POLICY", str(tmp_path / "policy.toml"))
    return tmp_path / "home"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository that brings an extension and a guardrail."""
    path = make_repository(tmp_path / "project")
    write(path, ".dronefleet/extensions/clock.py", CLOCK.format(word="six"))
    write(path, ".dronefleet/guardrails/no_push.py", NO_PUSH)
    git(path, "add", ".")
    git(path, "-c", "user.name=T", "-c", "user.email=t@example.org", "commit", "--quiet", "--message", "Bring code")
    return path


def work(repo: Path, server: ScriptedServer) -> dict[str, Any]:
    """The document of a run, whose transcript keeps its rule."""
    wishes = LocalWishes(prompt="Look at the clock", repo=str(repo), model=MODEL, api_base=server.url)
    result: LocalResult = run_here(wishes, os.environ)
    order: dict[str, Any] = document(result)
    assert transcript_problems(order) == []
    return order


def outputs(order: dict[str, Any]) -> list[str]:
    return [step["output"] for step in order["steps"] if step["kind"] == "tool_result"]


def reports(order: dict[str, Any]) -> list[str]:
    return [step["what"] for step in order["steps"] if step["kind"] == "error"]


def test_the_owners_files_take_part_in_every_run(home: Path, repo: Path, scripted: ScriptedFactory) -> None:
    write(home, "extensions/clock.py", CLOCK.format(word="nine"))
    write(home, "guardrails/no_push.py", NO_PUSH)
    server = scripted(SCRIPT)
    order = work(repo, server)
    assert outputs(order)[:2] == ["half past nine", "This call was blocked: nothing is pushed."]
    assert "fine" in outputs(order)[2]
    (ruled,) = [step for step in order["steps"] if step["kind"] == "guardrail"]
    assert (ruled["guardrail"], ruled["action"], ruled["code"]) == ("no_push", "block", "no_push")
    assert "clock" in [tool["function"]["name"] for tool in server.requests[0]["tools"]]
    assert reports(order) == []


def test_a_repositorys_code_takes_part_only_where_the_owner_allows_it_and_leaves_no_trace(
    tmp_path: Path, repo: Path, scripted: ScriptedFactory
) -> None:
    server = scripted(SCRIPT)
    order = work(repo, server)
    assert "there is no tool named 'clock'" in outputs(order)[0]
    assert "nothing is pushed" not in outputs(order)[1]
    assert "clock" not in [tool["function"]["name"] for tool in server.requests[0]["tools"]]

    (tmp_path / "policy.toml").write_text("[repositories]\nextensions = true\n")
    before = files_of(repo)
    order = work(repo, scripted(SCRIPT))
    assert outputs(order)[:2] == ["half past six", "This call was blocked: nothing is pushed."]
    assert (order["patch"], files_of(repo) == before) == ("", True)
