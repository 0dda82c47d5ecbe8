"""Writing the end of a run that cannot write it: its process crashed, was killed, or belonged to an older boot."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

from drone.agent.answer_checks import parsed_arguments
from drone.processes.tree import this_machine_boot
from drone.reporting import journal
from drone.reporting.event_size import fit
from drone.reporting.journal import RunIdentity
from drone.runs.directory import CANNOT_LOCK, RunDirectory
from drone.runs.kept_spending import kept_spending
from shared.clock import Clock
from shared.events import (
    AssistantStep,
    Body,
    ErrorStep,
    Event,
    Execution,
    RunEnded,
    RunStarted,
    ToolCallStep,
    ToolResultStep,
)
from shared.messages import ToolCall
from shared.transcripts import BROKEN_OFF, not_run

WHY = "the process of the run ended before the call."


def end_on_behalf(
    directory: RunDirectory,
    identity: RunIdentity,
    clock: Clock,
    started: RunStarted,
    last: Sequence[ErrorStep | RunEnded],
) -> list[Event]:
    """Append the missing events of a run whose process is gone to its journal, then `last`; return what was appended.

    `started`, its first event, may be missing, and the answers to its last calls: without those, no run could continue
    from its transcript. Call this again after an error: it completes what it had begun.

    Raises OSError if the journal cannot be written, or is still held by the run's process.
    """
    lock = directory.lock()
    if lock is None:
        raise BlockingIOError(f"{CANNOT_LOCK}: {directory.path}")
    last = [_with_spending(body, directory) for body in last]
    try:
        recorded = [line.event.body for line in journal.walk(directory.journal)]
        missing = [
            *([] if recorded else [started]),
            *_answers(recorded),
            *(body for body in last if body not in recorded),
        ]
        with journal.opened(directory.journal, identity, clock) as writer:
            return [writer.append(fit(body)) for body in missing]
    finally:
        os.close(lock)


def _with_spending(body: ErrorStep | RunEnded, directory: RunDirectory) -> ErrorStep | RunEnded:
    """The end of the run with what its calls may have cost, also the one that was in flight when it died."""
    if not isinstance(body, RunEnded):
        return body
    meta = directory.meta()
    rebooted = meta is not None and bool(meta.machine_boot) and meta.machine_boot != this_machine_boot()
    spent = kept_spending(directory.spending, rebooted=rebooted)
    cost = max(body.stats.cost_usd or 0.0, spent)
    return body.model_copy(update={"stats": body.stats.model_copy(update={"cost_usd": cost})})


def _answers(recorded: Iterable[Body]) -> Iterator[ToolCallStep | ToolResultStep]:
    """Answer each call that has no result. A call that had begun may have had effects: it does not count as not run."""
    unanswered: dict[str, ToolCall] = {}
    begun: set[str] = set()
    for body in recorded:
        match body:
            case AssistantStep():
                unanswered, begun = {call.id: call for call in body.tool_calls}, set()
            case ToolCallStep():
                begun.add(body.call_id)
            case ToolResultStep():
                unanswered.pop(body.call_id, None)
    for call in unanswered.values():
        if call.id not in begun:
            yield ToolCallStep(call_id=call.id, tool=call.name, arguments=parsed_arguments(call))
        text = f"{BROKEN_OFF}: {WHY}" if call.id in begun else not_run(call, WHY).content
        execution: Execution = "broken_off" if call.id in begun else "held_back"
        yield ToolResultStep(call_id=call.id, output=text, is_error=True, execution=execution, note=text)
