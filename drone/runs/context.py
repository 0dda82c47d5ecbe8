"""The dependencies of a run: provided by the worker on a drone, by the command line in `drone run`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from drone.agent.protocols import Controls, Model, Recorder
from drone.agent.recorded_transcript import StoreLog
from drone.agent.values import UserMessage
from drone.installation.policy import Policy
from drone.processes.receipt import Ended
from drone.runs.blobs import Store
from drone.runs.delivery import Pushing
from drone.runs.stop_requests import Wish
from drone.sandbox import Sandbox
from drone.workspace import SecretFinder, Workspaces
from shared.clock import Clock
from shared.work_order import WorkOrder


class RunWishes(Controls, Protocol):
    """Controls that also know whether the run is to end, and do not interrupt its delivery."""

    @property
    def wish(self) -> Wish | None:
        """Why the run is to end, if it is."""
        ...

    def review_comments(self) -> Sequence[str]:
        """The ids of all review comments in messages that arrived since the run began."""
        ...

    def left_over(self) -> Sequence[UserMessage]:
        """Take all user messages that the loop has not taken, when the run has come to its end."""
        ...

    def check_end(self) -> None:
        """Like `check`, but without the user messages for the loop. Raises Preempted."""
        ...


CheckpointPart = Literal["bundle", "patch", "branch patch"]


class CheckpointStore(Protocol):
    """What checkpoints depend on."""

    def has_secret(self, content: bytes) -> bool:
        """Whether a file holds a secret that this run knows: no checkpoint that leaves the drone includes the file."""
        ...

    def add_checkpoint(self, content: bytes, part: CheckpointPart = "bundle") -> str:
        """Queue a part of a checkpoint for sending in the background; return the SHA-256 that the blob will have.

        It replaces the same part of an earlier checkpoint that is not sent.
        """
        ...

    def settle(self, seconds: float) -> None:
        """Wait up to `seconds` until the newest checkpoint is sent."""
        ...


MakeModel = Callable[[WorkOrder, Recorder, Controls], Model]


@dataclass(frozen=True)
class RunContext:
    """The dependencies of a run: provided by the worker on a drone, by the command line in `drone run`."""

    boot_id: str
    recorder: Recorder
    controls: RunWishes
    clock: Clock
    sandbox: Sandbox
    workspaces: Callable[[], Workspaces]
    """Called inside the boundary: a workspace directory that is not ours is this run's error."""
    store: Store
    pushing: Pushing | None
    """None: nothing is pushed."""
    log_dir: Path
    make_model: MakeModel
    check_url: Callable[[str], None]
    """Accepts the repository's URL or raises Refused: the policy of the machine's owner."""
    end_processes: Callable[[], Ended]
    """Ends all processes that the run started and that are still running."""
    home: Path
    """The drone's home, where its owner may keep prompts, skills, extensions and MCP servers."""
    environ: Mapping[str, str] = field(repr=False)
    """The drone's environment variables; its owner may pass some of them to MCP servers."""
    store_log: StoreLog | None = None
    checkpoint_store: CheckpointStore | None = None
    """Where checkpoints go; None: none are taken."""
    secrets: SecretFinder | None = None
    """Recognizes the secrets that the work must not contain; None: the work stays on this machine."""
    policy: Policy = field(default_factory=Policy)
    check_order: Callable[[WorkOrder], None] = lambda _: None
    """Accepts the order or raises Refused, before anything is fetched."""
