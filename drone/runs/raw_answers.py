"""Keeps the provider's raw answers of a run as files that are sent like logs, without secrets (M-007)."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from drone.agent.recorded_transcript import StoreLog
from drone.agent.values import RawAnswer
from shared.messages import Message
from shared.names import new_id
from shared.redaction import known

log = logging.getLogger(__name__)

HOLDS_SECRET = "not kept: the answer contains a secret"  # noqa: S105 - the reason shown to users


@dataclass(frozen=True)
class RawAnswers:
    """Implements `drone.agent.recorded_transcript.StoreRaw` for one run."""

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
