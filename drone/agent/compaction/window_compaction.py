"""Keeping a conversation within the window: a summary replaces its older part, so that the rest fits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from drone.agent.budget import RunBudget
from drone.agent.compaction.cut import Cause, Cut, cut
from drone.agent.compaction.estimate import Estimate
from drone.agent.compaction.footer import Footer, footer_of, parted, without_tags
from drone.agent.compaction.summary import Summarizer
from drone.agent.hooks.events import BeforeCompaction, CancelCompaction
from drone.agent.protocols import Hooks, Model, Recorder
from drone.agent.transcript import Transcript
from drone.agent.values import ToolSpec
from shared.events import CompactionStep, Usage
from shared.messages import Message
from shared.transcripts import summary_in, summary_message

_CHARACTERS_PER_TOKEN = 3
"""For the footer, which is mostly names."""


@dataclass
class WindowCompaction:
    """Keeps a conversation within the model's window (O-070 to O-073), also inside a long turn.

    The window is `model.window`, read each time, or less if the endpoint refused fewer tokens. Calls for the summary
    are charged to the budget but do not count as iterations.
    """

    model: Model
    recorder: Recorder
    hooks: Hooks
    budget: RunBudget
    tools: Callable[[], Sequence[ToolSpec]]
    """The tools included in every question."""
    request: str
    """What the user asked for in this turn, in their own words: every summary is written for it."""

    def __post_init__(self) -> None:
        self._estimate = Estimate(self.model, self.tools, self.budget.limits)
        self._summarizer = Summarizer(self.model, self.recorder, self.budget, self._estimate)
        self._not_before = 0

    def learned(self, usage: Usage, messages: Sequence[Message]) -> None:
        """Correct the estimates by the endpoint's token counts."""
        self._estimate.learned(usage, messages)

    def due(self, messages: Sequence[Message]) -> bool:
        """Whether the question exceeds the window minus the reserve, and compaction is on and would help."""
        if not self.budget.limits.compaction_enabled:
            return False
        tokens = self._estimate.question(messages)
        full = max(self._estimate.room().full, self._not_before)
        return tokens > full and cut(messages, self._estimate, "window") is not None

    def compact(self, transcript: Transcript, cause: Cause, instructions: str = "") -> bool:
        """Replace the older part with a summary, which is recorded first; shorten results that cannot fit.

        False: there was nothing to compact, a hook cancelled the compaction, or it is off and nobody asked for it.
        Raises ModelCallFailed if no summary could be written: the transcript is then unchanged.
        """
        if cause != "asked" and not self.budget.limits.compaction_enabled:
            return False
        if cause == "overflow":
            self._estimate.overflowed(transcript)
        parts = cut(transcript, self._estimate, cause)
        if parts is None:
            return False
        # A compaction that fails or is cancelled is retried when the conversation has grown, not at every step.
        self._not_before = self._estimate.question(transcript) + self._estimate.room().window // 16
        if parts.older and not self._summarized(transcript, parts, cause, instructions):
            return False
        transcript.replace_last(*parts.tail)
        self._estimate.forget()
        self._not_before = 0
        return True

    def _summarized(self, transcript: Transcript, parts: Cut, cause: Cause, instructions: str) -> bool:
        before = self._estimate.question(transcript)
        ready = self.hooks.before_compaction(BeforeCompaction(cause, before, parts.older))
        if isinstance(ready, CancelCompaction):
            return False
        summary, footer = self._summary(parts, ready, instructions)
        after = self._estimate.question([transcript[0], summary_message(summary), *parts.tail])
        self.recorder.record(
            CompactionStep(
                summary=summary,
                tokens_before=before,
                tokens_after=after,
                kept=len(parts.tail),
                cause=cause,
                files_read=footer.read,
                files_changed=footer.changed,
            )
        )
        transcript.compact(summary, len(parts.tail))
        return True

    def _summary(self, parts: Cut, ready: str | None, instructions: str) -> tuple[str, Footer]:
        """Return the summary with its footer; the model writes it unless a hook has provided one."""
        earlier = summary_in(parts.older[0])
        text, before = parted(earlier or "")
        fresh = parts.older if earlier is None else parts.older[1:]
        footer = footer_of(fresh, parts.tail, before, self.request)
        if ready and ready.strip():
            text = self._summarizer.cut(ready.strip())
        else:
            # The tail, which stays, may hold the request or the list: the model that summarizes must see both.
            facts = footer_of([*fresh, *parts.tail], (), before, self.request)
            text = self._summarizer.write(fresh, text, facts, instructions)
        below = footer.text(_CHARACTERS_PER_TOKEN * self._estimate.room().footer)
        return "\n\n".join(filter(None, (without_tags(text), below))), footer
