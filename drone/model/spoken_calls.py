"""Finds calls that a model wrote as text instead of making them: nothing would be done, and the run would end.

Every chat template marks calls in its own way. What they have in common decides: the answer ends with the call, and the
call names a tool that exists. A call that is quoted (in code, in a block with text after it) is part of an answer.
All searches take time that grows with the length of the text, whatever it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, zip_longest
from typing import Any

from drone.agent.values import ToolSpec
from drone.model.actions import fences
from shared.messages import Message

_ASCII = str.maketrans({"\uff5c": "|", "\u2581": "_"})
"""DeepSeek's marks have bars and lines of their own."""
_MARK = re.compile(
    r"""
      <(?:\w{1,20}:)?(?:tool_?calls?|function_?calls?|tool_use|tools)>  # Hermes, Qwen, GLM, MiniMax, Seed, Nemotron
    | <\|(?!\w{0,30}(?:end|argument|output|response))
      (?:tool|python|action|plugin|start_action)\w{0,30}\|>         # DeepSeek, Kimi, Llama, Granite, InternLM, Cohere
    | <start_function_call>                                         # FunctionGemma
    | <(?:\|DSML\|)?(?:function|invoke|tool)(?:\ name)?=["']?       # Llama, Qwen Coder, Claude, DeepSeek 3.2
    | \[TOOL_CALLS\] | ^functools(?=\[)                             # Mistral, Firefunction
    | commentary\ to= | \bto=functions\.                            # harmony (gpt-oss)
    | ^Action:[ ]?(?=[\w-]{1,100}\s{1,9}Action\ Input:)             # ReAct
    | ^(?:`{3,}|~{3,})[ ]?action[ \t:]                              # our own form for models without tool calls
    | ^[ \t]*<(?=(?P<tag>[\w-]{1,100})>\s{0,99}<(?P<parameter>\w{1,100})>)      # Cline: the tool's name as a tag
    """,
    re.VERBOSE | re.MULTILINE | re.IGNORECASE,
)
_CLOSER = re.compile(
    r"</[^<>\s]{1,60}>|<\|(?:/\w{1,30}|call|\w{0,30}(?:end|eom|eot)\w{0,30})\|>|<end_\w{1,20}>|\[/\w{1,20}\]",
    re.IGNORECASE,
)
_TAIL = re.compile(rf"(?:{_CLOSER.pattern}|\s+|`{{3,}}|~{{3,}})\Z", re.IGNORECASE)
_LONGEST_TAIL = 70
_MADE_UP = re.compile(
    r"^[ \t]*(?:<\|?(?:tool|function)\w{0,20}(?:response|result|output)|\[TOOL_RES|Observation:)",
    re.MULTILINE,
)
"""Begins a result that the model invented after its call."""
_NAMED = re.compile(r"[\s\[]*(?:<(?:tool_)?name>\s*)?(?:(?:functions|default_api|tools)\.|call:)?([\w-]+)")
_KEYED = re.compile(
    r"""\\?["'](?:name|tool|tool_name|function|action)\\?["']\s*:\s*\\?["'](?:functions\.)?([\w-]+)\\?["']"""
)
_QUOTED = re.compile(r"^ {0,3}>[^\n]*|(?<!`)(`{1,2})(?!`)[^\n]*?(?<!`)\1(?!`)", re.MULTILINE)

_JSON = re.compile(r"(?:^|[.:!?;,]|\|>|`{3}\w{0,20})[ \t]*(?=[\[{])", re.MULTILINE)
_NAMES = ("name", "tool", "tool_name", "function", "action")
_ARGUMENTS = ("arguments", "parameters", "input", "args", "params", "action_input", "tool_input")
_WRAPPERS = ("function", "tool_calls", "tool_call", "function_call", "calls")
_MOST_BROKEN = 1_000
"""Beginnings of JSON in one text that turn out to be none: the error of each takes time for all lines before it."""
# Numbers of any length are read, which `int` refuses.
_DECODER = json.JSONDecoder(strict=False, parse_int=float)

_PYTHON = re.compile(
    r"^[ \t]*(?P<outer>\[\s*|print\()?(?:(?:functions|default_api|tools)\.)?(?P<name>\w+)(?P<open>\()"
    r"(?=\s*+(?:\)|\{?\s*+[\"']?(?P<parameter>\w+)[\"']?\s*[=:](?!=)))",
    re.MULTILINE,
)
_BRACKET = re.compile(r"""[(\[{]|[)\]}]|"(?:\\.|[^"\\])*+"?|'(?:\\.|[^'\\])*+'?""", re.DOTALL)

_Tools = Mapping[str, Mapping[str, Any]]
"""The parameters of each tool, by its name: the JSON schema."""


@dataclass(frozen=True)
class _Written:
    """A call written as text."""

    tool: str
    plain: bool
    """It has the marks of a template, and ends the answer outside code: it cannot be meant for a reader."""


def spoken_call(text: str, asked: Sequence[Message], tools: Sequence[ToolSpec]) -> str:
    """Return a message for the model if its answer ends with a call of one of the tools as text; otherwise ''.

    An answer that may be meant for a reader is accepted when it is given again, word for word, after that message: but
    only if the conversation shows that calls reach us, as otherwise the model cannot do better.
    """
    known, answer = {tool.name: tool.parameters for tool in tools}, text.translate(_ASCII)
    written = _marked(_unquoted(answer), known) or _unmarked(answer, known) if known else None
    if written is None or (not written.plain and _insisted(text, asked)):
        return ""
    return (
        f"Your last answer has a call to {written.tool} written as text, so it was not run. "
        "Make the call itself instead of describing it in text. "
        "If it is only meant to be read and your work is finished, quote it in a code block, with a sentence after it."
    )


def _insisted(text: str, asked: Sequence[Message]) -> bool:
    last = next((message for message in reversed(asked) if message.role == "assistant"), None)
    if last is None or last.tool_calls or last.content != text:
        return False
    return any(message.tool_calls for message in asked)


def _unquoted(text: str) -> str:
    """The text without what it quotes: code within a line, quoted lines, and blocks of code that do not end it."""
    end = _end(text)
    pieces, at = list[str](), 0
    for fence in fences(text):
        if fence.closed and fence.end <= end:
            pieces += (text[at : fence.start], "code")
            at = fence.end
    return _QUOTED.sub("code", "".join([*pieces, text[at:]]))


def _end(text: str) -> int:
    """Where a text ends without the whitespace, the fences and the marks that close calls."""
    end = len(text)
    while match := _TAIL.search(text, max(0, end - _LONGEST_TAIL), end):
        end = match.start()
    return end


def _marked(text: str, tools: _Tools) -> _Written | None:
    """The last call with the marks of a template."""
    marks = list(_MARK.finditer(text))
    named = ((mark, _name_after(mark, following, tools)) for mark, following in zip_longest(marks, marks[1:]))
    mark, tool = next(((mark, name) for mark, name in reversed(list(named)) if name), (None, ""))
    if mark is None:
        return None
    if _ends_call(text, mark):
        return _Written(tool, plain=all(mark.start() < fence.start for fence in fences(text)))
    # A call in lines of its own, with more text after it.
    begins = _MARK.match(text, text.rfind("\n", 0, mark.start()) + 1)
    alone = begins and any(text.startswith(("\n", " \n"), each.end()) for each in _CLOSER.finditer(text, mark.end()))
    return _Written(tool, plain=False) if alone else None


def _name_after(mark: re.Match[str], following: re.Match[str] | None, tools: _Tools) -> str:
    """The tool that is named after a mark and before the following one; '' if there is none."""
    text, end = mark.string, following.start() if following else len(mark.string)
    if tag := mark["tag"]:
        return tag if mark["parameter"] in tools.get(tag, {}).get("properties", {}) else ""
    direct = _NAMED.match(text, mark.end(), end)
    names = [direct[1]] if direct else []
    names += (match[1] for match in _KEYED.finditer(text, mark.end(), end))
    return next((name for name in names if name in tools), "")


def _ends_call(text: str, mark: re.Match[str]) -> bool:
    """Whether nothing but the call, or results that the model made up, follows a mark."""
    made_up = _MADE_UP.search(text, mark.end())
    end = made_up.start() if made_up else len(text)
    closed = mark.end()
    for closer in _CLOSER.finditer(text, mark.end(), end):
        closed = closer.end()
    rest = text[closed:end].strip(" \r\n`~;,")
    if closed > mark.end() and not rest.strip(")]}"):
        return True
    # Not closed, as the mark that would close it also ends the answer.
    if "<parameter" in rest or "<arg_" in rest or mark[0].startswith(("`", "~")):
        return True
    return closed == mark.end() and rest.endswith(("}", "]", ")"))


def _unmarked(text: str, tools: _Tools) -> _Written | None:
    """A call without marks that ends the text, as JSON or as in Python."""
    broken = count(1)

    def as_json(candidate: re.Match[str]) -> tuple[str, int]:
        start = candidate.end()
        try:
            value, stop = _DECODER.raw_decode(text, start)
        except json.JSONDecodeError as error:
            tool = _broken_json(text, start, end, tools)
            given_up = tool or next(broken) > _MOST_BROKEN
            return tool, end if given_up else max(error.pos, start + 1)
        except RecursionError:
            return "", end
        return _called(value, tools), stop

    def as_python(candidate: re.Match[str]) -> tuple[str, int]:
        stop = _closing(text, candidate.start("outer") if candidate["outer"] else candidate.start("open"))
        schema = tools.get(candidate["name"])
        if schema is None:
            return "", stop
        parameter = candidate["parameter"]
        fits = parameter in schema.get("properties", {}) if parameter else not schema.get("required")
        return candidate["name"] if fits else "", stop

    end = _end(text)
    tool = _last(text, end, _JSON, as_json) or _last(text, end, _PYTHON, as_python)
    return _Written(tool, plain=False) if tool else None


def _last(text: str, end: int, begins: re.Pattern[str], read: Callable[[re.Match[str]], tuple[str, int]]) -> str:
    """The tool of the last value, if nothing follows it. `read` returns the tool and where a value ends.

    What a value contains is not searched again.
    """
    at, tool, closed = 0, "", 0
    for candidate in begins.finditer(text, 0, end):
        if candidate.end() >= at:
            found, at = read(candidate)
            tool, closed = (found, at) if found else (tool, closed)
    return tool if not text[closed:end].strip(" \r\n;,") else ""


def _called(value: Any, tools: _Tools) -> str:
    """The tool of the first call in a JSON value."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, list):
            waiting += reversed(each)
        elif isinstance(each, dict):
            if tool := _names_tool(each, tools):
                return tool
            waiting += (each[key] for key in _WRAPPERS if key in each)
    return ""


def _names_tool(document: Mapping[str, Any], tools: _Tools) -> str:
    values = (document.get(key) for key in _NAMES)
    names = (value.removeprefix("functions.") for value in values if isinstance(value, str))
    tool = next((name for name in names if name in tools), "")
    arguments = next((document[key] for key in _ARGUMENTS if key in document), None)
    if not tool or (isinstance(arguments, dict) and {"type", "properties"} <= arguments.keys()):
        return ""  # a description of the tool, with its schema
    given = arguments is not None or document.keys() & tools[tool].get("properties", {}).keys()
    return tool if given else ""


def _broken_json(text: str, start: int, end: int, tools: _Tools) -> str:
    """The tool of a call whose JSON is invalid, as with quotes that are not escaped."""
    head = text[start : start + 400]
    named = _KEYED.search(head)
    if named is None or named[1] not in tools or not any(re.search(rf"[\"']{key}[\"']", head) for key in _ARGUMENTS):
        return ""
    return named[1] if text[end - 1] in "}]" else ""


def _closing(text: str, start: int) -> int:
    """Where the bracket at `start` is closed; the end of the text if it is not."""
    depth = 0
    for token in _BRACKET.finditer(text, start):
        depth += (token[0] in ("(", "[", "{")) - (token[0] in (")", "]", "}"))
        if depth == 0:
            return token.end()
    return len(text)
