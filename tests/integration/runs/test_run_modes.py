"""A run in a mode that is not built in: its text, its tools, and the same list of tools in every question."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shared.events import ErrorStep, ToolResultStep
from shared.tool_names import ALWAYS, SELECTABLE
from shared.work_order import ModeDefinition
from tests.support.runs import Bench, shell, small_repository
from tests.support.scripted import ScriptedFactory, says
from tests.support.toolboxes import toolbox

pytestmark = pytest.mark.usefixtures("warm_model")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "bench", small_repository(tmp_path / "repository.git"))


def in_mode(bench: Bench, *tools: str) -> None:
    mode = ModeDefinition(name="docs", text="Write {{ documentation }}.", tools=tools)
    bench.order = bench.order.model_copy(update={"mode": mode})


def test_the_model_is_told_the_modes_text_and_has_its_tools_alone(bench: Bench, scripted: ScriptedFactory) -> None:
    in_mode(bench, "file_read", "editor")
    server = scripted([shell("touch x"), says("done")])
    bench.run(server.url)
    first = server.requests[0]
    assert "# Mode: docs\n\nWrite {{ documentation }}." in first["messages"][0]["content"]
    offered = {tool["function"]["name"] for tool in first["tools"]}
    assert offered - {*ALWAYS} == {"file_read", "editor"}
    (result,) = [event.body for event in bench.events if isinstance(event.body, ToolResultStep)]
    assert result.is_error
    assert "there is no tool named 'shell'. Call one of: file_read, editor" in result.output


def test_every_question_of_a_run_has_the_same_bytes_of_tools(bench: Bench, scripted: ScriptedFactory) -> None:
    in_mode(bench, "file_read", "shell")
    server = scripted([shell("true"), {"tool_calls": [{"name": "editor", "arguments": {}}]}, says("done")])
    bench.run(server.url)
    assert len({json.dumps(request["tools"]) for request in server.requests}) == 1
    assert len(server.requests) == 3


def test_a_mode_without_tools_has_all_and_a_tool_that_the_run_does_not_have_is_named(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    in_mode(bench)
    server = scripted([{**says("done"), "repeat": True}])
    bench.run(server.url)
    assert {*SELECTABLE} <= {tool["function"]["name"] for tool in server.requests[0]["tools"]}
    in_mode(bench, "file_read", "extension:clock")
    bench.run(server.url)
    (problem,) = [event.body.what for event in bench.events if isinstance(event.body, ErrorStep)]
    assert "'clock'" in problem


def test_the_names_to_select_from_are_those_of_the_tools(tmp_path: Path) -> None:
    assert {*toolbox(tmp_path).names} <= {*SELECTABLE, *ALWAYS}
