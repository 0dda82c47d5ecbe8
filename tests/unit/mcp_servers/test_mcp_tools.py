"""Under which names tools of MCP servers are told of, and how their answers become text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from mcp_types import CallToolResult, Tool

from drone.mcp_servers import ServerConfig
from drone.mcp_servers.listing import Names, listed
from drone.mcp_servers.results import result_of


def shown(tmp_path: Path, *content: dict[str, Any], **more: Any) -> str:
    return result_of(CallToolResult.model_validate({"content": content, **more}), tmp_path / "log").output


def test_names_have_letters_that_every_provider_takes_and_those_that_become_alike_are_told_apart() -> None:
    names = Names()
    given = [names.give("a", tool) for tool in ("x.y", "x/y", "x y")] + [names.give("s" * 80, "t") for _ in range(2)]
    assert given[:3] == ["mcp__a__x_y", "mcp__a__x_y_2", "mcp__a__x_y_3"]
    assert given[3:] == ["mcp__" + "s" * 59, "mcp__" + "s" * 57 + "_2"]


@given(st.lists(st.tuples(st.text(max_size=80), st.text(max_size=80)), max_size=30))
def test_names_are_distinct_and_fit_whatever_servers_call_their_tools(pairs: list[tuple[str, str]]) -> None:
    names = Names()

    given = [names.give(server, tool) for server, tool in pairs]

    assert len(set(given)) == len(given)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in given)


def test_texts_are_joined_and_what_is_no_text_is_named_by_kind_and_size(tmp_path: Path) -> None:
    text = {"type": "text", "text": "a"}
    content = {"content": [text, {**text, "text": "b"}], "isError": True}
    result = result_of(CallToolResult.model_validate(content), tmp_path / "log")
    assert (result.output, result.is_error, result.log) == ("a\nb", True, None)
    assert shown(tmp_path, structuredContent=[1, "é"]) == '[\n 1,\n "é"\n]'
    assert shown(tmp_path, text, structuredContent={"sum": 3}) == "a"
    cases: list[tuple[dict[str, Any], str]] = [
        ({"type": "image", "mimeType": "image/png", "data": "A" * 16460}, "[image/png, 12,345 bytes, not shown]"),
        ({"type": "audio", "mimeType": "audio/wav", "data": ""}, "[audio/wav, 0 bytes, not shown]"),
        ({"type": "resource_link", "name": "n" * 900, "uri": "x:y"}, f"[link to {'n' * 200}, x:y, not shown]"),
        ({"type": "resource", "resource": {"uri": "x:y", "blob": "QQ=="}}, "[x:y, bytes, 1 bytes, not shown]"),
        ({"type": "resource", "resource": {"uri": "x:y", "text": "all of it"}}, "[x:y]\nall of it"),
    ]
    assert [(block, got) for block, text in cases if (got := shown(tmp_path, block)) != text] == []


ARRAY = {"type": "array"}
SENT = {
    "an array without items": ({"a": ARRAY}, {"a": {**ARRAY, "items": {}}}),
    "within an array": ({"a": {**ARRAY, "items": ARRAY}}, {"a": {**ARRAY, "items": {**ARRAY, "items": {}}}}),
    "or null": ({"a": {"type": ["array", "null"]}}, {"a": {"type": ["array", "null"], "items": {}}}),
    "one of several": ({"a": {"anyOf": [ARRAY, {}]}}, {"a": {"anyOf": [{**ARRAY, "items": {}}, {}]}}),
    "a tuple": ({"a": {**ARRAY, "prefixItems": [{}]}}, {"a": {**ARRAY, "prefixItems": [{}]}}),
    "a value": ({"a": {"default": ARRAY, "enum": [ARRAY]}}, {"a": {"default": ARRAY, "enum": [ARRAY]}}),
    "a property of that name": ({"type": {"type": "string"}}, {"type": {"type": "string"}}),
    "anything": ({"a": True}, {"a": True}),
}
BROKEN: list[tuple[dict[str, Any], str]] = [
    ({"type": "array"}, "are not an object"),
    ({}, "are not an object"),
    ({"type": "object", "properties": None}, "is invalid"),
    ({"type": "object", "properties": ["a"]}, "is invalid"),
    ({"type": "object", "required": "a"}, "is invalid"),
    ({"type": "object", "properties": {"a": {"type": "text"}}}, "is invalid"),
    ({"type": "object", "properties": {"a": {"type": "string", "pattern": 7}}}, "is invalid"),
    ({"type": "object", "properties": {"a": {"minimum": float("nan")}}}, "cannot be sent"),
    ({"type": "object", "properties": {"a": {"enum": []}}, "x": "y" * 40_000}, "is larger than"),
]


def chosen(schema: dict[str, Any]) -> tuple[dict[str, Any] | None, list[str]]:
    """The schema as the model is told of it, None if the tool is left out, and the problems."""
    problems: list[str] = []
    config = ServerConfig(name="b", owners=True, command="x")
    found = [*listed(config, [Tool(name="t", input_schema=schema)], Names(), problems)]
    return (found[0].spec.parameters if found else None), problems


def test_a_schema_that_providers_refuse_is_completed_and_a_broken_one_leaves_its_tool_out() -> None:
    wrong = {}
    for name, (properties, expected) in SENT.items():
        found = chosen({"type": "object", "properties": properties})
        if found != ({"type": "object", "properties": expected}, []):
            wrong[name] = found
    for schema, words in BROKEN:
        left, problems = chosen(schema)
        if left is not None or len(problems) != 1 or words not in problems[0] or len(problems[0]) > 200:
            wrong[str(schema)[:80]] = (left, problems)
    assert wrong == {}
