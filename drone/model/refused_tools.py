"""Which tools an endpoint refused: their schemas are their servers', and one of them must not cost the whole order.

How endpoints name a tool: by its name (OpenAI, DeepSeek, Groq, Vertex AI) or by its place in the request (Anthropic,
Bedrock, Gemini, Mistral). Those that make a grammar of the schemas do not name it (llama.cpp, Ollama, vLLM).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from drone.model.errors import Failure
from drone.model.model_families import REFUSALS

_ABOUT_SCHEMAS = re.compile(r"schema|function.?declaration|\.parameters\b|\btools\b", re.IGNORECASE)
_UNNAMED = re.compile(r"schema|\bgrammar\b", re.IGNORECASE)
_NAMED = re.compile(
    # `function 'name'`, `tool "name"`, `name` functionDeclaration. Other quoted words are properties, which may well
    # have the name of another tool.
    r"\b(?:function|tool)s?\W{1,3}(?P<after>[\w-]+)|(?<![\w-])(?P<before>[\w-]++)\W{1,3}function.?declaration"
    r"|\b(?P<mcp>mcp__[\w-]+)",
    re.IGNORECASE,
)
_PLACES = tuple(
    # tools.3.custom, tools[3], 'tools', 3
    re.compile(rf"\b{name}(?:\[|\.|['\"],\s*)(\d+)", re.IGNORECASE)
    for name in (r"function_?declarations", "tools")
)


def refused_tools(failure: Failure, offered: Sequence[str]) -> tuple[str, ...]:
    """The tools that the endpoint names in its refusal of a request that offered these, in this order.

    Only the first one that is named: what follows may describe it. Empty if the refusal is about something else.
    """
    said = failure.detail
    # A mark for the prompt cache stands in a tool, and has an answer of its own.
    if failure.error_class not in REFUSALS or not _ABOUT_SCHEMAS.search(said) or "cache_control" in said:
        return ()
    named = (match["after"] or match["before"] or match["mcp"] for match in _NAMED.finditer(said))
    if name := next((name for name in named if name in offered), ""):
        return (name,)
    for place in _PLACES:
        found = {int(number) for number in place.findall(said)}
        if found and max(found) < len(offered):
            return tuple(offered[number] for number in sorted(found))
    return ()


def perhaps_refused(failure: Failure, offered: Sequence[str]) -> tuple[str, ...]:
    """Those of MCP servers among the offered tools, if a refusal is about the schema of a tool that it does not name.

    The drone's own tools have schemas that every endpoint takes.
    """
    if failure.error_class not in REFUSALS or not _UNNAMED.search(failure.detail):
        return ()
    return tuple(name for name in offered if name.startswith("mcp__"))
