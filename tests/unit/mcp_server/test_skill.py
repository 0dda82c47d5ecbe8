"""The skill for coding assistants (S-125): true to the command line, and installed without harm."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from control_plane.cli.main import app
from control_plane.mcp_server.skill import FILE, NAME, install, skill_text, skills_directory
from shared.errors import Conflict, FleetFault
from shared.terminal.command_line import run
from tests.support.documents import commands_in, parse

TEXT = skill_text().decode()
COMMANDS = list(commands_in(TEXT))


def test_every_command_of_the_skill_exists_with_its_options() -> None:
    for words in COMMANDS:
        parse(words)
    assert len(COMMANDS) > 20


def test_the_skill_has_the_front_matter_that_assistants_expect() -> None:
    head = yaml.safe_load(TEXT.split("---")[1])

    assert head["name"] == NAME
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", NAME)
    assert 0 < len(head["description"]) <= 1024
    assert len(head["compatibility"]) <= 500


def test_the_skill_goes_where_assistants_of_the_project_look(tmp_path: Path) -> None:
    assert skills_directory(tmp_path) == tmp_path / ".agents" / "skills"
    (tmp_path / ".claude").mkdir()
    assert skills_directory(tmp_path) == tmp_path / ".claude" / "skills"


def test_the_skill_is_installed_and_updated_and_what_others_wrote_is_left_alone_without_force(tmp_path: Path) -> None:
    path = install(tmp_path, text=b"As it was.").path
    assert [install(tmp_path).outcome for _ in range(2)] == ["updated", "unchanged"]
    assert path.read_bytes() == skill_text()

    path.write_text("Mine.")
    with pytest.raises(Conflict):
        install(tmp_path)
    assert path.read_text() == "Mine."
    assert install(tmp_path, force=True).outcome == "updated"
    assert path.read_bytes() == skill_text()

    (tmp_path / "other" / NAME).mkdir(parents=True)
    (tmp_path / "other" / NAME / FILE).write_text("Somebody else's.")
    with pytest.raises(Conflict):
        install(tmp_path / "other")


def test_a_directory_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(FleetFault):
        install(tmp_path / "file")


def test_the_command_says_what_it_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    assert run(app, ["install-skill", "--json"]) == 0

    path = tmp_path / ".agents" / "skills" / NAME / FILE
    assert json.loads(capsys.readouterr().out) == {"path": str(path), "outcome": "written"}
    path.write_text("Mine.")
    assert run(app, ["install-skill"]) == 4
    assert "E-SKILL-CHANGED" in capsys.readouterr().err
