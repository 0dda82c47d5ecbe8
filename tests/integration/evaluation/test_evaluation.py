"""The evaluation end to end: our agent as a process, a scripted model over HTTP, real git, table and document."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from drone.model.scripted.server import ScriptedServer
from tests.eval import mini, ours
from tests.eval.attempt import Attempt
from tests.eval.judging import Verdict
from tests.eval.report import Row, details, summary
from tests.eval.task import load
from tests.support import wait_until
from tests.support.local_runs import call

ROOT = Path(__file__).parents[3]
pytestmark = [pytest.mark.timeout(300), pytest.mark.apart]


def evaluation(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in {"MODEL", "API_BASE", "API_KEY"}}
    return subprocess.run(
        [sys.executable, "-m", "tests.eval", *words],
        cwd=ROOT,
        env=environment | variables,
        capture_output=True,
        text=True,
        check=False,
    )


def ours_alone(
    tmp_path: Path, *words: str, **variables: str
) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """The evaluation of our agent, and its document."""
    document = tmp_path / "results" / "eval.json"
    done = evaluation("--agent", ours.NAME, "--json", str(document), *words, **variables)
    return done, json.loads(document.read_text())


@pytest.mark.usefixtures("bwrap")
def test_the_replayed_reference_is_resolved_by_the_loop_and_says_that_it_was_replayed(tmp_path: Path) -> None:
    done, document = ours_alone(tmp_path, "--only", "py-median")

    assert done.returncode == 0, done.stderr
    assert "| dronefleet (*replayed*) | 1 of 1 |" in done.stdout
    assert document["replayed"]
    (attempt,) = document["attempts"]
    assert (attempt["task"], attempt["verdict"], attempt["problem"]) == ("py-median", "resolved", "")
    assert attempt["steps"] == 4
    assert attempt["input_tokens"] > 1000


@pytest.mark.usefixtures("bwrap")
def test_a_model_at_an_endpoint_gets_seeds_and_parameters_and_no_hidden_file(tmp_path: Path) -> None:
    look = call("shell", command="ls -a; git log --oneline")
    with ScriptedServer([look, {"text": "I give up."}]) as server:
        done, document = ours_alone(
            tmp_path,
            *("--only", "py-median", "--seed", "5", "--param", "temperature=0.5"),
            MODEL="openai/scripted",
            API_BASE=server.url,
        )

    assert done.returncode == 0, done.stderr
    assert [(each["seed"], each["verdict"]) for each in document["attempts"]] == [(5, "no change")]
    assert {(body["seed"], body["temperature"]) for body in server.requests} == {(5, 0.5)}
    assert "hidden" not in json.dumps(server.requests)
    assert "replayed" not in done.stdout


@pytest.mark.usefixtures("bwrap")
def test_an_evaluation_that_is_ended_prints_its_report_and_leaves_no_agent_running() -> None:
    with ScriptedServer([{"text": "late", "delay_s": 600}]) as slow:
        words = ["--agent", ours.NAME, "--only", "py-median", "--model", "openai/scripted"]
        running = subprocess.Popen(
            [sys.executable, "-m", "tests.eval", *words, "--api-base", slow.url],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
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
def test_mini_swe_agent_resolves_the_replayed_reference(tmp_path: Path) -> None:
    if not (ROOT / ".venv-mini").exists():
        pytest.skip("mini-swe-agent is not installed; next: make eval")
    words = (
        "--agent",
        mini.NAME,
        "--only",
        "js-merge",
        "--only",
        "py-contradiction",
        "--json",
        str(tmp_path / "eval.json"),
    )
    done = evaluation(*words)

    assert done.returncode == 0, done.stderr
    assert "| mini-swe-agent (*replayed*) | 2 of 2 |" in done.stdout


def test_wrong_use_is_refused_before_anything_runs() -> None:
    wrong = {
        ("--only", "nothing"): "unknown task nothing",
        ("--seed", "1"): "no effect without a model",
        ("--mini", "/nowhere"): "/nowhere; next: make eval",
    }
    for words, said in wrong.items():
        done = evaluation(*words)

        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr


def row(agent: str, verdict: Verdict, **numbers: Any) -> Row:
    return Row(agent, load(["py-median"])[0], 0, None, Attempt("", "", "submitted", **numbers), verdict, seconds=2.0)


def test_the_table_says_what_is_unknown() -> None:
    right, wrong = Verdict(True, "resolved"), Verdict(False, "tests failed")
    rows = [
        row("a", right, steps=3, input_tokens=1200, output_tokens=30, cost_usd=0.25),
        row("a", wrong, steps=4, input_tokens=1000, output_tokens=20),
        row("b", wrong),
    ]

    assert summary(rows, replayed=False).splitlines()[2:] == [
        "| a | 1 of 2 | 3.5 | 2,200 | 50 | 0.2500 (1 unknown) | 2.0 |",
        "| b | 0 of 1 | unknown | unknown | unknown | unknown | 2.0 |",
    ]
    assert details(rows).splitlines()[2:] == ["| py-median | Python | bug | resolved, tests failed | tests failed |"]
