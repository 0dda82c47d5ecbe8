"""The run behind `drone run`, in this process: real git, a sandbox where there is one, a scripted model over HTTP."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from drone.local.document import LocalResult, document
from drone.local.order import LocalWishes
from drone.local.run import run_here
from drone.model.scripted.server import ScriptedServer
from shared.errors import Invalid
from tests.support.local_runs import MEND, MODEL, TALK, WRITE, call, files_of, git, make_repository
from tests.support.scripted import ScriptedFactory

KEY = "right-key-9876"


@pytest.fixture(autouse=True)
def copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where copies are made: the test can see whether they were removed."""
    directory = tmp_path / "copies"
    directory.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(directory))
    return directory


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "my project")


@pytest.fixture
def mending() -> Iterator[ScriptedServer]:
    with ScriptedServer(MEND) as server:
        yield server


@pytest.fixture
def talking() -> Iterator[ScriptedServer]:
    with ScriptedServer(TALK) as server:
        yield server


def work(repo: Path | str, server: ScriptedServer, environ: dict[str, str] | None = None, **wishes: Any) -> LocalResult:
    wished = LocalWishes(prompt="Mend the sum", repo=str(repo), model=MODEL, api_base=server.url)
    return run_here(replace(wished, **wishes), {**os.environ, **(environ or {})})


def test_a_repository_is_not_written_to_and_no_copy_is_left_behind(
    repo: Path, mending: ScriptedServer, copies: Path
) -> None:
    """Not even where git would refresh its index."""
    (repo / "docs").mkdir()
    (repo / "sums.py").touch()
    before = files_of(repo)

    result = work(repo / "docs", mending)

    assert b"+    return a + b" in (result.patch or b"")
    assert files_of(repo) == before
    assert list(copies.iterdir()) == []


def test_a_repository_may_be_given_by_its_url_and_one_that_is_not_there_fails_the_run(
    repo: Path, tmp_path: Path, talking: ScriptedServer, copies: Path
) -> None:
    missing = document(work(f"file://{tmp_path}/nothing.git", talking))
    assert (missing["status"], missing["patch"], missing["base_commit"]) == ("failed", None, None)
    assert talking.requests == []
    assert list(copies.iterdir()) == []

    git(tmp_path, "clone", "--quiet", "--bare", str(repo), "bare.git")
    found = document(work(f"file://{tmp_path}/bare.git", talking))
    assert (found["patch"], found["branch"], found["head_commit"], found["receipt"]) == ("", None, None, None)
    assert found["stats"]["cost_usd"] is None  # nobody knows the price of a scripted model


def test_the_model_gets_the_parameters_and_a_placeholder_and_never_a_key_from_the_environment(
    repo: Path, talking: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-mine-and-secret")

    assert work(repo, talking, params={"temperature": 0.5, "seed": 7}).succeeded

    assert (talking.requests[0]["temperature"], talking.requests[0]["seed"]) == (0.5, 7)
    sent = {name.lower(): value for name, value in talking.received[0].headers.items()}["authorization"]
    assert sent.startswith("Bearer ")
    assert "sk-mine" not in sent


@pytest.mark.usefixtures("bwrap")
def test_the_owners_policy_holds_and_the_first_request_says_once_what_commands_can_reach(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scripted: ScriptedFactory
) -> None:
    rules = '[network]\naccess = "hosts"\nhosts = ["git.example.org", "192.0.2.7:3000"]\n'
    (tmp_path / "policy.toml").write_text(f'{rules}[limits]\nfile_size = "1 MiB"\n')
    monkeypatch.setenv("DRONE_POLICY", str(tmp_path / "policy.toml"))
    server = scripted([call("shell", command="exec head -c 3000000 /dev/zero > big"), {"text": "Too large."}])

    steps = document(work(repo, server))["steps"]

    (result,) = (step for step in steps if step["kind"] == "tool_result")
    assert "a file reached the largest size that this drone allows" in result["output"]
    (shell,) = (tool["function"] for tool in server.requests[0]["tools"] if tool["function"]["name"] == "shell")
    assert "Network: only git.example.org, 192.0.2.7:3000" in shell["description"]
    assert json.dumps(server.requests[0]).count("Network: ") == 1


def test_bytes_that_are_no_text_survive_in_the_patch_and_do_not_drive_the_terminal(
    repo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = [call("shell", command=r"printf 'caf\351\n' > latin.txt"), {"text": "All is well.\x1b]0;title\x07\x1b[2J"}]
    with ScriptedServer(script) as server:
        result = work(repo, server, sandbox="none")

    assert b"+caf\xe9" in (result.patch or b"")
    assert "everything that this machine can reach" in json.dumps(server.requests[0]["tools"])
    told = capsys.readouterr().err
    assert "All is well." in told
    assert "\x1b]" not in told
    assert "\x07" not in told


def test_a_parameter_that_is_an_option_is_refused(repo: Path, talking: ScriptedServer) -> None:
    with pytest.raises(Invalid, match="api_key, model cannot be given as a parameter"):
        work(repo, talking, params={"model": "openai/other", "api_key": "sk-1"})

    assert talking.requests == []


def test_a_run_over_its_time_fails_and_keeps_its_work(repo: Path) -> None:
    with ScriptedServer([WRITE, {"text": "late", "delay_s": 60}]) as server:
        result = work(repo, server, max_run_seconds=5)

    assert (document(result)["status"], document(result)["exit_status"]) == ("failed", "time_limit")
    assert b"+    return a + b" in (result.patch or b"")


def test_the_key_comes_from_the_variable_and_is_never_shown(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = [call("shell", command=f"echo it is {KEY}"), {"text": f"The key is {KEY}."}]
    with ScriptedServer(script, api_key=KEY) as server:
        result = work(repo, server, {"KEY": KEY}, api_key_variable="KEY")

    assert result.succeeded
    assert KEY not in json.dumps(document(result))
    assert KEY not in capsys.readouterr().err


def test_an_empty_repository_gets_its_first_files(tmp_path: Path, mending: ScriptedServer) -> None:
    (tmp_path / "empty").mkdir()
    git(tmp_path / "empty", "init", "--quiet")

    result = work(tmp_path / "empty", mending)

    assert document(result)["base_commit"] is None
    assert b"+    return a + b" in (result.patch or b"")
