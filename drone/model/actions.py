"""Tools for models without tool calling: exactly one fenced action block in each answer, results as text messages.

`templates/actions.jinja` explains this to the model; it is the last section of the system prompt.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from drone.agent.answer_checks import parsed_arguments
from drone.agent.values import ToolSpec
from drone.model.surrogates import whole_json
from shared.messages import Message, ToolCall

_FENCE = re.compile(r"^ {0,3}(?P<fence>`{3,}|~{3,})(?P<info>[^`\n]*)$")
_ACTION = re.compile(r"^action[ \t:]+(?P<name>[\w.-]+)$")
_FORM = "```action TOOL, a line with a JSON object, ```"


@dataclass(frozen=True)
class ActionBlock:
    """An action block as written in an answer."""

    name: str
    body: str
    closed: bool


@dataclass(frozen=True)
class Fence:
    """A fenced code block, and where it stands in its text, with its fences."""

    info: str
    body: str
    closed: bool
    start: int
    end: int


def section(tools: Sequence[ToolSpec]) -> str:
    """Return the prompt section that describes the tools: the same bytes for the same tools."""
    plain = [tool.name for tool in tools if _plain_parameter(tool)]
    submit = any(tool.name == "submit" for tool in tools)
    text: str = _template().render(tools=tools, plain=plain, submit=submit, fence="```")
    return text.strip() + "\n"


def in_text(message: Message, tools: Sequence[ToolSpec], names: Mapping[str, str]) -> Message:
    """Return a message without calls: the tools are in the system prompt, and results are user messages.

    `names` maps each call id to its tool.
    """
    if message.role == "system" and tools:
        return message.model_copy(update={"content": f"{message.content.rstrip()}\n\n{section(tools)}"})
    if message.role == "tool":
        call = message.tool_call_id or ""
        head = f'<result tool="{names.get(call, "")}" call="{call}">'
        return Message(role="user", content=f"{head}\n{message.content.rstrip()}\n</result>")
    if message.tool_calls:
        return message.model_copy(update={"content": _own_text(message), "tool_calls": ()})
    return message


def acted(message: Message, tools: Sequence[ToolSpec], number: int, *, cut: bool) -> tuple[Message, str]:
    """Return an answer with the call from its action block, or without calls and with the problem.

    `number` becomes part of the call id. `cut`: the answer reached the length limit.
    """
    found = list(blocks(message.content))
    problem = _problem(found, cut=cut)
    if problem:
        return message.model_copy(update={"tool_calls": ()}), problem
    arguments = whole_json(_arguments(found[0], tools))
    call = ToolCall(id=f"action_{number}", name=found[0].name, arguments=arguments)
    return message.model_copy(update={"tool_calls": (call,)}), ""


def blocks(text: str) -> Iterator[ActionBlock]:
    """Yield the action blocks of a text. Blocks inside another fence do not count."""
    for fence in fences(text):
        if action := _ACTION.match(fence.info):
            yield ActionBlock(action["name"], fence.body, fence.closed)


def fences(text: str) -> Iterator[Fence]:
    """Yield the fenced code blocks of a text, as CommonMark defines them."""
    reader, info, body, start, at = FenceReader(), "", list[str](), 0, 0
    for line in text.split("\n"):
        was_open = bool(reader.mark)
        opened = reader.take(line)
        if opened is not None:
            info, body, start = opened, [], at
        elif was_open and not reader.mark:
            yield Fence(info, "\n".join(body), closed=True, start=start, end=at + len(line))
        else:
            body.append(line)
        at += len(line) + 1
    if reader.mark:
        yield Fence(info, "\n".join(body), closed=False, start=start, end=len(text))


class FenceReader:
    """Reads lines one by one; `mark` is the fence that is open, if any."""

    def __init__(self) -> None:
        self.mark = ""

    def take(self, line: str) -> str | None:
        """Read a line. Returns the info string if it opens a fenced code block."""
        match = _FENCE.match(line)
        if match is None:
            return None
        info = match["info"].strip()
        if not self.mark:
            self.mark = match["fence"]
            return info
        if not info and match["fence"].startswith(self.mark):
            self.mark = ""
        return None


def _problem(found: Sequence[ActionBlock], *, cut: bool) -> str:
    if len(found) == 1 and found[0].closed:
        return ""
    if cut:
        return "Your last answer reached the length limit and was not used. Write less in one answer."
    if not found:
        return (
            f"Your last answer has no action block, so nothing was done. Write exactly one: {_FORM}. "
            "A block inside another fence does not count. When the work is done, use `submit`."
        )
    if len(found) > 1:
        return f"Your last answer has {len(found)} action blocks, so none was run. Write exactly one in each answer."
    return f"The action block of your last answer is not closed, so it was not run. Write it again in full: {_FORM}."


def _arguments(block: ActionBlock, tools: Sequence[ToolSpec]) -> str:
    """Return a block's arguments as JSON; text that is neither JSON nor plain text for its tool stays unchanged."""
    tool = next((tool for tool in tools if tool.name == block.name), None)
    parsed = parsed_arguments(ToolCall(id="", name=block.name, arguments=block.body))
    known = tool.parameters.get("properties", {}) if tool else {}
    if isinstance(parsed, dict) and (not known or not parsed or parsed.keys() & known.keys()):
        return block.body.strip()
    parameter = _plain_parameter(tool) if tool else None
    if parameter and block.body.strip():
        return json.dumps({parameter: block.body})
    return block.body.strip() or "{}"


def _plain_parameter(tool: ToolSpec) -> str | None:
    """The parameter that plain text is assigned to: the only required one, or the only one; it must be a string."""
    known: dict[str, Any] = tool.parameters.get("properties", {})
    wanted = tool.parameters.get("required") or list(known)
    if len(wanted) != 1 or known.get(wanted[0], {}).get("type") != "string":
        return None
    return str(wanted[0])


def _own_text(message: Message) -> str:
    """The text of an answer with calls: unchanged if it has action blocks, otherwise with equivalent blocks added."""
    if any(blocks(message.content)):
        return message.content
    written = (f"{_around(call)}action {call.name}\n{call.arguments}\n{_around(call)}" for call in message.tool_calls)
    return "\n\n".join(filter(None, (message.content, *written)))


def _around(call: ToolCall) -> str:
    """A fence that the arguments cannot close."""
    longest = max((len(run) for run in re.findall(r"`{3,}", call.arguments)), default=2)
    return "`" * (longest + 1)


@cache
def _template() -> Any:
    # Nothing is escaped: the reader is a model, not a browser. A misspelled name in the template is an error.
    environment = Environment(
        loader=PackageLoader("drone.model"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # noqa: S701
    )
    environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    return environment.get_template("actions.jinja")
