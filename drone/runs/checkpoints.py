"""Checkpoints of one run: the workspace after each complete step, so that a later run can continue from there.

Taken while the model is asked again. They are complete before its answer is recorded, so before any call of it runs.
"""

from __future__ import annotations

import logging
from collections.abc import Container
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from drone.agent.budget import RunBudget
from drone.agent.protocols import Recorder
from drone.runs.beside import Beside
from drone.runs.context import CheckpointPart, CheckpointStore
from drone.workspace import Patches, SecretFinder, Workspace
from drone.workspace.git import GitFailed
from drone.workspace.outgoing import added_secrets
from shared.blobs import INLINE_PATCH, digest
from shared.errors import FleetError
from shared.events import CheckpointStep, CommentStep, Spent
from shared.messages import Message

log = logging.getLogger(__name__)

MOST_PATCH = INLINE_PATCH
"""Bytes of a patch that is reported while the run works; a larger one is reported at the end."""
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
    secrets: SecretFinder | None
    """Recognizes the secrets that a patch must not contain; None: patches stay on this machine."""
    beside: Beside
    """Where they are taken; their events are recorded there, before any other event of the loop."""
    _last: CheckpointStep = field(default_factory=CheckpointStep)
    _known: bool = False
    _missed: bool = False
    """Whether a step since the last checkpoint has none of its own."""
    _told: bool = False
    _taken_now: bool = False
    _is_whole: bool = True

    def take(self, message: Message) -> None:
        """Begin to record the state of the workspace after a complete step, whose calls are in `message`."""
        spent = self.budget.spent()
        changing = [call.name for call in message.tool_calls if call.name not in self.read_only]
        if self._known and not self._missed and not changing:
            self._record(self._last.model_copy(update={"changed": False}), spent)
            return
        commits = not self._known or self._missed or not _FILES.issuperset(changing)
        self.beside.start(partial(self._take, spent, commits=commits))

    def may_suspend(self, message: Message) -> bool:
        """Take a checkpoint within a step; whether a run on any drone can continue from it with no file missing."""
        self._taken_now = False
        self.take(message)
        self.beside.settle()
        return self._taken_now and self._is_whole

    def _take(self, spent: Spent, *, commits: bool) -> None:
        try:
            self._record(self._taken(commits=commits), spent)
            self._known = True
        except (GitFailed, FleetError, OSError) as error:
            self._failed(error)

    def _taken(self, *, commits: bool) -> CheckpointStep:
        made = self.workspace.checkpoint(
            self.run_id, has_secret=self.checkpoint_store.has_secret, agent_commits=commits
        )
        self._is_whole = made.is_whole
        if not made.changed and self._known:
            # The files left out may still differ: a known secret was written into a file.
            now = {"left_out": made.left_out, "kept_on_disk": made.kept_on_disk}
            return self._last.model_copy(update={"changed": False, **now})
        return CheckpointStep(
            commit=made.commit,
            head=made.head,
            changed=made.changed,
            bundle_sha256=self.checkpoint_store.add_checkpoint(made.bundle) if made.bundle is not None else None,
            bundle_bytes=len(made.bundle or b""),
            left_out=made.left_out,
            kept_on_disk=made.kept_on_disk,
            **(self._reported(made.patches) if made.patches is not None else {}),
        )

    def _reported(self, patches: Patches) -> dict[str, Any]:
        """The patches for readers, held to what a delivery is held to: they leave the drone as it does."""
        if self.secrets is None:
            return {}
        whole = patches.turn if patches.branch is None else patches.branch
        contents: dict[CheckpointPart, bytes] = {"patch": patches.turn, "branch patch": whole}
        reasons = {part: _why_withheld(content, self.secrets) for part, content in contents.items()}
        # Part of the turn's patch may be in the other one: neither is sent if the turn's may not be.
        sent = {part for part, reason in reasons.items() if not reason and not reasons["patch"]}
        if patches.branch is not None and "branch patch" in sent:
            self.checkpoint_store.add_checkpoint(whole, "branch patch")
        if "patch" in sent:
            self.checkpoint_store.add_checkpoint(patches.turn, "patch")
        return {
            "patch_sha256": digest(patches.turn) if "patch" in sent else None,
            "branch_patch_sha256": digest(whole) if "branch patch" in sent else None,
            "patch_withheld": reasons["patch"] or reasons["branch patch"],
        }

    def _record(self, step: CheckpointStep, spent: Spent) -> None:
        self._last = step.model_copy(update={"spent": spent})
        self.recorder.record(self._last)
        self._taken_now, self._missed = True, False

    def _failed(self, error: Exception) -> None:
        """Without a checkpoint the step does not count as complete; a later checkpoint includes it."""
        self._missed = True
        log.warning("no checkpoint could be taken: %s", error)
        if not self._told:
            self._told = True
            self.recorder.record(
                CommentStep(text=f"No checkpoint could be taken; the run continues without one: {error}")
            )


def _why_withheld(patch: bytes, secrets: SecretFinder) -> str:
    if len(patch) > MOST_PATCH:
        return "size"
    return "secret" if any(added_secrets(patch, secrets)) else ""
