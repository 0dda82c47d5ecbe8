"""The environment of a run without a fleet: one person with a keyboard, and blobs kept in memory."""

from __future__ import annotations

from drone.agent.values import Ruling, UserMessage
from drone.runs.stop_requests import Wish
from shared.blobs import digest
from shared.errors import NotFound, Preempted
from shared.outcome import ExitStatus, Outcome


class LocalControls:
    """Implements `drone.runs.context.RunWishes` for one person with a keyboard: Ctrl-C ends the run but keeps its
    work.
    """

    def __init__(self) -> None:
        self._wish: Wish | None = None

    def interrupt(self) -> None:
        """Ask the run to end. Takes no lock, because it is called from a signal handler."""
        self._wish = Wish("cancel", "interrupted with Ctrl-C")

    @property
    def wish(self) -> Wish | None:
        return self._wish

    def check(self) -> None:
        """Return if the run may continue. Raises Preempted."""
        wish = self._wish
        if wish is not None:
            raise Preempted(outcome=Outcome(ExitStatus.CANCELED, wish.reason))

    check_end = check

    def steering(self) -> list[UserMessage]:
        return []

    def follow_ups(self) -> list[UserMessage]:
        return []

    def left_over(self) -> list[UserMessage]:
        return []

    def pending(self) -> bool:
        return False

    def review_comments(self) -> tuple[str, ...]:
        return ()

    def ruling(self, _call_id: str) -> Ruling | None:
        return None

    def compaction_asked(self) -> str | None:
        return None


class MemoryStore:
    """Implements `drone.runs.blobs.Store` for a run whose blobs are not needed after it."""

    def __init__(self) -> None:
        self._blobs: dict[str, bytes] = {}

    def put(self, content: bytes) -> str:
        name = digest(content)
        self._blobs[name] = content
        return name

    def get(self, run_id: str, sha256: str) -> bytes:
        try:
            return self._blobs[sha256]
        except KeyError:
            raise NotFound(f"run {run_id} has no blob {sha256}", code="E-BLOB-404") from None
