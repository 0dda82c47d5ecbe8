"""Batches on a whole fleet: a SWE-bench file of local repositories, and Ctrl-C while a batch is followed."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from drone.model.scripted.server import ScriptedServer
from tests.acceptance.scripts import shell
from tests.support import wait_until, warm_processes
from tests.support.repositories import calc_project, git
from tests.support.warm_processes import FLEET
from tests.support.whole_fleet import WholeFleet

pytestmark = pytest.mark.timeout(300)
SCRIPTS = {
    "default": [shell("sed -i 's/a - b/a + b/' calc.py"), {"text": "Solved."}],
    "wrong": [shell("echo no > wrong.txt"), {"text": "I think so."}],
}
ORG = ("--org", "bench")


@pytest.fixture(scope="module")
def fleet(shared_fleet: WholeFleet) -> Iterator[WholeFleet]:
    """The shared fleet with an organization of this module."""
    with ScriptedServer(SCRIPTS) as model:
        shared_fleet.json("organization", "add", "bench")
        where = ("--model", "openai/scripted", "--api-base", model.url, "--no-key", "--no-check")
        shared_fleet.json("provider", "add", "local", *where, *ORG)
        yield shared_fleet


def data_set(tmp_path: Path) -> tuple[Path, Path]:
    """A file of three instances in two local repositories, and the map of these."""
    repositories = {"acme/calc": calc_project(tmp_path / "calc.git"), "acme/sums": calc_project(tmp_path / "sums.git")}
    instances = [
        {
            "instance_id": f"acme__calc-{number}",
            "repo": name,
            "base_commit": git(repositories[name], "rev-parse", "main"),
            "problem_statement": f"add subtracts.{script}",
            **dict.fromkeys(("patch", "test_patch"), ""),
            "version": "1",
        }
        for number, (name, script) in enumerate([("acme/calc", ""), ("acme/sums", ""), ("acme/calc", " script:wrong")])
    ]
    file, mirrors = tmp_path / "bench-1.jsonl", tmp_path / "map.json"
    file.write_text("".join(f"{json.dumps(each)}\n" for each in instances))
    mirrors.write_text(json.dumps({name: str(path) for name, path in repositories.items()}))
    return file, mirrors


def test_a_file_of_swe_bench_becomes_predictions(fleet: WholeFleet, tmp_path: Path) -> None:
    file, mirrors = data_set(tmp_path)
    run = (
        "batch",
        "run",
        str(file),
        "--format",
        "swebench",
        "--repos",
        str(mirrors),
        "-c",
        "agent.step_limit=20",
        *ORG,
    )
    done = fleet.fleet(*run)
    assert done.returncode == 0, done.stderr
    assert "3 of 3 ended" in done.stdout

    target = tmp_path / "preds.json"
    results = fleet.fleet("batch", "results", "bench-1", "--format", "preds", "--output", str(target), *ORG)
    assert results.returncode == 0, results.stderr
    found = json.loads(target.read_text())
    assert {id: (each["instance_id"], each["model_name_or_path"]) for id, each in found.items()} == {
        f"acme__calc-{number}": (f"acme__calc-{number}", "openai/scripted") for number in range(3)
    }
    assert ["+    return a + b" in each["model_patch"] for each in found.values()] == [True, True, False]
    git(tmp_path, "clone", "-q", str(tmp_path / "calc.git"), "clone")
    git(tmp_path / "clone", "apply", "-", stdin=found["acme__calc-0"]["model_patch"].encode())

    # The same file continues the batch, and a changed one is refused.
    again = fleet.fleet(*run)
    assert (again.returncode, "has these rows already" in again.stderr) == (0, True)
    file.write_text(file.read_text().replace("add subtracts. script:wrong", "add subtracts!"))
    changed = fleet.fleet(*run)
    assert (changed.returncode, "1 changed (acme__calc-2)" in changed.stderr) == (4, True)
    redone = fleet.fleet(*run, "--redo", "--slice", "0:1", "--name", "bench-1")
    assert redone.returncode == 0, redone.stderr
    compared = fleet.json("batch", "compare", "bench-1", "bench-1-2", *ORG)
    assert (compared["pairs"], compared["unpaired_a"]) == (1, 2)


def test_ctrl_c_stops_following_and_the_batch_continues(fleet: WholeFleet, tmp_path: Path) -> None:
    remote = calc_project(tmp_path / "calc.git").as_uri()
    fleet.json("project", "add", "many", "--git-url", remote, "--no-check", *ORG)
    file = tmp_path / "many.jsonl"
    file.write_text("".join(f'{{"id": "{number}", "prompt": "Fix it"}}\n' for number in range(3)))
    command = [*FLEET, "batch", "run", str(file), "--project", "many", "--parallel", "1", *ORG]
    process = warm_processes.popen(command, env=fleet.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until(lambda: any(each["ended"] for each in fleet.json("batch", "ls", *ORG) if each["name"] == "many"))
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"batch many continues" in said
    wait_until(lambda: fleet.json("batch", "show", "many", *ORG)["status"] == "finished", seconds=120)
    assert fleet.json("batch", "show", "many", *ORG)["succeeded"] == 3
