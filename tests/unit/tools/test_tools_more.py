"""Tools that are there when somebody stands behind them: todo, spawn, those from elsewhere, and more places to read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from drone.agent.values import ToolResult
from shared.errors import Preempted
from shared.events import TodoItem, TodoStep
from tests.support.toolboxes import MadeTool, called, toolbox


def test_todo_records_the_whole_list_unless_it_cannot_be_shown(workspace: Path) -> None:
    kept: list[TodoStep] = []
    tools = toolbox(workspace, record_todo=kept.append)
    cases: list[tuple[list[Any], str]] = [
        ([{"text": "a", "status": "in_progress"}] * 2, "2 items are in_progress"),
        ([{"text": "a"}] * 101, "at most 100 items"),
        ([{"text": "x" * 501}], "at most 500 characters"),
        ([{"text": ""}], "items.0.text"),
        ([{"text": "a", "status": "begun"}], "'pending', 'in_progress' or 'done'"),
        (["a"], "items.0"),
    ]
    for items, words in cases:
        said = called(tools, "todo", items=items)
        assert (said.is_error, words in said.output, kept) == (True, True, []), items
    listed = [{"text": "look", "status": "done"}, {"text": "mend", "status": "in_progress"}, {"text": "test"}]
    assert called(tools, "todo", items=listed).output == "noted: 1 done, 1 in progress, 1 pending"
    assert kept[0].items[1] == TodoItem(text="mend", status="in_progress")
    assert called(tools, "todo", items=[]).output == "noted: the list is empty"


def test_spawn_hands_call_task_and_tools_on_and_returns_the_childs_answer(workspace: Path) -> None:
    asked: list[tuple[str, str, Sequence[str] | None]] = []

    def spawn(call_id: str, task: str, tools: Sequence[str] | None) -> ToolResult:
        if task == "Stop.":
            raise Preempted
        asked.append((call_id, task, tools))
        return ToolResult("grown up")

    tools = toolbox(workspace, "plan", spawn=spawn)
    answers = [called(tools, "spawn", task="Look."), called(tools, "spawn", task="Count.", tools=["grep"])]
    assert [answer.output for answer in answers] == ["grown up"] * 2
    assert asked == [("call1", "Look.", None), ("call1", "Count.", ("grep", "submit"))]
    for tool in ("fly", "spawn", "shell", "add_comment"):
        said = called(tools, "spawn", task="Look.", tools=["grep", tool])
        available = "file_read, grep, glob, web_fetch, submit"
        assert said.output == f"Error: a child cannot use {tool!r}; available tools: {available}"
    with pytest.raises(Preempted):
        called(tools, "spawn", task="Stop.")
    assert len(asked) == 2


def test_a_tool_from_elsewhere_gets_the_call_as_it_is_and_one_that_breaks_is_the_answer(workspace: Path) -> None:
    made, broken = MadeTool("look_up"), MadeTool("broken", error=ZeroDivisionError("by zero"))
    tools = toolbox(workspace, foreign=[made, broken, MadeTool("ending", error=Preempted())])
    before = tools.specs()
    said = called(tools, "look_up", word="drone")
    assert (said.output, made.calls[0].id) == ('{"word": "drone"}', "call1")
    assert tools.specs() == before, "what the model was told stays the same for the whole run"
    said = called(tools, "broken")
    assert (said.is_error, said.output) == (True, "Error: broken failed: ZeroDivisionError: by zero")
    with pytest.raises(Preempted):
        called(tools, "ending")


def test_built_in_names_win_and_what_was_left_out_is_said(workspace: Path) -> None:
    foreign = [MadeTool("shell"), MadeTool("look_up"), MadeTool("look_up"), MadeTool("no name")]

    tools = toolbox(workspace, foreign=foreign)

    names = [spec.name for spec in tools.specs()]
    assert names.count("shell") == names.count("look_up") == 1
    assert tools.problems == [
        "The tool 'shell' is ignored: a built-in tool has the same name.",
        "The tool 'look_up' is ignored: another tool has the same name.",
        "The tool 'no name' is ignored: its name must have 1 to 64 letters, digits, `_` and `-`.",
    ]
    assert called(tools, "shell", command="echo ours").output.startswith("ours")


def test_further_directories_can_be_read_and_searched_and_not_written(workspace: Path, tmp_path: Path) -> None:
    skill = tmp_path / "skills" / "review"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("Read twice.\n")
    tools = toolbox(workspace, readable=[tmp_path / "skills", tmp_path / "none"])
    path = str(skill / "SKILL.md")

    assert called(tools, "file_read", path=path).output == "     1\tRead twice."
    assert called(tools, "grep", pattern="twice", path=str(skill)).output == f"{path}\n1:Read twice."
    assert called(tools, "glob", pattern="*.md", path=str(tmp_path / "skills")).output == path
    assert "outside the workspace" in called(tools, "file_write", path=path, content="x").output
    assert "outside" in called(tools, "editor", command="str_replace", path=path, old_str="R", new_str="x").output
    assert "outside the workspace" in called(tools, "file_read", path=str(tmp_path)).output
