"""The tools do what their rules ask (S-060 to S-064, M-003), with real files and real commands."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from drone.agent.values import ToolResult
from drone.sandbox import choose
from drone.tools import Tools, build_toolbox
from shared.errors import Submitted
from shared.messages import ToolCall


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = tmp_path / "workspace"
    (workspace / "src").mkdir(parents=True)
    (workspace / "src" / "a.py").write_text("one\ntwo\nthree\ntwo\n")
    return workspace


@pytest.fixture
def tools(workspace: Path, tmp_path: Path) -> Tools:
    return build_toolbox(
        workspace,
        choose("none", os.environ),
        mode="build",
        command_timeout=60,
        log_dir=tmp_path / "logs",
        on_output=None,
        check=lambda: None,
    )


def use(tools: Tools, name: str, **arguments: Any) -> ToolResult:
    return tools.execute(ToolCall(id="call_1", name=name, arguments=json.dumps(arguments)))


@pytest.mark.parametrize("path", ["../outside", "/etc/passwd", "src/../../outside", "link/passwd"])
@pytest.mark.parametrize("tool", ["file_read", "file_write", "editor"])
def test_a_path_that_leads_out_of_the_workspace_is_refused(
    tools: Tools, workspace: Path, tmp_path: Path, tool: str, path: str
) -> None:
    (workspace / "link").symlink_to("/etc")
    rest = {"file_read": {}, "file_write": {"content": "x"}, "editor": {"command": "undo_edit"}}[tool]

    refused = use(tools, tool, path=path, **rest)

    assert refused.is_error
    assert "workspace" in refused.output
    assert not (tmp_path / "outside").exists()


def test_file_read_views_with_line_numbers_and_reads_some_lines(tools: Tools, workspace: Path) -> None:
    whole = use(tools, "file_read", path="src/a.py").output
    some = use(tools, "file_read", mode="lines", path=str(workspace / "src/a.py"), start_line=2, end_line=3).output

    assert [line.split() for line in whole.splitlines()] == [["1", "one"], ["2", "two"], ["3", "three"], ["4", "two"]]
    assert [line.split() for line in some.splitlines()] == [["2", "two"], ["3", "three"]]


def test_file_read_searches_below_a_directory(tools: Tools) -> None:
    found = use(tools, "file_read", mode="search", path=".", search_pattern="^thr").output

    assert "src/a.py" in found
    assert "three" in found
    assert "one" not in found


def test_file_read_finds_at_most_200_files_and_says_that_there_are_more(tools: Tools, workspace: Path) -> None:
    _ = [(workspace / f"{number:03}.txt").touch() for number in range(250)]

    found = use(tools, "file_read", mode="find", path=".", search_pattern="*.txt").output

    assert found.count(".txt") == 200
    assert "50" in found.splitlines()[-1]


def test_file_write_makes_parents_and_says_how_many_bytes_it_wrote(tools: Tools, workspace: Path) -> None:
    said = use(tools, "file_write", path="new/deep/b.txt", content="grün\n").output

    assert (workspace / "new/deep/b.txt").read_text(encoding="utf-8") == "grün\n"
    assert "6 bytes" in said


def test_editor_replaces_a_text_that_occurs_exactly_once(tools: Tools, workspace: Path) -> None:
    done = use(tools, "editor", command="str_replace", path="src/a.py", old_str="three\n", new_str="3\n")

    assert not done.is_error
    assert (workspace / "src/a.py").read_text() == "one\ntwo\n3\ntwo\n"


@pytest.mark.parametrize("old", ["two", "four"])
def test_editor_leaves_a_file_alone_where_the_text_occurs_twice_or_never(
    tools: Tools, workspace: Path, old: str
) -> None:
    refused = use(tools, "editor", command="str_replace", path="src/a.py", old_str=old, new_str="2")

    assert refused.is_error
    assert (workspace / "src/a.py").read_text() == "one\ntwo\nthree\ntwo\n"


def test_editor_inserts_at_a_line_and_takes_the_last_edit_back_once(tools: Tools, workspace: Path) -> None:
    use(tools, "editor", command="insert", path="src/a.py", insert_line=2, new_str="one and a half\n")
    inserted = (workspace / "src/a.py").read_text()
    use(tools, "editor", command="undo_edit", path="src/a.py")
    again = use(tools, "editor", command="undo_edit", path="src/a.py")

    assert inserted == "one\none and a half\ntwo\nthree\ntwo\n"
    assert (workspace / "src/a.py").read_text() == "one\ntwo\nthree\ntwo\n"
    assert again.is_error


def test_shell_runs_in_the_workspace_and_gives_the_return_code(tools: Tools) -> None:
    result = use(tools, "shell", command="ls src; exit 3")

    assert result.return_code == 3
    assert result.output.startswith("a.py\n")


def test_a_command_whose_first_output_line_is_the_phrase_submits_the_rest(tools: Tools) -> None:
    with pytest.raises(Submitted) as signal:
        use(tools, "shell", command="echo; echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo all is well")

    assert signal.value.outcome
    assert signal.value.outcome.response == "all is well"


@pytest.mark.parametrize("command", ["cat phrase", "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; exit 1"])
def test_the_phrase_submits_nothing_from_a_file_or_with_another_return_code(
    tools: Tools, workspace: Path, command: str
) -> None:
    (workspace / "phrase").write_text("COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\nnot me\n")

    assert "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT" in use(tools, "shell", command=command).output
