"""Tools and skill for clients and assistants: complete, true to the operations and the command line, and harmless."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from control_plane.cli.main import app
from control_plane.contract.declarations import agents
from control_plane.contract.declarations.operation import every_operation
from control_plane.web import problems
from control_plane.web.mcp_server.declared import TOOLS, shortened
from control_plane.web.mcp_server.results import answered, refused
from control_plane.web.mcp_server.skill import FILE, NAME, install, skill_text, skills_directory
from control_plane.web.mcp_server.tools import InOrganization, ServedTool, request_of
from shared import errors
from shared.errors import Conflict, FleetError, FleetFault
from shared.terminal.command_line import run
from tests.support.documents import ROOT, commands_in, parse
from tests.support.operations_table import door_name

Doc = dict[str, Any]
OF_S_124 = {
    *("get_status", "list_organizations", "get_organization", "create_organization", "update_organization"),
    *("delete_organization", "list_agents", "get_agent", "create_agent", "update_agent", "remove_agent"),
    *("list_tasks", "get_task", "create_task", "add_comment", "preempt_task", "complete_task", "reopen_task"),
    *("retry_task", "cancel_task", "list_runs", "get_run"),
}
OWN = {"organization", "idempotency_key"}
"""Arguments of many tools that are no field of a request."""


def properties(tool: ServedTool[Any]) -> dict[str, Doc]:
    return dict(tool.listed.input_schema["properties"])


def without_words(schema: Any) -> Any:
    """The schema without titles and descriptions."""
    if isinstance(schema, list):
        return [without_words(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    texts = {"title", "description"}
    return {key: without_words(value) for key, value in schema.items() if not (key in texts and isinstance(value, str))}


def below(kind: type[FleetError]) -> Iterator[type[FleetError]]:
    """All classes of errors that the fleet can tell."""
    yield kind
    for child in kind.__subclasses__():
        yield from below(child)


def test_the_tools_of_s_124_are_there_under_their_names() -> None:
    assert set(TOOLS) >= OF_S_124


def test_a_tool_and_each_of_its_arguments_are_described_and_no_other_argument_or_tool_is_named() -> None:
    described = [(name, each.description) for name, each in TOOLS.items()]
    assert [name for name, text in described if len(text) < 60 or not text.endswith(".")] == []
    arguments = [(name, key, about) for name, each in TOOLS.items() for key, about in properties(each).items()]
    assert [(name, key) for name, key, about in arguments if len(about.get("description", "")) < 20] == []
    assert all(tool.listed.input_schema["additionalProperties"] is False for tool in TOOLS.values())
    everywhere = {name for name, tool in TOOLS.items() if not issubclass(tool.arguments, InOrganization)}
    organizations = {f"{verb}_organization" for verb in ("get", "create", "update", "delete")}
    assert everywhere == {"list_organizations", *organizations}

    verbs = "get|list|create|update|delete|add|remove|submit|cancel|retry|reopen|complete|preempt|assign|drain|resume"
    name_of_tool = re.compile(rf"\b(?:{verbs}|fork|switch|compact)_[a-z]+\b")
    named = {name: set(name_of_tool.findall(each.listed.model_dump_json())) for name, each in TOOLS.items()}
    unknown = {name: names - set(TOOLS) - set(properties(TOOLS[name])) for name, names in named.items()}
    assert {name: names for name, names in unknown.items() if names} == {}


def test_the_arguments_of_a_change_are_the_fields_of_its_operations_request() -> None:
    changes = [each for each in every_operation() if each.method != "GET" and door_name(each.tool)]
    assert len(changes) > 40
    for operation in changes:
        listed = TOOLS[str(door_name(operation.tool))].listed.input_schema
        schema = operation.request.model_json_schema() if operation.request else {"properties": {}}
        fields = {key: without_words(value) for key, value in schema["properties"].items()}
        given = {key: without_words(value) for key, value in listed["properties"].items()}

        assert {key: given.get(key) for key in fields} == fields, operation.name
        assert set(given) - set(fields) - set(operation.names) <= OWN, operation.name
        assert set(schema.get("required", [])) <= set(listed.get("required", [])), operation.name
    arguments = TOOLS["update_agent"].arguments.model_validate({"name": "backend", "boss": None, "organization": "x"})
    assert request_of(agents.AgentEdit, arguments).model_fields_set == {"boss"}


def test_the_hints_say_what_only_reads_and_what_takes_something_away() -> None:
    hints = {name: tool.listed.annotations for name, tool in TOOLS.items()}
    reads = {name for name, each in hints.items() if each and each.read_only_hint}
    assert reads == {name for name in TOOLS if name.startswith(("get_", "list_"))}
    assert {name for name, each in hints.items() if each and each.destructive_hint} == {
        *("update_organization", "delete_organization", "update_agent", "remove_agent"),
        *("preempt_task", "cancel_task", "cancel_order", "remove_review_comment", "edit_plan", "take_back_messages"),
        *("cancel_batch", "cancel_graph", "cancel_race", "take_order"),
    }
    assert not any(each and each.idempotent_hint for name, each in hints.items() if name.startswith("create_"))


def test_every_class_of_errors_is_told_with_code_and_status() -> None:
    told = {"code": "E-X", "what": "it did not work", "why": "of this", "next": "fleet doctor"}
    kinds = set(below(FleetError))
    for kind in kinds:
        error = kind.__new__(kind)
        FleetError.__init__(error, "it did not work", code="E-X", why="of this", next="fleet doctor")
        result = refused(error)
        assert (result.is_error, result.structured_content) == (
            True,
            {**told, "status": kind.http_status, "help": "fleet help E-X"},
        ), kind
        assert json.loads(result.content[0].text) == result.structured_content  # type: ignore[union-attr]
    assert {errors.NotFound, errors.Conflict, errors.Invalid, problems.InvalidRequest} <= kinds
    result = answered([agents.AgentNode(name="lead", description="Führt.", reports=[])])
    assert result.structured_content == {"result": [{"name": "lead", "description": "Führt.", "reports": []}]}
    assert json.loads(result.content[0].text) == result.structured_content  # type: ignore[union-attr]
    cut = shortened({"seq": 3, "output": "x" * 1700, "tool": "shell"})
    assert cut["output"] == f"{'x' * 500}… (1,200 more characters; shown with full=true)"


def test_the_document_lists_the_tools_that_there_are() -> None:
    page = (ROOT / "docs" / "mcp-server.md").read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^\| `(\w+)` \| ([^|]+) \| ([^|]*) \|$", page)

    assert sorted(rows) == sorted((name, tool.title, effect(tool)) for name, tool in TOOLS.items())


def effect(tool: ServedTool[Any]) -> str:
    """What its hints say, in a word."""
    words = {
        "reads": tool.effect.reads,
        "overwrites or ends": tool.effect.destroys,
        "begins work": tool.effect.begins_work,
        "changes": True,
    }
    return next(word for word, is_so in words.items() if is_so)


def test_every_command_of_the_skill_exists_with_its_options() -> None:
    text = skill_text().decode()
    commands = list(commands_in(text))
    for words in commands:
        parse(words)
    assert len(commands) > 20
    # And it has the front matter that assistants expect.
    head = yaml.safe_load(text.split("---")[1])
    assert head["name"] == NAME
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", NAME)
    assert 0 < len(head["description"]) <= 1024
    assert len(head["compatibility"]) <= 500


def test_the_skill_is_installed_and_updated_and_what_others_wrote_is_left_alone_without_force(tmp_path: Path) -> None:
    assert skills_directory(tmp_path) == tmp_path / ".agents" / "skills"
    (tmp_path / "elsewhere" / ".claude").mkdir(parents=True)
    assert skills_directory(tmp_path / "elsewhere") == tmp_path / "elsewhere" / ".claude" / "skills"
    (tmp_path / "file").write_text("")
    with pytest.raises(FleetFault):
        install(tmp_path / "file")
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
