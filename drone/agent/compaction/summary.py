"""The summary of a conversation, written by the model; if it is long, in several calls that extend one summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from drone.agent.budget import RunBudget
from drone.agent.compaction.cut import head_and_tail, within
from drone.agent.compaction.estimate import Estimate
from drone.agent.compaction.footer import Footer
from drone.agent.protocols import Model, Recorder
from drone.agent.values import DeltaKind, ModelCallFailed
from shared.messages import Message

_LONGEST = (2_000, 1_000, 500)
"""Characters of a result that the summary is based on: the first value with which one call is enough, else the last.
Arguments and thoughts get half of that."""
_LONGEST_INSTRUCTIONS = 2_000
_LEAST_PART = 250
"""Tokens; smaller parts are not tried, even if an endpoint refuses this size."""
_OVERFLOW = "context_overflow"
_NAMES = {"user": "person", "assistant": "agent", "system": "system"}


@dataclass(frozen=True)
class Summarizer:
    """Asks the model for summaries, on the run's budget."""

    model: Model
    recorder: Recorder
    budget: RunBudget
    estimate: Estimate

    def write(self, messages: Sequence[Message], earlier: str, facts: Footer, instructions: str) -> str:
        """Return a summary of `earlier`, an earlier summary, and of the messages that came after it.

        Each request shows the user's request and the open to-do list, from `facts`: wherever the conversation is cut,
        the model knows what its summary is for.

        Raises ModelCallFailed if no summary could be written, LimitsExceeded when the budget is used up meanwhile.
        """
        # Half the window leaves room for the summary so far, for the new one, and for an estimate that is far too low.
        purpose = self._purpose(facts)
        limit = max(self.estimate.room().window // 2 - self.estimate.text(purpose), _LEAST_PART)
        summary, text = earlier, self._text(messages, limit)
        while text:
            part = self._first(text, limit)
            try:
                summary = self._asked(part, summary, purpose, instructions)
            except ModelCallFailed as failed:
                if failed.error_class != _OVERFLOW or limit // 2 < _LEAST_PART:
                    raise
                limit //= 2
            else:
                text = text[len(part) :].lstrip("\n")
        return summary

    def cut(self, summary: str) -> str:
        """The summary, truncated to its maximum size."""
        most = self.estimate.room().summary
        shown = len(summary)
        while self.estimate.text(summary[:shown]) > most:
            shown = min(shown - 1, int(shown * most / self.estimate.text(summary[:shown])))
        return summary if shown == len(summary) else f"{summary[:shown].rstrip()} […]"

    def _purpose(self, facts: Footer) -> str:
        """The user's request and the open to-do list, in at most 3/16 of the window."""
        most = self.estimate.room().window // 8
        request = within(facts.request, self.estimate, most)
        todo = within("\n".join(facts.todo), self.estimate, most // 2)
        return _render("compaction_purpose.jinja", request=request, todo=todo).strip()

    def _text(self, messages: Sequence[Message], limit: int) -> str:
        text = ""
        for longest in _LONGEST:
            text = "\n\n".join(_rendered(messages, longest))
            if self.estimate.text(text) <= limit:
                break
        return text

    def _first(self, text: str, limit: int) -> str:
        """The beginning of the text, at most `limit` tokens, up to the end of a message if one is near."""
        part = text
        while (tokens := self.estimate.text(part)) > limit:
            part = part[: max(1, int(len(part) * limit / tokens * 0.98))]
        end = part.rfind("\n\n[", len(part) // 2)
        return part if end < 0 or part == text else part[:end]

    def _asked(self, conversation: str, summary: str, purpose: str, instructions: str) -> str:
        self.budget.check()
        words = self.estimate.room().summary // 2
        question = (
            Message(role="system", content=_render("compaction_system.jinja")),
            Message(
                role="user",
                content=_render(
                    "compaction_user.jinja",
                    purpose=purpose,
                    conversation=conversation,
                    summary=summary,
                    words=words,
                    instructions=head_and_tail(instructions.strip(), _LONGEST_INSTRUCTIONS),
                ),
            ),
        )
        answer = self.model.answer(question, (), self._on_delta)
        self.budget.charge_apart(answer.usage)
        text = answer.message.content.strip()
        if not text:
            raise ModelCallFailed("The model wrote no summary of the conversation.", error_class="format")
        return self.cut(text)

    def _on_delta(self, _kind: DeltaKind, _text: str) -> None:
        """Abort the stream when the budget is used up; the text of a summary is only a sign of progress."""
        self.budget.check()
        self.recorder.delta("output", "")


def _rendered(messages: Sequence[Message], longest: int) -> Iterator[str]:
    """The messages as text, each labeled with its author; long results are shortened."""
    names = {call.id: call.name for message in messages for call in message.tool_calls}
    for message in messages:
        if message.role == "tool":
            result = head_and_tail(message.content, longest)
            yield f"[result of {names.get(message.tool_call_id or '', 'a call')}]\n{result}"
            continue
        if message.thinking:
            yield f"[agent thinks]\n{head_and_tail(message.thinking, longest // 2)}"
        if message.content:
            yield f"[{_NAMES[message.role]}]\n{message.content}"
        for call in message.tool_calls:
            yield f"[agent calls {call.name}]\n{head_and_tail(call.arguments, longest // 2)}"


def _render(template: str, **values: object) -> str:
    return _environment().get_template(template).render(**values).strip() + "\n"


@cache
def _environment() -> Environment:
    # Nothing is escaped: the reader is a model, not a browser.
    return Environment(
        loader=PackageLoader("drone.agent"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # noqa: S701
    )
