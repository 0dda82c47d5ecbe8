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


@pytest.mark.parametrize("where", ["bare", "url", "below"])
def test_a_bare_repository_a_url_and_a_path_inside_a_work_tree_do_as_well(
    repo: Path, mending: ScriptedServer, tmp_path: Path, where: str
) -> None:
    git(tmp_path, "clone", "--quiet", "--bare", str(repo), "bare.git")
    (repo / "docs").mkdir()
    places = {"bare": tmp_path / "bare.git", "url": f"file://{tmp_path}/bare.git", "below": repo / "docs"}

    result = work(places[where], mending)

    assert result.succeeded
    assert b"+    return a + b" in (result.patch or b"")


def test_the_repository_is_not_written_to_even_where_git_would_refresh_its_index(
    repo: Path, mending: ScriptedServer
) -> None:
    (repo / "sums.py").touch()
    before = files_of(repo)

    work(repo, mending)

    assert files_of(repo) == before


def test_the_calls_are_done_in_order_and_answered(repo: Path, mending: ScriptedServer) -> None:
    steps = document(work(repo, mending))["steps"]

    results = [step for step in steps if step["kind"] == "tool_result"]
    assert [step["tool"] for step in steps if step["kind"] == "tool_call"] == ["file_read", "file_write", "shell"]
    assert [step["is_error"] for step in results] == [False, False, False]
    assert results[-1]["return_code"] == 0
    assert results[-1]["output"].startswith("5\n")


def test_what_is_unknown_is_null_and_an_empty_patch_is_text(repo: Path, talking: ScriptedServer) -> None:
    found = document(work(repo, talking))

    assert (found["patch"], found["branch"], found["head_commit"], found["receipt"]) == ("", None, None, None)
    assert found["stats"]["cost_usd"] is None  # nobody knows the price of a scripted model


def test_changes_that_are_not_committed_are_mentioned(
    repo: Path, talking: ScriptedServer, capsys: pytest.CaptureFixture[str]
) -> None:
    (repo / "sums.py").write_text("something else\n")

    work(repo, talking)

    assert "with uncommitted changes" in capsys.readouterr().err


def test_plan_mode_has_no_tools_that_write(repo: Path, talking: ScriptedServer) -> None:
    assert work(repo, talking, mode="plan").succeeded

    names = {tool["function"]["name"] for tool in talking.requests[0]["tools"]}
    assert "file_read" in names
    assert "file_write" not in names


def test_parameters_reach_the_model(repo: Path, talking: ScriptedServer) -> None:
    work(repo, talking, params={"temperature": 0.5, "seed": 7})

    assert (talking.requests[0]["temperature"], talking.requests[0]["seed"]) == (0.5, 7)


def test_a_parameter_that_is_an_option_is_refused(repo: Path, talking: ScriptedServer) -> None:
    with pytest.raises(Invalid, match="api_key, model cannot be given as a parameter"):
        work(repo, talking, params={"model": "openai/other", "api_key": "sk-1"})

    assert talking.requests == []


PROXIED = "through the proxy in https_proxy"
NO_OTHERS = "ssh, UDP and other ports do not lead out"
RULES = {
    'access = "public"': ["HTTP and HTTPS (ports 80 and 443) on the public web", PROXIED, NO_OTHERS],
    'access = "public"\nhosts = ["git.example.org"]': ["on the public web, and git.example.org", PROXIED, NO_OTHERS],
    'access = "hosts"\nhosts = ["git.example.org", "192.0.2.7:3000"]': [
        "Network: only git.example.org, 192.0.2.7:3000",
        PROXIED,
        NO_OTHERS,
    ],
    'access = "none"': ["Network: none", NO_OTHERS],
    'access = "host"': ["everything that this machine can reach, also by ssh, UDP and on other ports"],
}


@pytest.mark.usefixtures("bwrap")
@pytest.mark.parametrize("rule", RULES)
def test_the_first_request_says_once_what_commands_can_reach(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, talking: ScriptedServer, rule: str
) -> None:
    (tmp_path / "policy.toml").write_text(f"[network]\n{rule}\n")
    monkeypatch.setenv("DRONE_POLICY", str(tmp_path / "policy.toml"))

    work(repo, talking)

    (shell,) = (tool["function"] for tool in talking.requests[0]["tools"] if tool["function"]["name"] == "shell")
    assert [words for words in RULES[rule] if words not in shell["description"]] == []
    assert json.dumps(talking.requests[0]).count("Network: ") == 1


def test_the_first_request_says_where_nothing_limits_the_network(repo: Path, talking: ScriptedServer) -> None:
    work(repo, talking, sandbox="none")

    assert "everything that this machine can reach" in json.dumps(talking.requests[0]["tools"])


def test_the_owners_limits_hold_in_a_run(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scripted: ScriptedFactory
) -> None:
    (tmp_path / "policy.toml").write_text('[limits]\nfile_size = "1 MiB"\n')
    monkeypatch.setenv("DRONE_POLICY", str(tmp_path / "policy.toml"))
    server = scripted([call("shell", command="exec head -c 3000000 /dev/zero > big"), {"text": "Too large."}])

    steps = document(work(repo, server))["steps"]

    (result,) = (step for step in steps if step["kind"] == "tool_result")
    assert "a file reached the largest size that this drone allows" in result["output"]


def test_a_limit_that_is_reached_is_a_success_that_says_so(repo: Path, mending: ScriptedServer) -> None:
    result = work(repo, mending, max_iterations=2)

    assert (document(result)["status"], document(result)["exit_status"]) == ("succeeded", "max_iterations")
    assert b"+    return a + b" in (result.patch or b"")


def test_zero_is_no_limit(repo: Path, mending: ScriptedServer) -> None:
    assert work(repo, mending, max_iterations=0, cost_limit=0, max_run_seconds=0).succeeded


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


def test_without_a_key_a_placeholder_is_sent_and_never_one_from_the_environment(
    repo: Path, talking: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-mine-and-secret")

    assert work(repo, talking).succeeded

    sent = {name.lower(): value for name, value in talking.received[0].headers.items()}["authorization"]
    assert sent.startswith("Bearer ")
    assert "sk-mine" not in sent


def test_a_repository_that_cannot_be_fetched_fails_the_run(
    tmp_path: Path, talking: ScriptedServer, copies: Path
) -> None:
    found = document(work(f"file://{tmp_path}/nothing.git", talking))

    assert (found["status"], found["patch"], found["base_commit"]) == ("failed", None, None)
    assert talking.requests == []
    assert list(copies.iterdir()) == []


def test_an_empty_repository_gets_its_first_files(tmp_path: Path, mending: ScriptedServer) -> None:
    (tmp_path / "empty").mkdir()
    git(tmp_path / "empty", "init", "--quiet")

    result = work(tmp_path / "empty", mending)

    assert document(result)["base_commit"] is None
    assert b"+    return a + b" in (result.patch or b"")


def test_bytes_that_are_no_text_survive_in_the_patch(repo: Path) -> None:
    script = [call("shell", command=r"printf 'caf\351\n' > latin.txt"), {"text": "Done."}]
    with ScriptedServer(script) as server:
        result = work(repo, server)

    assert b"+caf\xe9" in (result.patch or b"")


def test_no_copy_is_left_behind(repo: Path, mending: ScriptedServer, copies: Path) -> None:
    work(repo, mending)

    assert list(copies.iterdir()) == []


def test_what_the_model_says_cannot_drive_the_terminal(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ScriptedServer([{"text": "All is well.\x1b]0;title\x07\x1b[2J"}]) as server:
        work(repo, server)

    told = capsys.readouterr().err
    assert "All is well." in told
    assert "\x1b]" not in told
    assert "\x07" not in told
