"""`drone run` as its user meets it: a process, a repository, and a scripted model behind a real HTTP endpoint."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from drone.model.scripted import ScriptedServer
from tests.support import wait_until
from tests.support.command_tree import BIN, clean_environment, invoke
from tests.support.transcripts import transcript_problems

Run = Callable[..., "subprocess.CompletedProcess[str]"]
MODEL = "openai/scripted"
BROKEN = "def add(a, b):\n    return a - b\n"
FIXED = "def add(a, b):\n    return a + b\n"


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    """A reply that calls one tool."""
    return {"text": f"I use {tool}.", "tool_calls": [{"name": tool, "arguments": arguments}]}


MEND = [
    call("file_read", command="view", path="sums.py"),
    call("file_write", path="sums.py", content=FIXED),
    call("shell", command="python3 -c 'import sums; print(sums.add(2, 3))'"),
    {"text": "The sum is right now."},
]
TALK = [{"text": "There is nothing to do."}]


@pytest.fixture(autouse=True)
def _no_litter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies are made where the test can see whether they were removed."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A work tree with one commit on a branch that is not `main`, in a directory with a space in its name."""
    path = tmp_path / "my project"
    path.mkdir()
    (path / "sums.py").write_text(BROKEN)
    git(path, "init", "--quiet", "--initial-branch", "trunk")
    git(path, "add", ".")
    git(path, "-c", "user.name=T", "-c", "user.email=t@example.org", "commit", "--quiet", "--message", "Start")
    return path


def git(path: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(path), *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def mending() -> Iterator[ScriptedServer]:
    with ScriptedServer(MEND) as server:
        yield server


@pytest.fixture
def talking() -> Iterator[ScriptedServer]:
    with ScriptedServer(TALK) as server:
        yield server


def drone_run(prompt: str, repo: Path | str, server: ScriptedServer, *more: str, **options: Any) -> Any:
    words = ("run", prompt, "--repo", str(repo), "--model", MODEL, "--api-base", server.url, *more)
    return invoke("drone", *words, **options)


def files_of(path: Path) -> dict[str, tuple[int, bytes]]:
    """Every file below `path`, with its time and content."""
    return {str(file): (file.stat().st_mtime_ns, file.read_bytes()) for file in path.rglob("*") if file.is_file()}


# --- it does the work ---------------------------------------------------------------------


def test_the_patch_is_printed_and_applies(repo: Path, mending: ScriptedServer) -> None:
    done = drone_run("Mend the sum", repo, mending)

    assert done.returncode == 0, done.stderr
    applied = subprocess.run(
        ["git", "-C", str(repo), "apply"], input=done.stdout, text=True, capture_output=True, check=False
    )
    assert applied.returncode == 0, applied.stderr
    assert (repo / "sums.py").read_text() == FIXED


def test_progress_is_told_on_stderr_while_stdout_has_the_patch_alone(repo: Path, mending: ScriptedServer) -> None:
    done = drone_run("Mend the sum", repo, mending)

    assert done.stdout.startswith("diff --git ")
    assert "I use file_read." in done.stderr
    assert "→ shell " in done.stderr
    assert "← exit 0, " in done.stderr
    assert "The sum is right now." in done.stderr
    assert "success: " in done.stderr


def test_the_repository_is_never_written_to(repo: Path, mending: ScriptedServer) -> None:
    (repo / "sums.py").touch()  # an index that a plain `git status` would refresh
    before = files_of(repo)

    assert drone_run("Mend the sum", repo, mending).returncode == 0

    assert files_of(repo) == before


def test_no_copy_is_left_behind_and_no_home_is_made(repo: Path, mending: ScriptedServer, tmp_path: Path) -> None:
    owner = tmp_path / "owner"
    owner.mkdir()

    assert drone_run("Mend the sum", repo, mending, env={"HOME": str(owner)}).returncode == 0

    assert list((tmp_path / "tmp").iterdir()) == []
    assert list(owner.iterdir()) == []


@pytest.mark.parametrize("where", ["bare", "url", "below"])
def test_a_bare_repository_a_url_and_a_path_inside_a_work_tree_do_as_well(
    repo: Path, mending: ScriptedServer, tmp_path: Path, where: str
) -> None:
    git(tmp_path, "clone", "--quiet", "--bare", str(repo), "bare.git")
    (repo / "docs").mkdir()
    places = {"bare": tmp_path / "bare.git", "url": f"file://{tmp_path}/bare.git", "below": repo / "docs"}

    done = drone_run("Mend the sum", places[where], mending)

    assert done.returncode == 0, done.stderr
    assert "+    return a + b" in done.stdout


def test_the_prompt_can_come_from_stdin(repo: Path, talking: ScriptedServer) -> None:
    done = drone_run("-", repo, talking, stdin="Say whether all is well\n")

    assert done.returncode == 0
    assert "Say whether all is well" in json.dumps(talking.requests[0]["messages"])


def test_without_changes_there_is_nothing_on_stdout(repo: Path, talking: ScriptedServer) -> None:
    done = drone_run("Is all well?", repo, talking)

    assert (done.returncode, done.stdout) == (0, "")
    assert "no file was changed" in done.stderr


def test_changes_that_are_not_committed_are_mentioned(repo: Path, talking: ScriptedServer) -> None:
    (repo / "sums.py").write_text("something else\n")

    assert "not committed" in drone_run("Is all well?", repo, talking).stderr


def test_plan_mode_has_no_tools_that_write(repo: Path, talking: ScriptedServer) -> None:
    assert drone_run("Make a plan", repo, talking, "--mode", "plan").returncode == 0

    names = {tool["function"]["name"] for tool in talking.requests[0]["tools"]}
    assert "file_read" in names
    assert "file_write" not in names


# --- the document ---------------------------------------------------------------------------


KEYS = [
    *("id", "status", "reason", "exit_status", "attempt", "generation", "organization", "user", "drone", "project"),
    *("session", "provider", "model", "mode", "priority", "labels", "created_at", "started_at", "ended_at", "prompt"),
    *("response", "branch", "base_commit", "head_commit", "pushed", "push_error", "late_refs", "patch", "receipt"),
    *("stats", "runs", "steps"),
]


def test_json_is_the_document_of_an_order(repo: Path, mending: ScriptedServer) -> None:
    done = drone_run("Mend the sum", repo, mending, "--json")

    found = json.loads(done.stdout)
    assert list(found) == KEYS
    assert (found["status"], found["exit_status"], found["response"]) == (
        "succeeded",
        "stopped",
        "The sum is right now.",
    )
    assert (found["prompt"], found["model"], found["mode"]) == ("Mend the sum", MODEL, "build")
    assert (found["drone"], found["project"], found["provider"], found["organization"]) == (None, None, None, None)
    assert found["base_commit"] == git(repo, "rev-parse", "HEAD")
    assert "+    return a + b" in found["patch"]
    assert found["stats"]["tool_calls"] == 3


def test_the_steps_are_complete_and_in_order(repo: Path, mending: ScriptedServer) -> None:
    found = json.loads(drone_run("Mend the sum", repo, mending, "--json").stdout)

    results = [step for step in found["steps"] if step["kind"] == "tool_result"]
    assert transcript_problems(found) == []
    assert [step["tool"] for step in found["steps"] if step["kind"] == "tool_call"] == [
        "file_read",
        "file_write",
        "shell",
    ]
    assert [(step["return_code"], step["is_error"]) for step in results][-1] == (0, False)
    assert results[-1]["output"].strip() == "5"


def test_what_is_unknown_is_null_and_an_empty_patch_is_text(repo: Path, talking: ScriptedServer) -> None:
    found = json.loads(drone_run("Is all well?", repo, talking, "--json").stdout)

    assert (found["patch"], found["branch"], found["head_commit"], found["receipt"]) == ("", None, None, None)
    assert found["stats"]["cost_usd"] is None  # nobody knows the price of a scripted model


# --- it ends badly, and says how ---------------------------------------------------------------


def test_a_limit_that_is_reached_is_a_success_that_says_so(repo: Path, mending: ScriptedServer) -> None:
    found = json.loads(drone_run("Mend the sum", repo, mending, "--json", "--max-iterations", "2").stdout)

    assert (found["status"], found["exit_status"]) == ("succeeded", "max_iterations")
    assert "+    return a + b" in found["patch"]


def test_zero_is_no_limit(repo: Path, mending: ScriptedServer) -> None:
    limits = ("--max-iterations", "0", "--cost-limit", "0", "--max-run-seconds", "0")

    assert drone_run("Mend the sum", repo, mending, *limits).returncode == 0


def test_a_run_over_its_time_fails_and_keeps_its_work(repo: Path) -> None:
    script = [call("file_write", path="sums.py", content=FIXED), {"text": "late", "delay_s": 30}]
    with ScriptedServer(script) as server:
        done = drone_run("Mend the sum", repo, server, "--json", "--max-run-seconds", "3")

    found = json.loads(done.stdout)
    assert done.returncode == 1
    assert (found["status"], found["exit_status"]) == ("failed", "time_limit")
    assert "+    return a + b" in found["patch"]


def test_a_model_that_refuses_the_key_is_told_in_one_line(repo: Path) -> None:
    with ScriptedServer(TALK, api_key="right") as server:
        done = drone_run("Is all well?", repo, server, "--api-key-env", "KEY", env={"KEY": "wrong-key-1234"})

    assert done.returncode == 1
    assert "failed: " in done.stderr
    assert "Traceback" not in done.stderr
    assert "wrong-key-1234" not in done.stderr


def test_the_key_comes_from_the_variable_and_is_never_shown(repo: Path) -> None:
    script = [call("shell", command="echo secret is right-key-9876"), {"text": "The key is right-key-9876."}]
    with ScriptedServer(script, api_key="right-key-9876") as server:
        done = drone_run("Tell", repo, server, "--json", "--api-key-env", "KEY", env={"KEY": "right-key-9876"})

    assert done.returncode == 0, done.stderr
    assert "right-key-9876" not in done.stdout + done.stderr


def test_without_a_key_a_placeholder_is_sent(repo: Path, talking: ScriptedServer) -> None:
    assert drone_run("Is all well?", repo, talking, env={"OPENAI_API_KEY": "sk-mine-and-secret"}).returncode == 0

    sent = {name.lower(): value for name, value in talking.received[0].headers.items()}["authorization"]
    assert sent.startswith("Bearer ")
    assert "sk-mine" not in sent


def test_an_endpoint_that_is_not_there_fails_the_run(repo: Path) -> None:
    words = ("--model", MODEL, "--api-base", "http://127.0.0.1:9/v1", "--max-run-seconds", "4")

    done = invoke("drone", "run", "Is all well?", "--repo", str(repo), *words)

    assert done.returncode == 1
    assert "Traceback" not in done.stderr


def test_a_repository_that_cannot_be_fetched_fails_the_run(tmp_path: Path, talking: ScriptedServer) -> None:
    done = drone_run("Is all well?", f"file://{tmp_path}/nothing.git", talking, "--json")

    found = json.loads(done.stdout)
    assert done.returncode == 1
    assert (found["status"], found["patch"]) == ("failed", None)
    assert talking.requests == []


@pytest.mark.parametrize(
    ("prompt", "where", "code"),
    [
        (" ", "nowhere", "2 E-PROMPT-EMPTY"),
        ("Do it", "nowhere", "3 E-GIT-NOT-FOUND"),
        ("Do it", "tmp", "3 E-GIT-NOT-FOUND"),
        ("Do it", "ext::sh -c date", "6 E-POLICY-URL"),
    ],
)
def test_what_cannot_begin_is_refused(
    tmp_path: Path, talking: ScriptedServer, prompt: str, where: str, code: str
) -> None:
    done = drone_run(prompt, where, talking, cwd=tmp_path)

    exit_code, _, name = code.partition(" ")
    assert done.returncode == int(exit_code)
    assert f"[{name}]" in done.stderr
    assert talking.requests == []


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("run", "Do it", "--repo", "."), 2),
        (("run", "Do it", "--model", "m"), 2),
        (("run",), 2),
        (("run", "Do it", "--repo", ".", "--model", " "), 2),
        (("run", "Do it", "--repo", ".", "--model", "m", "--mode", "play"), 2),
        (("run", "Do it", "--repo", ".", "--model", "m", "--max-iterations", "-1"), 2),
        (("run", "Do it", "--repo", ".", "--model", "m", "--api-key-env", "NO_SUCH_KEY"), 2),
        (("run", "Do it", "--repo", ".", "--model", "m", "--sandbox", "docker"), 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_value_without_meaning_is_wrong_use(repo: Path, words: tuple[str, ...], code: int) -> None:
    done = invoke("drone", *words, cwd=repo)

    assert done.returncode == code
    assert done.stderr.startswith("error: ")


def test_ctrl_c_ends_the_run_and_prints_the_work_so_far(repo: Path, tmp_path: Path) -> None:
    script = [call("file_write", path="sums.py", content=FIXED), call("shell", command="sleep 600"), *TALK]
    with ScriptedServer(script) as server:
        running = _start(repo, server)
        wait_until(lambda: len(server.requests) == 2, seconds=30)
        wait_until(lambda: _descendants_run(running.pid, "sleep"), seconds=10)
        running.send_signal(signal.SIGINT)
        patch, told = running.communicate(timeout=30)

    assert running.returncode == 130
    assert "+    return a + b" in patch
    assert "Traceback" not in told
    assert told.rstrip().endswith("interrupted")
    assert list((tmp_path / "tmp").iterdir()) == []


def _start(repo: Path, server: ScriptedServer) -> subprocess.Popen[str]:
    words = ("run", "Mend the sum", "--repo", str(repo), "--model", MODEL, "--api-base", server.url)
    return subprocess.Popen(
        [str(BIN / "drone"), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**clean_environment(), "TMPDIR": os.environ["TMPDIR"]},
    )


def _descendants_run(pid: int, program: str) -> bool:
    import psutil

    return any(process.name() == program for process in psutil.Process(pid).children(recursive=True))
