"""What the model asks before each call: whether the limits that all runs share allow the tokens that it may need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from shared.events import Usage
from shared.messages import Message
from shared.rates import MOST, Tokens

_PER_TOKEN = 3.5
"""Characters, until the endpoint has counted."""
_USUAL_OUTPUT = 4096
_MANY_TIMES = 4
"""An answer is expected to be at most so many times as long as the longest one so far."""


class Permit(Protocol):
    """One call that may be made. Exactly one of the methods is called when it has ended."""

    def answered(self, headers: Mapping[str, Any], used: Tokens) -> None:
        """The endpoint answered."""
        ...

    def refused(self, headers: Mapping[str, Any], retry_after: float | None) -> bool:
        """The endpoint refused the call because of a rate limit (429).

        Returns whether the next permit is given when it is time to retry: then the caller needs no pause of its own.
        """
        ...

    def failed(self) -> None:
        """The call failed otherwise, or was abandoned."""
        ...

    def unused(self) -> None:
        """The call was not made."""
        ...


class Permits(Protocol):
    """Decides when a call may be made."""

    def take(self, provider: str, expected: Tokens) -> Permit:
        """Return when the call may be made. Raises what the run's controls raise while it waits."""
        ...


class Unrestricted:
    """Permits and permit of a run that shares limits with no other: calls are made at once."""

    def take(self, provider: str, expected: Tokens) -> Unrestricted:  # noqa: ARG002
        return self

    def answered(self, headers: Mapping[str, Any], used: Tokens) -> None: ...

    def refused(self, headers: Mapping[str, Any], retry_after: float | None) -> bool:  # noqa: ARG002
        return False

    def failed(self) -> None: ...

    def unused(self) -> None: ...


class ExpectedTokens:
    """What the next call may need, estimated from the conversation's length; it learns from each answer of a run."""

    def __init__(self) -> None:
        self._per_token = _PER_TOKEN
        self._cached = 0
        self._longest = 0
        self._measured: tuple[int, Message | None, int] = (0, None, 0)
        """How many messages were measured last, the last of them, and their characters: a transcript only grows."""

    def of(self, messages: Sequence[Message], params: Mapping[str, Any]) -> Tokens:
        """The tokens of the next call. The output counts with what is likely: the maximum of most models is so large
        that few calls would fit into a minute.
        """
        asked = self._size(messages) / self._per_token
        most = params.get("max_tokens") or params.get("max_completion_tokens")
        likely = max(_USUAL_OUTPUT, _MANY_TIMES * self._longest)
        output = min(likely, MOST)
        if isinstance(most, int) and most > 0:
            output = min(most, output)
        return Tokens(input_tokens=round(asked), cached_tokens=min(self._cached, round(asked)), output_tokens=output)

    def learned(self, messages: Sequence[Message], usage: Usage) -> None:
        """Correct the estimate by what a call used."""
        if usage.input_tokens > 0:
            self._per_token = min(max(self._size(messages) / usage.input_tokens, 0.5), 8.0)
        # The endpoint caches the beginning of a conversation, which the next question repeats.
        self._cached = usage.input_tokens if usage.cached_tokens else 0
        self._longest = max(self._longest, usage.output_tokens)

    def _size(self, messages: Sequence[Message]) -> int:
        known, last, size = self._measured
        if not known or len(messages) < known or messages[known - 1] is not last:
            known, size = 0, 1
        size += sum(map(_characters, messages[known:]))
        self._measured = (len(messages), messages[-1] if messages else None, size)
        return size


def _characters(message: Message) -> int:
    return len(message.content) + sum(len(call.arguments) for call in message.tool_calls)


def tokens_of(usage: Usage) -> Tokens:
    """What a call used."""
    return Tokens(input_tokens=usage.input_tokens, cached_tokens=usage.cached_tokens, output_tokens=usage.output_tokens)
