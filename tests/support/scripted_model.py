"""The scripted model without a network: plays a script through the loop's protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import TypeAdapter

from drone.agent.values import ModelCallFailed, ModelResponse, OnDelta, ToolSpec
from drone.model.scripted.script import NoReply, Reply
from shared.clock import Clock
from shared.events import Usage
from shared.messages import Message, ToolCall

Script = TypeAdapter(list[Reply])
"""Reads a script; its ValidationError names the reply and the field."""


class ScriptedModel:
    """A stand-in that returns the replies of a script in order; its model is `scripted` in every answer.

    A reply's `delay_s` passes on the clock before its first piece. With `summaries`, a question without tools, which
    is how summaries are requested, gets the next of those.

    Raises ModelCallFailed for a reply whose status is not 200 (class `context_overflow` for 413), and at the end of
    the script.
    """

    def __init__(
        self,
        script: Any,
        clock: Clock,
        *,
        cost_usd: float | None = None,
        window: int = 131_072,
        summaries: Any = (),
    ) -> None:
        self._clock = clock
        self._replies = list(Script.validate_python(script))
        self._summaries = list(Script.validate_python(list(summaries)))
        self._cost_usd = cost_usd
        self.window = window
        self.asked: list[list[Message]] = []
        """The transcript of each question, as received."""
        self.asked_for_summary: list[list[Message]] = []

    def answer(self, messages: Sequence[Message], tools: Sequence[ToolSpec], on_delta: OnDelta) -> ModelResponse:
        apart = bool(self._summaries) and not tools
        replies, asked = (self._summaries, self.asked_for_summary) if apart else (self._replies, self.asked)
        at = len(asked)
        asked.append(list(messages))
        if at >= len(replies) and not (replies and replies[-1].repeat):
            raise ModelCallFailed(f"The script has {len(replies)} replies.", error_class=NoReply.__name__)
        reply = replies[min(at, len(replies) - 1)]
        self._clock.sleep(reply.delay_s)
        if reply.status != 200:
            error_class = "context_overflow" if reply.status == 413 else "server"
            raise ModelCallFailed(f"The script failed with {reply.status}.", error_class=error_class)
        if reply.thinking:
            on_delta("thinking", reply.thinking)
        if reply.text:
            on_delta("text", reply.text)
        return self._answer(at, reply)

    def _answer(self, at: int, reply: Reply) -> ModelResponse:
        calls = (
            ToolCall(id=f"call_{at}_{n}" if call.id is None else call.id, name=call.name, arguments=call.text)
            for n, call in enumerate(reply.tool_calls)
        )
        given = reply.usage
        usage = Usage(
            input_tokens=(given.input_tokens if given else None) or 0,
            output_tokens=(given.output_tokens if given else None) or 0,
            thinking_tokens=given.thinking_tokens if given else 0,
            cached_tokens=given.cached_tokens if given else 0,
            cost_usd=self._cost_usd,
        )
        message = Message(role="assistant", content=reply.text, thinking=reply.thinking, tool_calls=tuple(calls))
        finish = reply.finish_reason or ("tool_calls" if reply.tool_calls else "stop")
        return ModelResponse(message=message, usage=usage, finish_reason=finish, model="scripted")
