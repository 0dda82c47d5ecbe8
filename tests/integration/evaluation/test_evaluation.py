"""The evaluation: our agent with a scripted model and real git, and every task solved by its reference alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from drone.model.scripted.server import ScriptedServer
from drone.sandbox import Sandbox, choose
from drone.sandbox.opened import close_all
from tests.eval import mini, ours
from tests.eval.__main__ import main
from tests.eval.judging import judge
from tests.eval.task import load
from tests.support import needs, wait_until
from tests.support.local_runs import call

ROOT = Path(__file__).parents[3]
pytestmark = [pytest.mark.timeout(300), pytest.mark.apart]


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    """The evaluation handles signals of its process: leave them as they were."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("bwrap")
def test_a_model_at_an_endpoint_gets_seeds_and_parameters_and_no_hidden_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    look = call("shell", command="ls -a; git log --oneline")
    with ScriptedServer([look, {"text": "I give up."}]) as server:
        monkeypatch.setenv("MODEL", "openai/scripted")
        monkeypatch.setenv("API_BASE", server.url)
        words = ["--only", "py-median", "--seed", "5", "--param", "temperature=0.5", "--json", str(tmp_path / "e.json")]
        assert main(["--agent", ours.NAME, *words]) == 0

    document = json.loads((tmp_path / "e.json").read_text())
    assert [(each["seed"], each["verdict"]) for each in document["attempts"]] == [(5, "no change")]
    assert {(body["seed"], body["temperature"]) for body in server.requests} == {(5, 0.5)}
    assert "hidden" not in json.dumps(server.requests)
    assert "replayed" not in capsys.readouterr().out


@pytest.mark.long
@pytest.mark.usefixtures("bwrap")
def test_an_evaluation_that_is_ended_prints_its_report_and_leaves_no_agent_running() -> None:
    with ScriptedServer([{"text": "late", "delay_s": 600}]) as slow:
        words = ["--agent", ours.NAME, "--only", "py-median", "--model", "openai/scripted"]
        command = [sys.executable, "-m", "tests.eval", *words, "--api-base", slow.url]
        running = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        wait_until(lambda: slow.requests, seconds=200)
        agents = psutil.Process(running.pid).children(recursive=True)
        running.send_signal(signal.SIGTERM)
        report, _ = running.communicate(timeout=200)
        assert running.returncode == 1
        assert "seeds: none" in report
        assert agents
        wait_until(lambda: not any(agent.is_running() for agent in agents))


@pytest.mark.long
@pytest.mark.usefixtures("bwrap")
def test_mini_swe_agent_resolves_the_replayed_reference(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if not (ROOT / ".venv-mini").exists():
        pytest.skip("mini-swe-agent is not installed; next: make eval")
    for name in ("MODEL", "API_BASE"):
        monkeypatch.delenv(name, raising=False)
    assert main(["--agent", mini.NAME, "--only", "js-merge", "--only", "py-contradiction"]) == 0
    assert "| mini-swe-agent (*replayed*) | 2 of 2 |" in capsys.readouterr().out


TASKS = load()
UNTOUCHED = "diff --git a/NOTES b/NOTES\nnew file mode 100644\n--- /dev/null\n+++ b/NOTES\n@@ -0,0 +1 @@\n+Nothing.\n"


QUESTION = "Both are possible. Which one do you want?"
GAVE_UP = "I stopped: this cannot be done."


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    for program in ("python3", "node", "cc"):
        needs(program)
    yield choose("auto", os.environ)
    close_all()


def test_only_the_reference_answer_is_right_where_nothing_may_be_changed(sandbox: Sandbox) -> None:
    wrong = {}
    for task in (task for task in TASKS if not task.check):
        answer = task.text("reference.md")
        given = [("", answer), (task.text("wrong.patch"), answer), ("", QUESTION), ("", GAVE_UP)]
        resolved = [judge(task, patch, said, sandbox).resolved for patch, said in given]
        if resolved != [True, False, False, False]:
            wrong[task.name] = resolved
    assert wrong == {}
    (task,) = (task for task in TASKS if task.kind == "question")
    without_question = task.text("reference.md").rpartition(". ")[0] + "."
    assert judge(task, "", without_question, sandbox).why == "did not ask"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("many", [3, pytest.param(30, marks=pytest.mark.long)])
def test_only_the_reference_solves_a_task(sandbox: Sandbox, many: int) -> None:
    wrong = {}
    for task in [task for task in TASKS if task.check][:many]:
        patches = (UNTOUCHED, task.text("reference.patch"), task.text("wrong.patch"))
        whys = [judge(task, patch, "Done.", sandbox).why for patch in patches]
        whys += [judge(task, "", said, sandbox).why for said in (QUESTION, GAVE_UP)]
        if whys != ["tests failed", "resolved", "tests failed", "asked", "no change"]:
            wrong[task.name] = whys
    assert wrong == {}


def test_no_agent_is_given_a_hidden_file() -> None:
    shown = {(task.name, path.name) for task in TASKS for path in (task.directory / "repo").rglob("*")}
    assert len(TASKS) == 30
    hidden = {(task.name, path.name) for task in TASKS for path in (task.directory / "hidden").rglob("*")}

    assert hidden
    assert shown & hidden == set()
