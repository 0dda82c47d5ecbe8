"""The run behind `drone run`, in this process: real git, a sandbox where there is one, a scripted model over HTTP."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from drone.local.document import LocalResult, document
from drone.local.order import LocalWishes, order_of
from drone.local.run import run_here
from drone.model.scripted.server import ScriptedServer
from shared.errors import Invalid
from tests.support.extensions import write
from tests.support.local_runs import MEND, MODEL, TALK, WRITE, call, files_of, git, make_repository
from tests.support.scripted import ScriptedFactory, says
from tests.support.transcripts import transcript_problems

pytestmark = [pytest.mark.usefixtures("warm_model"), pytest.mark.timeout(180)]
KEY = "right-key-9876"
MENDED = b"+    return a + b"
TOOL = """
    def extend(api):
        api.tool("{name}", "The time.", None, lambda arguments: "half past six", read_only=True)
"""


@pytest.fixture(autouse=True)
def copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where copies are made: the test can see whether they were removed."""
    directory = tmp_path / "copies"
    directory.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(directory))
    monkeypatch.setenv("DRONE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DRONE_POLICY", str(tmp_path / "policy.toml"))
    return directory


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "my project")


def work(repo: Path | str, server: ScriptedServer, environ: dict[str, str] | None = None, **wishes: Any) -> LocalResult:
    wished = LocalWishes(prompt="Mend the sum", repo=str(repo), model=MODEL, api_base=server.url)
    return run_here(replace(wished, **wishes), {**os.environ, **(environ or {})})


def steps_of(result: LocalResult, kind: str) -> list[dict[str, Any]]:
    """The steps of a run, whose transcript keeps its rule."""
    assert transcript_problems(document(result)) == []
    return [step for step in document(result)["steps"] if step["kind"] == kind]


def outputs(result: LocalResult) -> list[str]:
    return [step["output"] for step in steps_of(result, "tool_result")]


def test_the_key_is_the_one_that_is_named_or_that_of_the_models_provider_at_its_own_address(repo: Path) -> None:
    keys = {"OPENAI_API_KEY": "sk-open", "BEDROCK_API_KEY": "sk-rock", "MINE": "sk-mine"}
    wished = LocalWishes(prompt="Mend the sum", repo=str(repo), model="openai/gpt-x")
    expected: list[tuple[dict[str, str], str | None]] = [
        ({}, "sk-open"),
        ({"api_key_variable": "MINE"}, "sk-mine"),
        ({"api_base": "https://elsewhere.example"}, None),
        ({"model": "anthropic/claude-x"}, None),
        ({"model": "bedrock/anthropic.claude-x"}, None),
        ({"model": "gpt-x"}, None),
    ]
    found = [(wishes, order_of(replace(wished, **wishes), keys).provider.api_key) for wishes, _ in expected]
    assert found == expected


# --- repositories --------------------------------------------------------------------------------


def test_a_repository_is_not_written_to_and_no_copy_left(
    repo: Path, tmp_path: Path, scripted: ScriptedFactory, copies: Path
) -> None:
    """Not even where git would refresh its index; an empty one gets its first files."""
    (repo / "docs").mkdir()
    (repo / "sums.py").touch()
    before = files_of(repo)
    result = work(repo / "docs", scripted(MEND))
    assert MENDED in (result.patch or b"")
    assert files_of(repo) == before

    (tmp_path / "empty").mkdir()
    git(tmp_path / "empty", "init", "--quiet")
    result = work(tmp_path / "empty", scripted(MEND))
    assert (document(result)["base_commit"], MENDED in (result.patch or b"")) == (None, True)
    assert list(copies.iterdir()) == []


def test_a_repository_may_be_given_by_its_url_and_one_that_is_not_there_fails_the_run(
    repo: Path, tmp_path: Path, scripted: ScriptedFactory, copies: Path
) -> None:
    talking = scripted(TALK)
    missing = document(work(f"file://{tmp_path}/nothing.git", talking))
    assert (missing["status"], missing["patch"], missing["base_commit"]) == ("failed", None, None)
    assert talking.requests == []
    assert list(copies.iterdir()) == []

    git(tmp_path, "clone", "--quiet", "--bare", str(repo), "bare.git")
    found = document(work(f"file://{tmp_path}/bare.git", talking))
    assert (found["patch"], found["branch"], found["head_commit"], found["receipt"]) == ("", None, None, None)
    assert found["stats"]["cost_usd"] is None  # nobody knows the price of a scripted model


def test_a_run_over_its_time_fails_and_keeps_its_work(repo: Path, scripted: ScriptedFactory) -> None:
    result = work(repo, scripted([WRITE, says("late", delay_s=60)]), max_run_seconds=5)
    assert (document(result)["status"], document(result)["exit_status"]) == ("failed", "time_limit")
    assert MENDED in (result.patch or b"")


def test_bytes_that_are_no_text_survive_in_the_patch_and_do_not_drive_the_terminal(
    repo: Path, scripted: ScriptedFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    latin = call("shell", command=r"printf 'caf\351\n' > latin.txt")
    server = scripted([latin, says("All is well.\x1b]0;title\x07\x1b[2J")])
    result = work(repo, server, sandbox="none")
    assert b"+caf\xe9" in (result.patch or b"")
    assert "everything that this machine can reach" in json.dumps(server.requests[0]["tools"])
    told = capsys.readouterr().err
    assert "All is well." in told
    assert [sign for sign in ("\x1b]", "\x07") if sign in told] == []


# --- parameters, keys and the owner's policy -----------------------------------------------------


def test_the_model_gets_the_parameters_and_the_key_of_the_variable_which_is_never_shown(
    repo: Path, scripted: ScriptedFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    server = scripted([call("shell", command=f"echo it is {KEY}"), says(f"The key is {KEY}.")], api_key=KEY)
    with pytest.raises(Invalid, match="api_key, model cannot be given as a parameter"):
        work(repo, server, params={"model": "openai/other", "api_key": "sk-1"})
    assert server.requests == []

    environ, params = {"KEY": KEY, "OPENAI_API_KEY": "sk-of-another"}, {"temperature": 0.5, "seed": 7}
    result = work(repo, server, environ, api_key_variable="KEY", params=params)
    assert result.succeeded
    assert (server.requests[0]["temperature"], server.requests[0]["seed"]) == (0.5, 7)
    assert KEY not in json.dumps(document(result))
    assert KEY not in capsys.readouterr().err


@pytest.mark.usefixtures("bwrap")
def test_the_owners_policy_holds_and_the_model_is_told_once(
    repo: Path, tmp_path: Path, scripted: ScriptedFactory
) -> None:
    rules = '[network]\naccess = "hosts"\nhosts = ["git.example.org", "192.0.2.7:3000"]\n'
    (tmp_path / "policy.toml").write_text(f'{rules}[limits]\nfile_size = "1 MiB"\n')
    server = scripted([call("shell", command="exec head -c 3000000 /dev/zero > big"), says("Too large.")])
    (output,) = outputs(work(repo, server))
    assert "a file reached the largest size that this drone allows" in output
    (shell,) = (tool["function"] for tool in server.requests[0]["tools"] if tool["function"]["name"] == "shell")
    assert "Network: only git.example.org, 192.0.2.7:3000" in shell["description"]
    assert json.dumps(server.requests[0]).count("Network: ") == 1


# --- extensions ----------------------------------------------------------------------------------


def test_the_owners_extensions_take_part_and_a_repositorys_only_where_the_owner_allows_it_without_a_trace(
    tmp_path: Path, repo: Path, scripted: ScriptedFactory
) -> None:
    write(tmp_path / "home", "extensions/clock.py", TOOL.format(name="clock"))
    write(repo, ".dronefleet/extensions/watch.py", TOOL.format(name="watch"))
    git(repo, "add", ".")
    git(repo, "-c", "user.name=T", "-c", "user.email=t@example.org", "commit", "--quiet", "--message", "Bring code")
    before, server = files_of(repo), scripted([call("clock"), call("watch"), says("Done.")])
    clock, watch = outputs(work(repo, server))
    assert (clock, "there is no tool named 'watch'" in watch) == ("half past six", True)
    told = [tool["function"]["name"] for tool in server.requests[0]["tools"]]
    assert ("clock" in told, "watch" in told) == (True, False)

    (tmp_path / "policy.toml").write_text("[repositories]\nextensions = true\n")
    result = work(repo, server)
    assert outputs(result) == ["half past six"] * 2
    assert (result.patch, files_of(repo) == before, steps_of(result, "error")) == (b"", True, [])
