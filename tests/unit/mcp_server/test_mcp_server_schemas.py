"""What a client is told of the tools: complete, true to the operations' own requests, and errors with one mapping."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

from control_plane.declarations import agents, organizations, plans, pull_requests, reviews, sessions
from control_plane.declarations import task_documents as tasks
from control_plane.documents import orders
from control_plane.mcp_server.declared import TOOLS
from control_plane.mcp_server.results import answered, refused
from control_plane.mcp_server.shortening import shortened
from control_plane.mcp_server.tools import InOrganization, McpToolArguments, ServedTool, request_of
from control_plane.web import problems
from shared import errors
from shared.errors import FleetError
from tests.support.documents import ROOT

Doc = dict[str, Any]
OF_S_124 = {
    *("get_status", "list_organizations", "get_organization", "create_organization", "update_organization"),
    *("delete_organization", "list_agents", "get_agent", "create_agent", "update_agent", "remove_agent"),
    *("list_tasks", "get_task", "create_task", "add_comment", "preempt_task", "complete_task", "reopen_task"),
    *("retry_task", "cancel_task", "list_runs", "get_run"),
}
REQUESTS = {
    "create_organization": organizations.OrganizationRequest,
    "update_organization": organizations.OrganizationEdit,
    "create_agent": agents.AgentRequest,
    "update_agent": agents.AgentEdit,
    "create_task": tasks.TaskRequest,
    "add_comment": tasks.CommentRequest,
    "assign_task": tasks.AssignRequest,
    "retry_task": tasks.TaskRetryRequest,
    "cancel_task": tasks.TaskCancelRequest,
    "submit_order": orders.SubmitRequest,
    "say_to_order": orders.SayRequest,
    "resume_order": orders.ResumeRequest,
    "answer_order": orders.AnswerRequest,
    "edit_plan": plans.EditPlanRequest,
    "approve_plan": plans.ApprovePlanRequest,
    "send_back_plan": plans.SendBackPlanRequest,
    "approve_call": orders.ApproveRequest,
    "deny_call": orders.DenyRequest,
    "add_review_comment": reviews.ReviewCommentRequest,
    "send_review": reviews.SendReviewRequest,
    "open_pull_request": pull_requests.PullRequestRequest,
    "open_task_pull_request": pull_requests.PullRequestRequest,
    "create_session": sessions.SessionRequest,
    "fork_session": sessions.ForkRequest,
    "switch_session": sessions.SwitchRequest,
    "compact_session": sessions.CompactRequest,
}
OWN = {
    "organization",
    "name",
    "slug",
    "task_id",
    "order_id",
    "comment_id",
    "session_id",
    "graph_id",
    "race_id",
    "batch_id",
    "idempotency_key",
}
"""Arguments that say where, and no field of a request."""


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
    assert len(OF_S_124) == 22
    assert set(TOOLS) >= OF_S_124


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
def test_a_tool_and_each_of_its_arguments_are_described(tool: ServedTool[Any]) -> None:
    assert len(tool.description) >= 60
    assert tool.description.endswith(".")
    assert {name: len(about.get("description", "")) >= 20 for name, about in properties(tool).items()} == dict.fromkeys(
        properties(tool), True
    )


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
def test_a_description_names_only_tools_that_there_are(tool: ServedTool[Any]) -> None:
    verbs = "get|list|create|update|delete|add|remove|submit|cancel|retry|reopen|complete|preempt|assign|drain|resume"
    verbs += "|fork|switch|compact"
    named = set(re.findall(rf"\b(?:{verbs})_[a-z]+\b", json.dumps(tool.listed.model_dump(mode="json"))))

    assert named - set(TOOLS) - set(properties(tool)) == set()


@pytest.mark.parametrize(("name", "request_model"), REQUESTS.items(), ids=REQUESTS)
def test_the_arguments_are_the_fields_of_the_operations_request(name: str, request_model: type[BaseModel]) -> None:
    schema = request_model.model_json_schema()
    given = {key: without_words(value) for key, value in properties(TOOLS[name]).items()}

    assert {key: given[key] for key in schema["properties"]} == {
        key: without_words(value) for key, value in schema["properties"].items()
    }
    assert set(given) - set(schema["properties"]) <= OWN
    assert set(schema.get("required", [])) <= set(TOOLS[name].listed.input_schema["required"])


def test_every_tool_that_takes_more_than_names_takes_a_request() -> None:
    kinds = {name: tool.arguments for name, tool in TOOLS.items() if not tool.effect.reads}
    own = {name: set(kind.model_fields) - OWN for name, kind in kinds.items()}

    assert {name for name, fields in own.items() if fields} == set(REQUESTS) | {
        "cancel_batch",
        "cancel_order",
        "cancel_race",
        "move_order",
        "retry_batch",
        "set_order_priority",
        "submit_batch",
        "submit_graph",
        "submit_race",
        "take_back_messages",
        "take_order",
    }


def test_a_request_has_only_the_fields_that_were_given() -> None:
    arguments = TOOLS["update_agent"].arguments.model_validate({"name": "backend", "boss": None, "organization": "x"})

    assert request_of(agents.AgentEdit, arguments).model_fields_set == {"boss"}


def test_the_hints_say_what_only_reads_and_what_takes_something_away() -> None:
    hints = {name: tool.listed.annotations for name, tool in TOOLS.items()}

    assert {name for name, each in hints.items() if each and each.read_only_hint} == {
        name for name in TOOLS if name.startswith(("get_", "list_"))
    }
    assert {name for name, each in hints.items() if each and each.destructive_hint} == {
        *("update_organization", "delete_organization", "update_agent", "remove_agent"),
        *("preempt_task", "cancel_task", "cancel_order", "remove_review_comment", "edit_plan", "take_back_messages"),
        *("cancel_batch", "cancel_graph", "cancel_race", "take_order"),
    }
    assert not any(each and each.idempotent_hint for name, each in hints.items() if name.startswith("create_"))


def test_whatever_acts_in_an_organization_can_be_told_in_which() -> None:
    by_name = {name for name, tool in TOOLS.items() if not issubclass(tool.arguments, InOrganization)}

    assert by_name == {
        *("list_organizations", "get_organization", "create_organization"),
        *("update_organization", "delete_organization"),
    }


def test_arguments_that_do_not_exist_are_refused_by_the_schema() -> None:
    assert all(tool.listed.input_schema["additionalProperties"] is False for tool in TOOLS.values())
    assert all(issubclass(tool.arguments, McpToolArguments) for tool in TOOLS.values())


@pytest.mark.parametrize("kind", sorted(set(below(FleetError)), key=lambda each: each.__name__))
def test_every_class_of_errors_is_told_with_code_and_status(kind: type[FleetError]) -> None:
    error = kind.__new__(kind)
    FleetError.__init__(error, "it did not work", code="E-X", why="of this", next="fleet doctor")

    result = refused(error)

    told = {"code": "E-X", "what": "it did not work", "why": "of this", "next": "fleet doctor"}
    assert result.is_error
    assert result.structured_content == {**told, "status": kind.http_status, "help": "fleet help E-X"}
    assert json.loads(result.content[0].text) == result.structured_content  # type: ignore[union-attr]


def test_the_classes_are_those_of_the_table_of_errors() -> None:
    assert {errors.NotFound, errors.Conflict, errors.Invalid, problems.InvalidRequest} <= set(below(FleetError))


def test_the_text_of_an_answer_is_its_structured_content() -> None:
    result = answered([agents.AgentNode(name="lead", description="Führt.", reports=[])])

    assert result.structured_content == {"result": [{"name": "lead", "description": "Führt.", "reports": []}]}
    assert json.loads(result.content[0].text) == result.structured_content  # type: ignore[union-attr]


def test_long_texts_of_a_step_are_cut_and_say_by_how_much() -> None:
    step = shortened({"seq": 3, "output": "x" * 1700, "tool": "shell"})

    assert step == {"seq": 3, "output": f"{'x' * 500}… (1,200 more characters; shown with full=true)", "tool": "shell"}


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
