"""Batches on a whole fleet: a SWE-bench file of local repositories, and Ctrl-C while a batch is followed."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from control_plane.contract.declarations import providers
from control_plane.contract.declarations.providers import ProviderRequest
from drone.model.scripted.server import ScriptedServer
from tests.acceptance.scripts import shell
from tests.support import wait_until, warm_processes
from tests.support.repositories import calc_project, git
from tests.support.warm_processes import FLEET
from tests.support.whole_fleet import WholeFleet

pytestmark = pytest.mark.timeout(300)
Doc = dict[str, Any]
INSTANCES = 6
SCRIPTS = {
    "default": [shell("sed -i 's/a - b/a + b/' calc.py"), {"text": "Solved."}],
    "wrong": [shell("echo no > wrong.txt"), {"text": "I think so."}],
}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WholeFleet]:
    """Two drones and a scripted model."""
    with ScriptedServer(SCRIPTS) as model, closing(WholeFleet(tmp_path_factory.mktemp("batches"), drones=2)) as started:
        started.start()
        with started.client() as client:
            client.call(providers.ADD, ProviderRequest(name="local", model="openai/scripted", api_base=model.url))
        yield started
        assert started.transcript_problems() == []


def data_set(tmp_path: Path) -> tuple[Path, Path]:
    """A file of instances in two local repositories, and the map of these."""
    repositories = {"acme/calc": calc_project(tmp_path / "calc.git"), "acme/sums": calc_project(tmp_path / "sums.git")}
    names = sorted(repositories)
    instances = [
        {
            "instance_id": f"acme__calc-{number:02}",
            "repo": (name := names[number % 2]),
            "base_commit": git(repositories[name], "rev-parse", "main"),
            "problem_statement": "add subtracts." + (" script:wrong" if number == 3 else ""),
            "patch": "",
            "test_patch": "",
            "version": "1",
        }
        for number in range(INSTANCES)
    ]
    file, mirrors = tmp_path / "bench.jsonl", tmp_path / "map.json"
    file.write_text("".join(f"{json.dumps(each)}\n" for each in instances))
    mirrors.write_text(json.dumps({name: str(path) for name, path in repositories.items()}))
    return file, mirrors


def test_a_file_of_swe_bench_becomes_predictions(fleet: WholeFleet, tmp_path: Path) -> None:
    file, mirrors = data_set(tmp_path)
    options = ("--format", "swebench", "--repos", str(mirrors), "-c", "agent.step_limit=20")
    done = fleet.fleet("batch", "run", str(file), *options, "--parallel", "2")
    assert done.returncode == 0, done.stderr
    assert f"{INSTANCES} of {INSTANCES} ended" in done.stdout
    assert {each["slug"] for each in fleet.json("project", "ls")} == {"acme__calc", "acme__sums"}

    target = tmp_path / "preds.json"
    assert fleet.fleet("batch", "results", "bench", "--format", "preds", "--output", str(target)).returncode == 0
    found = json.loads(target.read_text())
    assert list(found) == [f"acme__calc-{number:02}" for number in range(INSTANCES)]
    assert {tuple(each) for each in found.values()} == {("model_name_or_path", "instance_id", "model_patch")}
    for number, (id, each) in enumerate(found.items()):
        assert (each["instance_id"], each["model_name_or_path"]) == (id, "openai/scripted")
        assert ("+    return a + b" in each["model_patch"]) == (number != 3)
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(tmp_path / "calc.git"), str(clone))
    git(clone, "apply", "-", stdin=found["acme__calc-00"]["model_patch"].encode())

    lines = fleet.fleet("batch", "results", "bench", "--state", "succeeded").stdout.splitlines()
    assert {json.loads(line)["exit_status"] for line in lines} == {"stopped"}
    # The same file continues the batch, and a changed one is refused.
    again = fleet.fleet("batch", "run", str(file), *options)
    assert (again.returncode, "has these rows already" in again.stderr) == (0, True)
    file.write_text(file.read_text().replace("add subtracts. script:wrong", "add subtracts!"))
    changed = fleet.fleet("batch", "run", str(file), *options)
    assert (changed.returncode, "1 changed (acme__calc-03)" in changed.stderr) == (4, True)
    redone = fleet.fleet("batch", "run", str(file), *options, "--redo", "--slice", "0:4", "--name", "bench")
    assert redone.returncode == 0, redone.stderr
    compared = fleet.json("batch", "compare", "bench", "bench-2")
    assert (compared["pairs"], compared["unpaired_a"], compared["neither"]) == (4, 2, 4)


def test_ctrl_c_stops_following_and_the_batch_continues(fleet: WholeFleet, tmp_path: Path) -> None:
    calc_project(tmp_path / "calc.git")
    fleet.json("project", "add", "calc", "--git-url", f"file://{tmp_path}/calc.git")
    file = tmp_path / "many.jsonl"
    file.write_text("".join(f'{{"id": "{number}", "prompt": "Fix it"}}\n' for number in range(3)))
    process = warm_processes.popen(
        [*FLEET, "batch", "run", str(file), "--project", "calc", "--parallel", "1"],
        env=fleet.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    wait_until(lambda: any(each["ended"] for each in fleet.json("batch", "ls") if each["name"] == "many"), seconds=60)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"batch many continues" in said
    wait_until(lambda: fleet.json("batch", "show", "many")["status"] == "finished", seconds=120)
    assert fleet.json("batch", "show", "many")["succeeded"] == 3
