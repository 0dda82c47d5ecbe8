"""The evaluation end to end: our agent as a process, a scripted model over HTTP, real git, table and document."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from drone.model.scripted.server import ScriptedServer
from tests.eval import mini, ours
from tests.support import wait_until
from tests.support.local_runs import call

ROOT = Path(__file__).parents[3]
pytestmark = [pytest.mark.timeout(300), pytest.mark.apart]


def evaluation(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in {"MODEL", "API_BASE", "API_KEY"}}
    command = [sys.executable, "-m", "tests.eval", *words]
    return subprocess.run(command, cwd=ROOT, env=environment | variables, capture_output=True, text=True, check=False)


@pytest.mark.usefixtures("bwrap")
def test_a_model_at_an_endpoint_gets_seeds_and_parameters_and_no_hidden_file(tmp_path: Path) -> None:
    look = call("shell", command="ls -a; git log --oneline")
    with ScriptedServer([look, {"text": "I give up."}]) as server:
        words = ("--only", "py-median", "--seed", "5", "--param", "temperature=0.5", "--json", str(tmp_path / "e.json"))
        done = evaluation("--agent", ours.NAME, *words, MODEL="openai/scripted", API_BASE=server.url)

    assert done.returncode == 0, done.stderr
    document = json.loads((tmp_path / "e.json").read_text())
    assert [(each["seed"], each["verdict"]) for each in document["attempts"]] == [(5, "no change")]
    assert {(body["seed"], body["temperature"]) for body in server.requests} == {(5, 0.5)}
    assert "hidden" not in json.dumps(server.requests)
    assert "replayed" not in done.stdout


@pytest.mark.long
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
def test_mini_swe_agent_resolves_the_replayed_reference() -> None:
    if not (ROOT / ".venv-mini").exists():
        pytest.skip("mini-swe-agent is not installed; next: make eval")
    done = evaluation("--agent", mini.NAME, "--only", "js-merge", "--only", "py-contradiction")

    assert done.returncode == 0, done.stderr
    assert "| mini-swe-agent (*replayed*) | 2 of 2 |" in done.stdout
