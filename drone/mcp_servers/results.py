"""A server's answer to a call, as shown to the model, and the failure that takes its place."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drone.agent.values import ToolResult
from drone.sandbox.output import Output

if TYPE_CHECKING:
    from mcp_types import CallToolResult, ContentBlock


_NAME = 200
"""Characters of a server's names that are shown in place of omitted content."""


class ServerFailed(Exception):
    """A server could not be started, or a call failed. The text continues a sentence that begins with its name."""


def result_of(answer: CallToolResult, log: Path) -> ToolResult:
    """Turn an answer into a result: its texts, and one line for each part that is not text.

    If it exceeds 10,000 characters, the model gets the head and the tail, and `log` gets the full text.
    """
    return shown("\n".join(_parts(answer)) or "(no output)", log, is_error=answer.is_error)


def shown(text: str, log: Path, *, is_error: bool) -> ToolResult:
    """Limit a text like a command's output."""
    output = Output(log)
    output.feed(text.encode("utf-8", "replace"))
    kept = output.close()
    return ToolResult(output.text(), is_error=is_error, output_bytes=output.total_bytes, log=kept)


def _parts(answer: CallToolResult) -> Iterator[str]:
    texts = [block.type == "text" for block in answer.content]
    if answer.structured_content is not None and not any(texts):
        yield _json(answer.structured_content)
    for block in answer.content:
        yield _part(block)


def _part(block: ContentBlock) -> str:
    if block.type == "text":
        return block.text
    if block.type == "resource_link":
        return f"[link to {block.name[:_NAME]}, {block.uri[:_NAME]}, not shown]"
    if block.type == "resource":
        resource = block.resource
        where = str(resource.uri)[:_NAME]
        if hasattr(resource, "text"):
            return f"[{where}]\n{resource.text}"
        return _not_shown(f"{where}, {resource.mime_type or 'bytes'}", resource.blob)
    return _not_shown(block.mime_type, block.data)


def _not_shown(what: str, base64: str) -> str:
    size = len(base64) * 3 // 4 - base64[-2:].count("=")
    return f"[{what[:_NAME]}, {size:,} bytes, not shown]"


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, indent=1)
    except RecursionError:
        return "[structured content, nested too deeply to be shown]"
