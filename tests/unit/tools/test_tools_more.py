"""Tools that are there when somebody stands behind them: todo, spawn, those from elsewhere, and more places to read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from drone.agent.values import ToolResult
from shared.errors import Preempted
from shared.events import TodoItem, TodoStep
from tests.support.toolboxes import MadeTool, called, toolbox, workspace

__all__ = ["workspace"]


def names(tools: Any) -> list[str]:
    return [spec.name for spec in tools.specs()]


def test_todo_records_the_whole_list_and_answers_with_a_count(workspace: Path) -> None:
    kept: list[TodoStep] = []
    tools = toolbox(workspace, record_todo=kept.append)

    said = called(
        tools,
        "todo",
        items=[{"text": "look", "status": "done"}, {"text": "mend", "status": "in_progress"}, {"text": "test"}],
    )

    assert said.output == "noted: 1 done, 1 in progress, 1 pending"
    assert kept[0].items[1] == TodoItem(text="mend", status="in_progress")
    assert called(tools, "todo", items=[]).output == "noted: the list is empty"


def test_a_list_that_cannot_be_shown_is_wrong_use(workspace: Path) -> None:
    cases: list[tuple[list[Any], str]] = [
        ([{"text": "a", "status": "in_progress"}] * 2, "2 items are in_progress"),
        ([{"text": "a"}] * 101, "at most 100 items"),
        ([{"text": "x" * 501}], "at most 500 characters"),
        ([{"text": ""}], "items.0.text"),
        ([{"text": "a", "status": "begun"}], "'pending', 'in_progress' or 'done'"),
        (["a"], "items.0"),
    ]
    for items, words in cases:
        kept: list[TodoStep] = []

        said = called(toolbox(workspace, record_todo=kept.append), "todo", items=items)

        assert said.is_error, items
        assert words in said.output, items
        assert kept == [], items


class Nursery:
    """Notes which children were asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Sequence[str] | None]] = []

    def spawn(self, call_id: str, task: str, tools: Sequence[str] | None) -> ToolResult:
        self.asked.append((call_id, task, tools))
        return ToolResult("grown up")


def test_spawn_hands_call_task_and_tools_on_and_returns_the_childs_answer(workspace: Path) -> None:
    nursery = Nursery()
    tools = toolbox(workspace, spawn=nursery.spawn)

    answers = [called(tools, "spawn", task="Look."), called(tools, "spawn", task="Count.", tools=["grep"])]

    assert [answer.output for answer in answers] == ["grown up"] * 2
    assert nursery.asked == [("call1", "Look.", None), ("call1", "Count.", ("grep", "submit"))]


def test_a_child_gets_no_tool_that_is_not_for_it(workspace: Path) -> None:
    for tool in ("fly", "spawn", "shell"):
        nursery = Nursery()

        said = called(toolbox(workspace, "plan", spawn=nursery.spawn), "spawn", task="Look.", tools=["grep", tool])

        assert (
            said.output
            == f"Error: a child cannot use {tool!r}; available tools: file_read, grep, glob, web_fetch, submit"
        ), tool
        assert nursery.asked == [], tool


def test_what_ends_a_child_ends_its_parents_step(workspace: Path) -> None:
    def spawn(*_: object) -> ToolResult:
        raise Preempted

    with pytest.raises(Preempted):
        called(toolbox(workspace, spawn=spawn), "spawn", task="Look.")


def test_plan_has_every_tool_that_changes_nothing_and_no_other(workspace: Path) -> None:
    foreign = [MadeTool("look_up", read_only=True), MadeTool("deploy")]

    tools = toolbox(workspace, "plan", record_todo=print, spawn=lambda *_: ToolResult(""), foreign=foreign)

    assert names(tools) == ["file_read", "grep", "glob", "web_fetch", "todo", "spawn", "submit", "look_up"]
    assert tools.read_only == set(names(tools))
    alone = set(names(toolbox(workspace)))
    assert not {"todo", "spawn"} & alone, "nobody stands behind them"


def test_a_tool_from_elsewhere_gets_the_call_as_it_is(workspace: Path) -> None:
    made = MadeTool("look_up")
    tools = toolbox(workspace, foreign=[made])
    before = tools.specs()

    said = called(tools, "look_up", word="drone")

    assert (said.output, made.calls[0].id) == ('{"word": "drone"}', "call1")
    assert tools.specs() == before, "what the model was told stays the same for the whole run"


def test_built_in_names_win_and_what_was_left_out_is_said(workspace: Path) -> None:
    foreign = [MadeTool("shell"), MadeTool("look_up"), MadeTool("look_up"), MadeTool("no name")]

    tools = toolbox(workspace, foreign=foreign)

    assert names(tools).count("shell") == names(tools).count("look_up") == 1
    assert tools.problems == [
        "The tool 'shell' is ignored: a built-in tool has the same name.",
        "The tool 'look_up' is ignored: another tool has the same name.",
        "The tool 'no name' is ignored: its name must have 1 to 64 letters, digits, `_` and `-`.",
    ]
    assert called(tools, "shell", command="echo ours").output.startswith("ours")


def test_a_tool_from_elsewhere_that_breaks_is_the_answer_to_its_call(workspace: Path) -> None:
    tools = toolbox(workspace, foreign=[MadeTool("look_up", error=ZeroDivisionError("by zero"))])

    said = called(tools, "look_up")

    assert (said.is_error, said.output) == (True, "Error: look_up failed: ZeroDivisionError: by zero")


def test_a_tool_from_elsewhere_lets_through_what_ends_the_run(workspace: Path) -> None:
    with pytest.raises(Preempted):
        called(toolbox(workspace, foreign=[MadeTool("look_up", error=Preempted())]), "look_up")


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


def test_a_command_with_a_nul_is_refused_with_a_way_to_write_one(workspace: Path) -> None:
    said = called(toolbox(workspace), "shell", command="echo a\0b")

    assert said.is_error
    assert said.output == "Error: a command line cannot contain NUL bytes; write them with printf '\\0'"
