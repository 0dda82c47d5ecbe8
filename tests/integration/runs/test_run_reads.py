"""Calls that only read, several in one message of the model, in a run with real tools, servers, sandbox and journal."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from shared.events import CheckpointStep, Event, ToolCallStep, ToolResultStep
from shared.transcripts import problems
from tests.support import mcp_program, wait_until
from tests.support.repositories import push_commit
from tests.support.runs import Bench, KeptCheckpoints, going_on, small_repository
from tests.support.scripted import ScriptedFactory, says

MEET, NAP = "mcp__sample__meet", "mcp__sample__nap"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path, small_repository(tmp_path / "remote.git"))
    server = {"command": sys.executable, "args": [mcp_program.__file__, "sdk"]}
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "mcp.json").write_text(json.dumps({"mcpServers": {"sample": server}}))
    return bench


def asks(*calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": arguments} for name, arguments in calls]}


def of(bench: Bench, kind: type[Any]) -> list[Event]:
    return [event for event in bench.events if isinstance(event.body, kind)]


def results(bench: Bench) -> list[ToolResultStep]:
    return [event.body for event in of(bench, ToolResultStep)]


def test_files_and_searches_are_read_at_the_same_time_and_answered_in_order(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    push_commit(bench.directory / "remote.git", {f"{name}.txt": f"{name} is here\n" * 50 for name in "abcdef"})
    calls = [("file_read", {"mode": "lines", "path": f"{name}.txt", "start_line": 50}) for name in "abc"]
    searches = [("grep", {"pattern": f"{name} is", "max_results": 1}) for name in "def"]
    server = scripted([asks(calls[0], searches[0], calls[1], searches[1], calls[2], searches[2]), says("Done.")])
    bench.run(server.url)
    assert [step.output.split()[-3 if step.output.startswith("    ") else 0] for step in results(bench)] == [
        *("a", "d.txt", "b", "e.txt", "c", "f.txt")
    ]
    assert problems(server.requests[-1]["messages"]) == []
    kinds = [event.body.kind for event in bench.events if isinstance(event.body, ToolCallStep | ToolResultStep)]
    assert [(kind, len(list(group))) for kind, group in groupby(kinds)] == [
        *(("tool_call", 4), ("tool_result", 4), ("tool_call", 2), ("tool_result", 2))
    ]


RUNS = """
import sys
from pathlib import Path
from shared.work_order import WorkOrder
from tests.support.runs import Bench, KeptCheckpoints

bench = Bench(Path(sys.argv[1]), Path(sys.argv[1]) / "remote.git")
bench.order = WorkOrder.model_validate_json(sys.stdin.read())
bench.checkpoint_store = KeptCheckpoints()
bench.run(bench.order.provider.api_base)
"""


def killed(bench: Bench, url: str, results: int) -> None:
    """Run the order in a process of its own, which is killed as soon as so many calls have a result."""
    provider = bench.order.provider.model_copy(update={"api_base": url})
    bench.order = bench.order.model_copy(update={"provider": provider})
    command = [sys.executable, "-c", RUNS, str(bench.directory)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdin is not None
        process.stdin.write(bench.order.model_dump_json().encode())
        process.stdin.close()
        journal = bench.directory / "journal"
        wait_until(lambda: journal.exists() and len(of(bench, ToolResultStep)) == results, seconds=60)
        os.kill(process.pid, signal.SIGKILL)


@pytest.mark.timeout(180)
def test_a_run_that_is_killed_meanwhile_has_the_results_so_far_and_the_next_repeats_no_complete_step(
    bench: Bench, scripted: ScriptedFactory, tmp_path: Path
) -> None:
    first, slow = asks(("file_read", {"path": "README"})), (0.1, 0.2, 60, 61)
    server = scripted([first, asks(*((NAP, {"seconds": each}) for each in slow)), says("Done.")])
    killed(bench, server.url, results=3)
    assert [step.output for step in results(bench)][1:] == ["waited 0.1 s", "waited 0.2 s"]
    assert [event.body.tool for event in of(bench, ToolCallStep)] == ["file_read", NAP, NAP, NAP, NAP]

    second = Bench(tmp_path / "second", tmp_path / "remote.git")
    shutil.copytree(tmp_path / "home", tmp_path / "second" / "home")
    second.workspaces, second.checkpoint_store = bench.workspaces, KeptCheckpoints()
    (checkpoint,) = of(bench, CheckpointStep)
    bench.checkpoint_store = KeptCheckpoints()
    going_on(bench, second, checkpoint.seq)
    server = scripted([first, asks(*((NAP, {"seconds": each / 1000}) for each in slow)), says("Done.")])
    assert second.run(server.url).response == "Done."
    assert [event.body.tool for event in of(second, ToolCallStep)] == [NAP] * 4
    assert "hello" in next(each["content"] for each in server.requests[0]["messages"] if each["role"] == "tool")
