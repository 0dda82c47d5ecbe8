"""What a run needs from around it: on a drone from its worker, in `drone run` from the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from drone.agent.protocols import Controls, Model, Recorder
from drone.agent.recorded_transcript import StoreLog
from drone.installation.policy import Policy
from drone.processes.receipt import Ended
from drone.runs.blobs import Store
from drone.runs.delivery import Pushing
from drone.runs.stop_requests import Wish
from drone.sandbox import Sandbox
from drone.workspace import Workspaces
from shared.clock import Clock
from shared.work_order import WorkOrder


class RunWishes(Controls, Protocol):
    """Controls that also know whether the run is to end, and stay quiet while it delivers."""

    @property
    def wish(self) -> Wish | None:
        """Why the run is to end, if it is."""
        ...

    def check_end(self) -> None:
        """As `check`, but for what people have to say to the loop. Raises Preempted."""
        ...


class CheckpointStore(Protocol):
    """What checkpoints rest on."""

    def has_secret(self, content: bytes) -> bool:
        """Whether a file holds a secret that this run knows: such a file leaves the drone in no checkpoint."""
        ...

    def add_checkpoint(self, bundle: bytes) -> str:
        """Take a checkpoint for sending, in the background; returns the SHA-256 that the blob will have."""
        ...

    def settle(self, seconds: float) -> None:
        """Wait, at most so long, until the newest checkpoint is sent."""
        ...


MakeModel = Callable[[WorkOrder, Recorder, Controls], Model]


@dataclass(frozen=True)
class RunContext:
    """What a run needs from around it; on a drone from its worker, in `drone run` from the command line."""

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
    """Lets the repository's URL pass or raises Refused: the policy of the machine's owner."""
    end_processes: Callable[[], Ended]
    """Ends whatever the run has started and is still there."""
    home: Path
    """The drone's home, where its owner may keep prompts, skills, extensions and MCP servers."""
    environ: Mapping[str, str] = field(repr=False)
    """The drone's own variables, of which its owner may hand some to MCP servers."""
    store_log: StoreLog | None = None
    checkpoint_store: CheckpointStore | None = None
    """Where checkpoints go; None: none are taken."""
    policy: Policy = field(default_factory=Policy)
