"""Notes for later orders in a run: kept ones are in its system prompt, and the agent may propose others (O-109)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shared.events import RememberStep
from shared.work_order import OrderMemory
from tests.support.runs import Bench, shell, small_repository
from tests.support.scripted import ScriptedFactory, says

NOTE = {"note": "Run make test.", "why": "pytest alone misses files", "scope": "organization"}
REMEMBERS = {"tool_calls": [{"name": "remember", "arguments": NOTE}]}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, small_repository(tmp_path / "remote.git"))


def systems(requests: list[dict[str, Any]]) -> set[str]:
    return {request["messages"][0]["content"] for request in requests}


def test_kept_notes_are_in_the_system_prompt_which_a_new_note_does_not_change(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    bench.order = bench.order.model_copy(update={"memory": OrderMemory(project=("Use tabs.",))})
    model = scripted([REMEMBERS, shell("touch made"), says("done")])
    assert bench.run(model.url).status == "success"
    (system,) = systems(model.requests)
    assert "For this project:\n\n- Use tabs.\n" in system
    assert "Run make test." not in system
    assert bench.last(RememberStep) == RememberStep(
        text="Run make test.", why="pytest alone misses files", scope="organization"
    )


def test_without_a_control_plane_that_keeps_notes_there_is_no_tool_for_them(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    model = scripted([REMEMBERS, says("done")])
    assert bench.run(model.url).status == "success"
    assert "remember" not in {tool["function"]["name"] for tool in model.requests[0]["tools"]}
    assert "no tool named 'remember'" in model.requests[1]["messages"][-1]["content"]
