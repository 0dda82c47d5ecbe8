"""Makes the blocks of a chat from the steps of an order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import dropwhile, groupby
from typing import Any

from pydantic import TypeAdapter, ValidationError

from control_plane.contract.documents.orders import StepDocument
from control_plane.web.conversation import notes
from control_plane.web.conversation.blocks import (
    CallsBlock,
    Chat,
    ChatBlock,
    CheckBlock,
    NoteBlock,
    SaidBlock,
    Thought,
    UndoneBlock,
    span_of,
)
from control_plane.web.conversation.calls import OUTPUT_LINES, ShownCall
from control_plane.web.markup.markdown import markdown, plain
from control_plane.web.markup.terminal import terminal_lines
from shared.events import (
    ApprovalStep,
    AssistantStep,
    Body,
    ChildStep,
    CommentStep,
    DecisionStep,
    GuardrailStep,
    ReasoningStep,
    RetryStep,
    ToolCallStep,
    ToolResultStep,
    UserStep,
    VerifyStep,
)

MOST_CALLS = 50
"""In one block: a block is made again whenever a call of it changes."""
SUBMIT = "submit"
_ANSWERS = frozenset({"tool_result", "decision", "guardrail", "child"})
"""Steps about an earlier call: a page that begins with one leaves it to the page before."""
_AFTER_CALLS = frozenset({"assistant", "run_started"})
"""Steps after which no call before them gets a result."""


def chat_of(order: str, steps: Sequence[StepDocument], *, active: bool, known: int = 0) -> Chat:
    """The blocks of these steps. `active`: a call without a result is still running. `known`: as in `CallsBlock`."""
    begins = not steps or steps[0].seq == 1
    last = steps[-1].seq if steps else 0
    if not begins:
        steps = list(dropwhile(lambda step: step.kind in _ANSWERS, steps))
    blocks: list[ChatBlock] = []
    splits_call = False
    for undone, group in groupby(steps, key=lambda step: step.undone):
        several = list(group)
        if undone:
            span = span_of(several)
            blocks.append(UndoneBlock(order=order, first=span[0], last=span[1], count=len(several)))
        else:
            grouping = _Grouping(order, known)
            blocks += grouping.blocks_of(several)
            splits_call = splits_call or grouping.splits_call
    tail = [block for block in blocks[-1:] if isinstance(block, CallsBlock | UndoneBlock | NoteBlock | Thought)]
    unanswered = _unanswered(blocks, steps)
    for _, call in unanswered:
        call.running = active and not steps[-1].undone
    resume = min((block.first - 1 for block in (*tail, *(block for block, _ in unanswered))), default=last)
    resumed = any(step.kind == "resumed" for step in steps)
    return Chat(blocks, resume, last, begins, resumed, splits_call)


def _unanswered(blocks: Iterable[ChatBlock], steps: Iterable[StepDocument]) -> list[tuple[CallsBlock, ShownCall]]:
    """The calls that still get a result: those of the model's last answer."""
    since = max((step.seq for step in steps if step.kind in _AFTER_CALLS), default=0)
    of_calls = [block for block in blocks if isinstance(block, CallsBlock)]
    return [(block, call) for block in of_calls for call in block.calls if call.result is None and call.seq > since]


def inner_step(child: StepDocument) -> StepDocument:
    """A step of a child agent as a step of its own."""
    inner = child.model_dump().get("step")
    own = {"seq": child.seq, "run": child.run, "at": child.at, "undone": False}
    return StepDocument(**{**(inner if isinstance(inner, dict) else {}), "kind": _kind(inner), **own})


def _kind(inner: object) -> str:
    kind = inner.get("kind") if isinstance(inner, dict) else None
    return kind if isinstance(kind, str) and kind != "child" else "step"


def body_of(document: Mapping[str, Any]) -> Body | None:
    """The body in a step; None if its kind is from a newer version, or if it is damaged."""
    try:
        found: Body = _adapter().validate_python({**document})
    except ValidationError:
        return None
    return found


@cache
def _adapter() -> TypeAdapter[Any]:
    return TypeAdapter(Body)


class _Grouping:
    """Takes step after step; what belongs to a call is kept with it, wherever it comes."""

    def __init__(self, order: str, known: int) -> None:
        self._order = order
        self._known = known
        self._blocks: list[ChatBlock] = []
        self._calls: dict[str, ShownCall] = {}
        self._thought: Thought | None = None
        self._submitted: set[str] = set()
        self.splits_call = False
        """As in `Chat`."""

    def blocks_of(self, steps: Iterable[StepDocument]) -> list[ChatBlock]:
        for step in steps:
            document = step.model_dump()
            body = body_of(document)
            if body is None:
                self._add(
                    NoteBlock(text=f"{step.kind.replace('_', ' ')[:40]} (from a newer version)", **self._place(step))
                )
            else:
                self._take(step, body, document)
        self._flush_thought()
        for block in self._blocks:
            if isinstance(block, CallsBlock):
                block.last = max(call.last for call in block.calls)
        return self._blocks

    def _take(self, step: StepDocument, body: Body, document: Mapping[str, Any]) -> None:
        take = _TAKES.get(type(body))
        if take is not None:
            take(self, step, body)
        elif note := notes.note_of(body, document):
            self._add(NoteBlock(**note, **self._place(step)))

    def _place(self, step: StepDocument) -> dict[str, Any]:
        return {"order": self._order, "first": step.seq, "last": step.seq, "at": step.at}

    def _add(self, block: ChatBlock) -> None:
        self._flush_thought()
        self._blocks.append(block)

    def _flush_thought(self) -> None:
        if self._thought is not None:
            self._blocks.append(self._thought)
            self._thought = None

    # --- what is said ----------------------------------------------------------------------

    def _reasoning(self, step: StepDocument, body: ReasoningStep) -> None:
        self._flush_thought()
        if body.text.strip():
            self._thought = Thought(text=body.text, duration_ms=body.duration_ms, **self._place(step))

    def _assistant(self, step: StepDocument, body: AssistantStep) -> None:
        if body.text.strip():
            self._add(SaidBlock(html=markdown(body.text), **self._place(step)))
        elif not body.tool_calls:
            self._add(NoteBlock(text="The model gave an empty answer", **self._place(step)))

    def _user(self, step: StepDocument, body: UserStep) -> None:
        if body.source == "loop":
            first, _, rest = body.text.strip().partition("\n")
            text = first if len(first) <= 160 and not rest else "Note to the agent"
            self._add(NoteBlock(text=text, detail=body.text if text != first else "", **self._place(step)))
        elif body.source != "prompt":
            self._add(SaidBlock(html=plain(body.text), by="user", **self._place(step)))

    def _comment(self, step: StepDocument, body: CommentStep) -> None:
        about = "Comment on the task" if body.to_task else "Comment"
        self._add(SaidBlock(html=markdown(body.text), about=about, **self._place(step)))

    # --- calls -----------------------------------------------------------------------------

    def _call(self, step: StepDocument, body: ToolCallStep) -> None:
        if body.tool == SUBMIT and isinstance(body.arguments, dict) and isinstance(body.arguments.get("summary"), str):
            self._submitted.add(body.call_id)
            self._add(SaidBlock(html=markdown(body.arguments["summary"]), **self._place(step)))
            return
        self._calls[body.call_id] = call = ShownCall.of(step.seq, body)
        self._put(step, call)

    def _put(self, step: StepDocument, call: ShownCall) -> None:
        block = self._blocks[-1] if self._blocks else None
        if not isinstance(block, CallsBlock) or len(block.calls) >= MOST_CALLS:
            first = self._thought.first if self._thought else step.seq
            block = CallsBlock(**{**self._place(step), "first": first, "known": self._known})
            self._blocks.append(block)
        if self._thought is not None:
            block.thoughts.append(self._thought)
            self._thought = None
        block.calls.append(call)
        call.last = step.seq

    def _result(self, step: StepDocument, body: ToolResultStep) -> None:
        if body.call_id in self._submitted:
            return
        call = self._calls.get(body.call_id)
        if call is None:
            call = ShownCall(seq=step.seq, tool="call")
            self._put(step, call)
            self.splits_call = True
        call.result, call.result_seq, call.last = body, step.seq, step.seq

    def _of_call(self, step: StepDocument, body: ApprovalStep | DecisionStep | GuardrailStep | ChildStep) -> None:
        call = self._calls.get(body.call_id)
        if call is None:
            note = notes.note_of(body, {})
            if note:
                self._add(NoteBlock(**note, **self._place(step)))
            # Others may be about something that is no call: a plan, a limit, the delivery.
            self.splits_call = self.splits_call or isinstance(body, ChildStep)
            return
        call.last = step.seq
        match body:
            case ApprovalStep():
                call.asked = body.why
            case DecisionStep():
                call.decision = body
            case GuardrailStep():
                call.warnings.append(body)
            case ChildStep():
                call.children.append((step.seq, body))

    # --- checks and retries ----------------------------------------------------------------

    def _verify(self, step: StepDocument, body: VerifyStep) -> None:
        lines = terminal_lines(body.output, OUTPUT_LINES) if body.output.strip() else []
        hidden = body.output.rstrip("\n").count("\n") >= OUTPUT_LINES
        self._add(CheckBlock(step=body, lines=lines, hidden=hidden, **self._place(step)))

    def _retry(self, step: StepDocument, body: RetryStep) -> None:
        before = self._blocks[-1] if self._blocks and self._thought is None else None
        note = notes.note_of(body, {}) or {}
        if isinstance(before, NoteBlock) and before.count and before.text.startswith(notes.RETRY):
            before.count, before.last = before.count + 1, step.seq
            before.text, before.detail = f"{note['text']} ({before.count} times)", note["detail"]
        else:
            self._add(NoteBlock(**note, **self._place(step)))


Take = Callable[[_Grouping, StepDocument, Any], None]
_TAKES: Mapping[type[Any], Take] = {
    ReasoningStep: _Grouping._reasoning,
    AssistantStep: _Grouping._assistant,
    UserStep: _Grouping._user,
    CommentStep: _Grouping._comment,
    ToolCallStep: _Grouping._call,
    ToolResultStep: _Grouping._result,
    ApprovalStep: _Grouping._of_call,
    DecisionStep: _Grouping._of_call,
    GuardrailStep: _Grouping._of_call,
    ChildStep: _Grouping._of_call,
    VerifyStep: _Grouping._verify,
    RetryStep: _Grouping._retry,
}
