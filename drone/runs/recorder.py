"""Writes the events of a run to its journal, without secrets and within bounds, and sends live text."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from drone.agent.recorded_transcript import StoreLog
from drone.agent.values import DeltaKind, RawAnswer, WaitsFor
from drone.reporting.event_size import fit
from drone.reporting.journal import Journal
from drone.runs.pipe import Link
from shared.events import (
    ApprovalStep,
    AssistantStep,
    Body,
    CheckpointStep,
    CommentStep,
    ErrorStep,
    ReasoningStep,
    RetryStep,
    UserStep,
)
from shared.messages import Message
from shared.names import new_id
from shared.redaction import Redactor, StreamRedactor, known

SHOWN_OF_DOING = 160
"""Characters; the rest of a long command adds no information."""
_BODY: TypeAdapter[Body] = TypeAdapter(Body)
_ENDS_MESSAGE = (AssistantStep, RetryStep, ErrorStep, UserStep, ApprovalStep)
"""Events after which the model's live text is that of another message."""
_BESIDE = (CheckpointStep, CommentStep)
"""Events that may be recorded while the model writes: its text is not complete, and half a secret stays held back."""
log = logging.getLogger(__name__)
HOLDS_SECRET = "not kept: the answer contains a secret"  # noqa: S105 - the reason shown to users


class JournalRecorder:
    """Implements `drone.agent.protocols.Recorder`. Every event of a run passes through here."""

    def __init__(self, journal: Journal, link: Link, redactor: Redactor) -> None:
        self._journal = journal
        self._link = link
        self._redactor = redactor
        self._streams: dict[DeltaKind, StreamRedactor] = {}
        self._sent = 0
        """Characters of the current message's text and thinking that were sent live."""
        self._lock = threading.Lock()

    def record(self, body: Body) -> int:
        """Write one event, redacted and cut to the size limit; it is on disk when this returns."""
        with self._lock:
            if not isinstance(body, _BESIDE):
                self._end_streams()
            seq = self._journal.append(self._presentable(body)).seq
            if isinstance(body, _ENDS_MESSAGE):
                self._sent = 0
        self._link.recorded()
        return seq

    def delta(self, kind: DeltaKind, text: str) -> None:
        """Send live text; the end of a piece is held back while it may be the beginning of a secret."""
        with self._lock:
            if kind not in self._streams:
                # Thinking ends where text begins: the held-back end of the one is sent before the other.
                self._end_streams()
            stream = self._streams.setdefault(kind, self._redactor.stream(of_json=kind == "tool_call"))
            if shown := stream.feed(text):
                self._send(kind, shown)
            else:
                self._link.progress()

    def doing(self, text: str, waits_for: WaitsFor = "") -> None:
        """Report in one line what the run is doing, and what it is waiting for."""
        # Redacted before it is cut: half a secret would not be recognized.
        line = " ".join(self._redactor.text(text).split())
        self._link.doing(line if len(line) <= SHOWN_OF_DOING else f"{line[: SHOWN_OF_DOING - 1]}…", waits_for)

    def _presentable(self, body: Body) -> Body:
        document = body.model_dump(mode="json")
        redacted = self._redactor.value(document)
        shown = fit(body if redacted == document else _BODY.validate_python(redacted))
        if isinstance(body, ReasoningStep) and isinstance(shown, ReasoningStep) and shown.blocks != body.blocks:
            # Signed thinking is sent back unchanged or not at all: its provider rejects anything else.
            return shown.model_copy(update={"blocks": ()})
        return shown

    def _end_streams(self) -> None:
        # Live text is complete when the event that contains all of it is recorded.
        for kind, stream in self._streams.items():
            if rest := stream.flush():
                self._send(kind, rest)
        self._streams.clear()

    def _send(self, kind: DeltaKind, text: str) -> None:
        offset = None
        if kind in {"text", "thinking"}:
            offset, self._sent = self._sent, self._sent + len(text)
        self._link.delta(kind, text, self._journal.last_seq, offset)


@dataclass(frozen=True)
class RawAnswers:
    """Keeps the provider's raw answers of a run as files that are sent like logs, without secrets (M-007).

    Implements `drone.agent.recorded_transcript.StoreRaw`.
    """

    directory: Path
    store_log: StoreLog | None
    """None: the files stay in the directory."""

    def __call__(self, answer: RawAnswer, message: Message) -> tuple[str | None, str]:
        if not answer.text:
            return None, "not kept: there is no raw answer"
        # A stream divides a secret among its pieces, where it cannot be masked: then nothing is kept.
        said = message.model_dump(mode="json")
        if known().value(said) != said:
            return None, HOLDS_SECRET
        path = self.directory / f"answer-{new_id()}.jsonl"
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            path.write_text(known().text(answer.text), encoding="utf-8", errors="replace")
            return (self.store_log(path) if self.store_log is not None else None), answer.note
        except OSError as error:
            # It helps to find out why an answer is unusable; it is not worth the run.
            log.warning("a raw answer was not kept: %s", error)
            return None, f"not kept: {error.strerror or error}"
