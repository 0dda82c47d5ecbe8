"""Detects calls that a model wrote as text instead of making them: nothing would be done, and the run would end."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from drone.agent.values import ToolSpec
from drone.model.actions import blocks

_MARKED = re.compile(r"<\|?tool_calls?(?:_begin)?\|?>|<function=|\[TOOL_CALLS\]|<invoke name=|<\|python_tag\|>")
_WRAPPED = re.compile(r"\A\s*(?:```\w*\s*\n)?\s*(?P<json>[\[{].*[\]}])\s*(?:\n\s*```)?\s*\Z", re.DOTALL)
_LONGEST = 100_000
"""Characters; a longer text is not a call written as text."""


def spoken_call(text: str, tools: Sequence[ToolSpec]) -> str:
    """Return a message for the model if a text is a call of one of the tools; otherwise ''."""
    names = {tool.name for tool in tools}
    if not names or len(text) > _LONGEST:
        return ""
    written = next((name for name in _named(text) if name in names), "")
    if not written:
        return ""
    return (
        f"Your last answer has a call to {written} written as text, so it was not run. "
        "Make the call itself instead of describing it in text."
    )


def _named(text: str) -> Iterator[str]:
    """Yield possible call names: from action blocks, after chat template markers, and from texts that are JSON."""
    yield from (block.name for block in blocks(text))
    for mark in _MARKED.finditer(text):
        yield from re.findall(r"[\w-]+", text[mark.end() : mark.end() + 100])
    match = _WRAPPED.match(text)
    try:
        parsed = json.loads(match["json"]) if match else None
    except (ValueError, RecursionError):
        return
    for each in parsed if isinstance(parsed, list) else [parsed]:
        inner: Any = each.get("function", each) if isinstance(each, dict) else None
        if isinstance(inner, dict) and {"arguments", "parameters", "input"} & inner.keys():
            yield str(inner.get("name"))
        elif isinstance(each, dict) and isinstance(inner, str):
            yield inner
