"""A scripted model (a stand-in) for teams: what it plays is read off the thread that an agent is shown.

Whoever hands over names the script of the next turn in the comment, as `script:NAME`; the task's description names the
first one. So the story is in the thread, where the agents find it, and any number of tasks play side by side.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from threading import Barrier
from typing import Any

from drone.model.scripted.script import Book, Reply, Script
from shared.transcripts import SITUATION

Doc = dict[str, Any]
DESCRIBED = "described by a script"
_MARKER = re.compile(r"\bscript:([\w.-]+)")
_AGENT = re.compile(r"^# You are (\w+)$", re.MULTILINE)


class TeamBook(Book):
    """Gives the replies of the script that is named last in the briefing; describes agents where it is asked to."""

    def __init__(self, scripts: Mapping[str, Sequence[Doc]], meeting: Mapping[str, Barrier] | None = None) -> None:
        """`meeting`: scripts whose first reply waits for that of others."""
        super().__init__({name: Script.validate_python(list(replies)) for name, replies in scripts.items()})
        self._meeting = meeting or {}

    def reply(self, messages: Sequence[Mapping[str, Any]], *, with_tools: bool = True) -> tuple[int, Reply]:
        if agent_of(messages) is None:
            text = {"text": f"{DESCRIBED}. It does what its instructions say."}
            return 0, Reply.model_validate({"tool_calls": [{"name": "set_description", "arguments": text}]})
        name = script_of(messages)
        index, reply = super().reply([_only(name, message) for message in messages], with_tools=with_tools)
        if index == 0 and name in self._meeting:
            self._meeting[name].wait(60)
        return index, reply


def agent_of(messages: Sequence[Mapping[str, Any]]) -> str | None:
    """Whose turn a request is of, by its system prompt; None: of nobody's."""
    found = _AGENT.search(str(messages[0]["content"]))
    return found[1] if found else None


def script_of(messages: Sequence[Mapping[str, Any]]) -> str:
    """The script that the briefing of a request names last."""
    return _MARKER.findall(_briefing(messages))[-1]


def comments(*texts: str) -> Doc:
    """A reply that writes into the thread."""
    return {"tool_calls": [{"name": "add_comment", "arguments": {"message": text}} for text in texts]}


def turn(*commands: str, hand_over: str, thought: str = "", said: str = "") -> list[Doc]:
    """A turn: commands, the last comment, and a final answer that nobody else gets to see."""
    shells = [{"name": "shell", "arguments": {"command": command}} for command in commands]
    steps = [{"text": thought, "tool_calls": [call]} for call in shells]
    return [*steps, comments(hand_over), {"text": said or "My turn is over."}]


def _briefing(messages: Sequence[Mapping[str, Any]]) -> str:
    texts = (str(message["content"]) for message in messages if message["role"] == "user")
    return next(text for text in texts if SITUATION in text).partition(SITUATION)[0]


def _only(name: str, message: Mapping[str, Any]) -> Mapping[str, Any]:
    """The message without any script's name in it but the one that counts, where the briefing is."""
    if message["role"] != "user":
        return message
    content = str(message["content"])
    opening = f"script:{name} {SITUATION}"
    return {**message, "content": opening if SITUATION in content else _MARKER.sub("", content)}
