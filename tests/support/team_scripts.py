"""A scripted model (a stand-in) for teams: it takes its script from the thread in an agent's briefing.

An agent that hands over names the script of the next turn in its comment, as `script:NAME`; the task's description
names the first one. The whole story is therefore in the thread, and any number of tasks can run concurrently.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from drone.model.scripted.script import Book, Reply
from shared.transcripts import SITUATION
from tests.support.scripted_model import Script

Doc = dict[str, Any]
DESCRIBED = "described by a script"
_MARKER = re.compile(r"\bscript:([\w.-]+)")
_AGENT = re.compile(r"^# You are (\w+)$", re.MULTILINE)


class TeamBook(Book):
    """Gives the replies of the script named last in the briefing; answers requests for descriptions of agents."""

    def __init__(self, scripts: Mapping[str, Sequence[Doc]]) -> None:
        super().__init__({name: Script.validate_python(list(replies)) for name, replies in scripts.items()})

    def reply(self, messages: Sequence[Mapping[str, Any]], *, with_tools: bool = True) -> tuple[int, Reply]:
        if agent_of(messages) is None:
            text = {"text": f"{DESCRIBED}. It does what its instructions say."}
            return 0, Reply.model_validate({"tool_calls": [{"name": "set_description", "arguments": text}]})
        name = script_of(messages)
        return super().reply([_only(name, message) for message in messages], with_tools=with_tools)


def agent_of(messages: Sequence[Mapping[str, Any]]) -> str | None:
    """The agent whose turn a request belongs to, from its system prompt; None if it is not part of a turn."""
    found = _AGENT.search(str(messages[0]["content"]))
    return found[1] if found else None


def script_of(messages: Sequence[Mapping[str, Any]]) -> str:
    """The script that the briefing of a request names last."""
    return _MARKER.findall(_briefing(messages))[-1]


def comments(*texts: str) -> Doc:
    """A reply that writes comments."""
    return {"tool_calls": [{"name": "add_comment", "arguments": {"message": text}} for text in texts]}


def turn(*commands: str, hand_over: str, thought: str = "", said: str = "") -> list[Doc]:
    """A turn: commands, the last comment, and a final answer that no other agent sees."""
    shells = [{"name": "shell", "arguments": {"command": command}} for command in commands]
    steps = [{"text": thought, "tool_calls": [call]} for call in shells]
    return [*steps, comments(hand_over), {"text": said or "My turn is over."}]


def _briefing(messages: Sequence[Mapping[str, Any]]) -> str:
    texts = (str(message["content"]) for message in messages if message["role"] == "user")
    return next(text for text in texts if SITUATION in text).partition(SITUATION)[0]


def _only(name: str, message: Mapping[str, Any]) -> Mapping[str, Any]:
    """The message without script names, except the current one in place of the briefing."""
    if message["role"] != "user":
        return message
    content = str(message["content"])
    opening = f"script:{name} {SITUATION}"
    return {**message, "content": opening if SITUATION in content else _MARKER.sub("", content)}
