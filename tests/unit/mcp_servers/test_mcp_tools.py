"""Under which names tools of MCP servers are told of, and how their answers become text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from mcp_types import CallToolResult

from drone.mcp_servers.listing import Names
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
