"""The parts of a chat. Each knows the steps that it shows, so that a page can ask for what follows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar, Literal

from markupsafe import Markup

from control_plane.contract.documents.orders import StepDocument
from control_plane.web.conversation.calls import ShownCall, sentence_of
from shared.events import VerifyStep

Tone = Literal["", "good", "wait", "bad"]


@dataclass(kw_only=True)
class ChatBlock:
    """One part; `order` and `first` name it for ever."""

    kind: ClassVar[str] = ""
    order: str
    first: int
    """The number of its first step; 0 for the beginning of a turn."""
    last: int
    at: datetime | None = None

    @property
    def id(self) -> str:
        return f"b-{self.order}-{self.first}"

    @property
    def weight(self) -> int:
        """About how many elements of a page it is."""
        return 8


@dataclass(kw_only=True)
class Opening(ChatBlock):
    """The beginning of a turn: who asked for what."""

    kind = "opening"
    user: str
    html: Markup
    label: str = ""
    entry: str = ""
    """Empty while the turn has no place in the session's tree."""

    @property
    def weight(self) -> int:
        return 24 + elements(self.html)


@dataclass(kw_only=True)
class Closing(ChatBlock):
    """The end of an earlier turn in one line."""

    kind = "closing"
    status: str
    text: str
    branch: str | None = None


@dataclass(kw_only=True)
class SaidBlock(ChatBlock):
    """Text of the agent, or of a user while it worked."""

    kind = "said"
    html: Markup
    by: Literal["agent", "user"] = "agent"
    about: str = ""

    @property
    def weight(self) -> int:
        return 4 + elements(self.html)


@dataclass(kw_only=True)
class Thought(ChatBlock):
    """The model's thinking, folded."""

    kind = "thought"
    text: str
    duration_ms: int = 0


@dataclass(kw_only=True)
class CallsBlock(ChatBlock):
    """Consecutive calls, as one line that says what they did; those that failed or still run are open below it."""

    kind = "calls"
    calls: list[ShownCall] = field(default_factory=list)
    thoughts: list[Thought] = field(default_factory=list)
    known: int = 0
    """The last step that the reader's page has: what later steps did not change is not sent again."""

    @property
    def folded(self) -> bool:
        return len(self.calls) != 1 or bool(self.thoughts)

    @property
    def sentence(self) -> str:
        return sentence_of(self.calls, len(self.thoughts))

    @property
    def open_calls(self) -> list[ShownCall]:
        """The calls that are shown below the line."""
        return [call for call in self.calls if call.state in {"failed", "running"}]

    @property
    def partial(self) -> bool:
        """Whether the page has this line already, so that it keeps what is not sent again."""
        calls = sum(call.seq <= self.known for call in self.calls)
        return calls > 1 or (calls == 1 and any(thought.first <= self.known for thought in self.thoughts))

    @property
    def changed(self) -> list[ShownCall | Thought]:
        """What a page with the steps up to `known` needs, in order; a call without a result changes without a step."""
        every: list[ShownCall | Thought] = [*self.thoughts, *self.calls]
        changed = [each for each in every if not self.partial or each.last > self.known or _is_open(each)]
        return sorted(changed, key=lambda each: each.first if isinstance(each, Thought) else each.seq)

    @property
    def duration_ms(self) -> int:
        return sum(call.result.duration_ms for call in self.calls if call.result)

    @property
    def weight(self) -> int:
        shown = self.open_calls if self.folded else self.calls
        return 12 + sum(16 + 2 * len(call.rest) + sum(map(elements, call.lines)) for call in shown)


@dataclass(kw_only=True)
class CheckBlock(ChatBlock):
    """One of the project's own commands."""

    kind = "check"
    step: VerifyStep
    lines: Sequence[Markup] = ()
    hidden: bool = False

    @property
    def weight(self) -> int:
        return 10 + sum(map(elements, self.lines))


@dataclass(kw_only=True)
class NoteBlock(ChatBlock):
    """Something that happened to the run: a retry, a compaction, a resumption, an error."""

    kind = "note"
    text: str
    tone: Tone = ""
    detail: str = ""
    link: str = ""
    count: int = 1


@dataclass(kw_only=True)
class UndoneBlock(ChatBlock):
    """Steps that a later run undid, folded."""

    kind = "undone"
    count: int


@dataclass(frozen=True)
class Chat:
    """Blocks in order, and from where they must be made again once more steps are there."""

    blocks: list[ChatBlock]
    resume: int
    """The last step before the first block that later steps can change."""
    last: int
    """The last step, also of those that the page before shows."""
    begins: bool = True
    """Whether they begin with the order's first step."""
    resumed: bool = False
    """A run resumed from an earlier step: what was shown before may be undone now."""
    splits_call: bool = False
    """A block shows a step of a call that is before these steps."""


def _is_open(part: ShownCall | Thought) -> bool:
    return isinstance(part, ShownCall) and part.result is None


def elements(html: Markup) -> int:
    """About how many elements this is."""
    return html.count("<") - html.count("</")


def span_of(steps: Sequence[StepDocument]) -> tuple[int, int]:
    """The numbers of the first and the last step."""
    return steps[0].seq, steps[-1].seq
