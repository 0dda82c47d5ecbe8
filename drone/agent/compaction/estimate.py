"""How many tokens a conversation takes: guessed from lengths, corrected by what the endpoint counts."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil

from drone.agent.protocols import Model
from drone.agent.values import ToolSpec
from shared.events import Usage
from shared.messages import Message

_CHARACTERS_PER_TOKEN = 3.5
"""Of English and code, on the careful side: an endpoint's own count corrects it after the first answer."""
_PER_MESSAGE = 6.0
_LOWEST, _HIGHEST = 0.5, 4.0
"""Bounds of the correction: some endpoints count nonsense."""


@dataclass(frozen=True)
class WindowBudget:
    """A window, in tokens, and how it is shared out (O-071, and a quarter each where it is small)."""

    window: int

    @property
    def full(self) -> int:
        """More than this in a question is too much: the rest is kept for the answer, and for wrong guesses."""
        return self.window - min(8192, self.window // 4)

    @property
    def keep(self) -> int:
        """What stays word for word at the end of the conversation."""
        return min(16384, self.window // 4)

    @property
    def summary(self) -> int:
        """What the text of a summary may take."""
        return min(4096, self.window // 10)

    @property
    def footer(self) -> int:
        """What may stand below it."""
        return min(2048, self.window // 20)


class Estimate:
    """Counts what the model is asked. Each message is measured once, so that a step costs the same in a long run."""

    def __init__(self, model: Model, tools: Callable[[], Sequence[ToolSpec]]) -> None:
        self._model = model
        self._tools = tools
        self._tools_size = 0.0
        self._sizes: dict[int, tuple[Message, float]] = {}
        """By identity; the message is kept, so that its place in memory stays its own."""
        self._added_up: tuple[int, Message | None, float] = (0, None, 0.0)
        """So many messages at the beginning, the last of them, and their size: most often more come behind them."""
        self._factor = 1.0
        self._counted = False
        self._overflowed_at = 0

    def room(self) -> WindowBudget:
        """The window as it is now: a fallback may have another, and the endpoint has the last word."""
        window = self._model.window
        return WindowBudget(min(window, self._overflowed_at or window))

    def question(self, messages: Sequence[Message]) -> int:
        """Tokens of a question: its messages and the tools."""
        return ceil(self._factor * self._question_size(messages))

    def messages(self, *messages: Message) -> int:
        """Tokens of messages alone."""
        return ceil(self._factor * sum(map(self._size, messages)))

    def text(self, text: str) -> int:
        return ceil(self._factor * _text_size(text))

    def learned(self, usage: Usage, messages: Sequence[Message]) -> None:
        """Correct the guesses by what the endpoint counted for a question."""
        if usage.input_tokens > 0:
            ratio = usage.input_tokens / self._question_size(messages)
            self._factor = min(max(ratio, _LOWEST), _HIGHEST)
            self._counted = True
        if self._overflowed_at:
            # It took this question, whatever it refused before.
            self._overflowed_at = max(self._overflowed_at, usage.input_tokens)

    def overflowed(self, messages: Sequence[Message]) -> None:
        """The endpoint refused these as too many: believe it, and not the guess or the window's stated size."""
        tokens, window = self.question(messages), self.room().window
        if tokens >= window:
            return
        if self._counted:
            self._overflowed_at = tokens
        else:
            self._factor *= window / tokens

    def forget(self) -> None:
        """A conversation was changed in its middle: add it up anew."""
        self._added_up = (0, None, 0.0)

    def _question_size(self, messages: Sequence[Message]) -> float:
        count, last, size = self._added_up
        if not (0 < count <= len(messages) and messages[count - 1] is last):
            count, size = 0, 0.0
        size += sum(map(self._size, messages[count:]))
        self._added_up = (len(messages), messages[-1] if messages else None, size)
        if len(self._sizes) > 2 * len(messages) + 64:
            self._sizes = {id(message): self._sizes[id(message)] for message in messages}
        return size + self._size_of_tools()

    def _size(self, message: Message) -> float:
        known = self._sizes.get(id(message))
        if known is None:
            known = self._sizes[id(message)] = (message, _message_size(message))
        return known[1]

    def _size_of_tools(self) -> float:
        # The same list for the whole run, once there is one.
        if not self._tools_size:
            self._tools_size = sum(
                _text_size(tool.name + tool.description + json.dumps(tool.parameters)) for tool in self._tools()
            )
        return self._tools_size


def _message_size(message: Message) -> float:
    texts = [message.content, message.thinking]
    if message.thinking_blocks:
        texts.append(json.dumps(message.thinking_blocks, default=str))
    for call in message.tool_calls:
        texts += [call.id, call.name, call.arguments]
    return _PER_MESSAGE + sum(map(_text_size, texts))


def _text_size(text: str) -> float:
    """Tokens by the length; what is not ASCII costs more a character, by the bytes that it takes."""
    beyond = 0 if text.isascii() else len(text.encode("utf-8", "surrogatepass")) - len(text)
    return len(text) / _CHARACTERS_PER_TOKEN + beyond / 2
