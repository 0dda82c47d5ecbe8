"""Checkpoints of one run: the workspace after each complete step, so that a later run can continue from there."""

from __future__ import annotations

import logging
from collections.abc import Container
from dataclasses import dataclass, field

from drone.agent.budget import RunBudget
from drone.agent.protocols import Recorder
from drone.runs.context import CheckpointStore
from drone.workspace import Workspace
from drone.workspace.git import GitFailed
from shared.errors import FleetError
from shared.events import CheckpointStep, CommentStep
from shared.messages import Message

log = logging.getLogger(__name__)

_FILES = frozenset({"file_write", "editor"})
"""Tools that change only files. Any other tool may also have made commits."""


@dataclass
class Checkpoints:
    """Takes checkpoints. A failure is reported once and fails no run: the last good checkpoint counts then."""

    run_id: str
    workspace: Workspace
    recorder: Recorder
    checkpoint_store: CheckpointStore
    budget: RunBudget
    read_only: Container[str]
    """Names of tools that change nothing."""
    _last: CheckpointStep = field(default_factory=CheckpointStep)
    _known: bool = False
    _told: bool = False

    def take(self, message: Message) -> None:
        """Record the state of the workspace after a complete step, whose calls are in `message`."""
        changing = [call.name for call in message.tool_calls if call.name not in self.read_only]
        if self._known and not changing:
            self._record(self._last.model_copy(update={"changed": False}))
            return
        try:
            self._record(self._taken(commits=not self._known or not _FILES.issuperset(changing)))
            self._known = True
        except (GitFailed, FleetError, OSError) as error:
            self._failed(error)

    def _taken(self, *, commits: bool) -> CheckpointStep:
        made = self.workspace.checkpoint(
            self.run_id, has_secret=self.checkpoint_store.has_secret, agent_commits=commits
        )
        if not made.changed and self._known:
            # The files left out may still differ: a known secret was written into a file.
            return self._last.model_copy(update={"changed": False, "left_out": made.left_out})
        return CheckpointStep(
            commit=made.commit,
            head=made.head,
            changed=made.changed,
            bundle_sha256=self.checkpoint_store.add_checkpoint(made.bundle) if made.bundle is not None else None,
            bundle_bytes=len(made.bundle or b""),
            left_out=made.left_out,
        )

    def _record(self, step: CheckpointStep) -> None:
        self._last = step.model_copy(update={"spent": self.budget.spent()})
        self.recorder.record(self._last)

    def _failed(self, error: Exception) -> None:
        """Without a checkpoint the step does not count as complete; a later checkpoint includes it."""
        log.warning("no checkpoint could be taken: %s", error)
        if not self._told:
            self._told = True
            self.recorder.record(
                CommentStep(text=f"No checkpoint could be taken; the run continues without one: {error}")
            )
