"""Token count of a conversation: estimated from lengths, corrected by the endpoint's counts."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil

from drone.agent.protocols import Model
from drone.agent.values import ToolSpec
from shared.events import Usage
from shared.messages import Message
from shared.work_order import Limits

_PARTS = 14
"""Sizes are counted in 14ths of a token: whole numbers add up to the same sum in any order."""
_PER_CHARACTER = 4
"""3.5 characters per token, for English and code a conservative value: the endpoint's count corrects it later."""
_PER_EXTRA_BYTE = 7
_PER_MESSAGE = 6 * _PARTS
_LOWEST, _HIGHEST = 0.5, 4.0
"""Bounds of the correction: some endpoints report implausible counts."""


@dataclass(frozen=True)
class WindowBudget:
    """A window, in tokens, and how it is divided (O-071, and a quarter each if it is small)."""

    window: int
    reserve_tokens: int = 0
    keep_recent_tokens: int = 0
    """`shared.work_order.Limits`: 0 for the usual share."""

    @property
    def full(self) -> int:
        """Maximum size of a question: the rest is reserved for the answer and for estimation errors."""
        return self.window - min(self.reserve_tokens or min(8192, self.window // 4), self.window * 3 // 4)

    @property
    def keep(self) -> int:
        """Size of the end of the conversation that stays unchanged."""
        return min(self.keep_recent_tokens or min(16384, self.window // 4), self.full // 2)

    @property
    def summary(self) -> int:
        """Maximum size of a summary's text."""
        return min(4096, self.window // 10)

    @property
    def footer(self) -> int:
        """Maximum size of the footer below it."""
        return min(2048, self.window // 15)

    @property
    def unseen(self) -> int:
        """Size that is always left for the results that the model has not seen yet, and for the calls they answer."""
        return self.window // 16


class Estimate:
    """Counts the tokens of questions. Each message is measured once, so that a step costs the same in a long run."""

    def __init__(self, model: Model, tools: Callable[[], Sequence[ToolSpec]], limits: Limits) -> None:
        self._model = model
        self._limits = limits
        self._tools = tools
        self._tools_size = 0
        self._sizes: dict[int, tuple[Message, int]] = {}
        """By identity; the message is kept, so that its id is not reused."""
        self._added_up: tuple[int, Message | None, int] = (0, None, 0)
        """The counted prefix: number of messages, the last one, and their size. Usually messages are only appended."""
        self._factor = 1.0
        self._counted = False
        self._overflowed_at = 0

    def room(self) -> WindowBudget:
        """The current window: a fallback may have a different one, and the endpoint's refusal overrides both."""
        window = self._model.window
        limits = self._limits
        return WindowBudget(
            min(window, self._overflowed_at or window), limits.reserve_tokens, limits.keep_recent_tokens
        )

    def question(self, messages: Sequence[Message]) -> int:
        """Tokens of a question: its messages and the tools."""
        return self._tokens(self._question_size(messages))

    def messages(self, *messages: Message) -> int:
        """Tokens of messages only."""
        return self._tokens(sum(map(self._size, messages)))

    def text(self, text: str) -> int:
        return self._tokens(_text_size(text))

    def learned(self, usage: Usage, messages: Sequence[Message]) -> None:
        """Correct the estimates by the endpoint's count for a question."""
        if usage.input_tokens > 0:
            ratio = usage.input_tokens * _PARTS / self._question_size(messages)
            self._factor = min(max(ratio, _LOWEST), _HIGHEST)
            self._counted = True
        if self._overflowed_at:
            # The endpoint accepted this question, even if it refused a smaller one before.
            self._overflowed_at = max(self._overflowed_at, usage.input_tokens)

    def overflowed(self, messages: Sequence[Message]) -> None:
        """Record that the endpoint refused these messages: it overrides the estimate and the window's stated size."""
        tokens, window = self.question(messages), self.room().window
        if tokens >= window:
            return
        if self._counted:
            self._overflowed_at = tokens
        else:
            self._factor *= window / tokens

    def forget(self) -> None:
        """Recount from the start, because the conversation was changed in its middle."""
        self._added_up = (0, None, 0)

    def _tokens(self, size: int) -> int:
        return ceil(self._factor * size / _PARTS)

    def _question_size(self, messages: Sequence[Message]) -> int:
        count, last, size = self._added_up
        if not (0 < count <= len(messages) and messages[count - 1] is last):
            count, size = 0, 0
        size += sum(map(self._size, messages[count:]))
        self._added_up = (len(messages), messages[-1] if messages else None, size)
        if len(self._sizes) > 2 * len(messages) + 64:
            self._sizes = {id(message): self._sizes[id(message)] for message in messages}
        return size + self._size_of_tools()

    def _size(self, message: Message) -> int:
        known = self._sizes.get(id(message))
        if known is None:
            known = self._sizes[id(message)] = (message, _message_size(message))
        return known[1]

    def _size_of_tools(self) -> int:
        # Once available, the list is the same for the whole run.
        if not self._tools_size:
            self._tools_size = sum(
                _text_size(tool.name + tool.description + json.dumps(tool.parameters)) for tool in self._tools()
            )
        return self._tools_size


def _message_size(message: Message) -> int:
    texts = [message.content, message.thinking]
    if message.thinking_blocks:
        texts.append(json.dumps(message.thinking_blocks, default=str))
    for call in message.tool_calls:
        texts += [call.id, call.name, call.arguments]
    return _PER_MESSAGE + sum(map(_text_size, texts))


def _text_size(text: str) -> int:
    """Estimate tokens from the length; non-ASCII characters cost more, depending on their bytes."""
    beyond = 0 if text.isascii() else len(text.encode("utf-8", "surrogatepass")) - len(text)
    return len(text) * _PER_CHARACTER + beyond * _PER_EXTRA_BYTE
