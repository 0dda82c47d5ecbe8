"""An upper bound on the tokens of a question: what the provider counted last, and a token for each byte since."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from drone.agent.values import ToolSpec
from shared.messages import Message

PER_MESSAGE = 16
"""Tokens that a provider adds around a message."""
PER_QUESTION = 2048
"""Tokens that a provider adds to a question: how it describes its tools, and its own instructions."""
BYTES_PER_TOKEN = 3
"""For an estimate instead of a bound: tokens of text and code are rarely shorter."""
_CONVERSATIONS = 4
"""Conversations that are remembered: the run's, and those of its children and summaries in between."""


@dataclass(frozen=True)
class Size:
    """Tokens of a question."""

    bound: int
    """Never less than what the provider counts: every token of text stands for a byte or more."""
    estimate: int


@dataclass(frozen=True)
class _Counted:
    messages: tuple[Message, ...]
    tokens: int


class PromptBound:
    """Knows how many tokens earlier questions had."""

    def __init__(self) -> None:
        self._counted: list[_Counted] = []

    def size(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Size:
        """The size of a question. A longer conversation is bounded by its counted part and the rest's bytes.

        One that has only its beginning in common with an earlier question, as after a compaction, is no larger than its
        own bytes either: the earlier count includes what is gone.
        """
        known, counted = self._known(messages)
        since = _size(messages[known:], counted.tokens)
        if known and known == len(counted.messages):
            return since
        whole = _size(messages, PER_QUESTION, _bytes_of_tools(tools))
        if not known:
            return whole
        return Size(min(since.bound, whole.bound), min(since.estimate, whole.estimate))

    def learned(self, messages: Sequence[Message], tokens: int) -> None:
        """The provider counted this many tokens in this question."""
        if tokens > 0:
            self._counted = [_Counted(tuple(messages), tokens), *self._counted][:_CONVERSATIONS]

    def _known(self, messages: Sequence[Message]) -> tuple[int, _Counted]:
        """How many messages from the first on were counted before, and the question in which they were."""
        best = (0, _Counted((), 0))
        for counted in self._counted:
            same = _common(counted.messages, messages)
            if same > best[0]:
                best = (same, counted)
            if same == len(counted.messages):
                break  # all of it: an earlier question of the same conversation knows less
        return best


def _size(messages: Sequence[Message], tokens: int, others: int = 0) -> Size:
    """The size of the messages and of so many `others` bytes, with these tokens beside them."""
    text = others + sum(_bytes(message) for message in messages)
    tokens += PER_MESSAGE * len(messages)
    return Size(tokens + text, tokens + text // BYTES_PER_TOKEN)


def _common(before: Sequence[Message], now: Sequence[Message]) -> int:
    """How many messages both begin with. They are the same objects: a transcript only grows."""
    same = 0
    for one, other in zip(before, now, strict=False):
        if one is not other:
            break
        same += 1
    return same


def _bytes(message: Message) -> int:
    return len(message.model_dump_json(exclude_defaults=True).encode())


def _bytes_of_tools(tools: Sequence[ToolSpec]) -> int:
    return sum(len(json.dumps([tool.name, tool.description, tool.parameters]).encode()) for tool in tools)
