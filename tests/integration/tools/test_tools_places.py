"""What tools may read besides the workspace, in each sandbox: the directory that was named, and nothing beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from drone.prompting import PromptSources, read_sources
from drone.sandbox import Sandbox
from drone.tools import Tools
from tests.support.toolboxes import called, toolbox


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    """A skill with a script in a drone's home, beside the drone's key."""
    folder = tmp_path / "home" / "prompt" / "skills" / "greet"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: greet\ndescription: Greets.\n---\nRun `sh greet.sh`.\n")
    (folder / "greet.sh").write_text("echo hello\n")
    (tmp_path / "home" / "key").write_text("k3y\n")
    return folder


@pytest.fixture
def tools(tmp_path: Path, skill: Path, sandbox: Sandbox) -> Tools:
    (tmp_path / "work").mkdir()
    parts = read_sources(PromptSources(home=tmp_path / "home" / "prompt"))
    lasting = sandbox.for_session(scratch=tmp_path / "scratch")
    return toolbox(tmp_path / "work", sandbox=lasting, readable=parts.readable)


def test_a_skill_of_the_drones_home_is_read_searched_and_run_and_nothing_beside_it(tools: Tools, skill: Path) -> None:
    assert "Run `sh greet.sh`" in called(tools, "file_read", path=str(skill / "SKILL.md")).output
    assert called(tools, "grep", pattern="hello", path=str(skill)).output == f"{skill}/greet.sh\n1:echo hello"
    assert called(tools, "shell", command=f"sh {skill}/greet.sh").output == "hello\n(return code 0)"
    for tool, arguments in (("file_read", {}), ("grep", {"pattern": "k3y"}), ("glob", {"pattern": "k3y"})):
        assert "outside the workspace" in called(tools, tool, path=str(skill.parents[2]), **arguments).output, tool


def test_in_bubblewrap_a_command_can_neither_change_the_skill_nor_see_the_drones_key(
    tmp_path: Path, skill: Path, bwrap: Sandbox
) -> None:
    (tmp_path / "work").mkdir()
    tools = toolbox(tmp_path / "work", sandbox=bwrap, readable=[skill])

    result = called(tools, "shell", command=f"touch {skill}/new; cat {skill.parents[2]}/key")

    assert "k3y" not in result.output
    assert sorted(path.name for path in skill.iterdir()) == ["SKILL.md", "greet.sh"]
