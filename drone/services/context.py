"""What a service needs from its run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from drone.agent.protocols import Controls, Model, Recorder
from drone.installation.policy import Policy
from drone.workspace import Workspaces
from shared.clock import Clock
from shared.work_order import WorkOrder


class ServiceControls(Controls, Protocol):
    """Controls that also suit work without a conversation."""

    def check_end(self) -> None:
        """Like `check`, but without the user messages for the loop. Raises Preempted."""
        ...


class ServiceContext(Protocol):
    """The part of `drone.runs.context.RunContext` that services use; its fields are described there."""

    @property
    def recorder(self) -> Recorder: ...

    @property
    def controls(self) -> ServiceControls: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def workspaces(self) -> Callable[[], Workspaces]: ...

    @property
    def make_model(self) -> Callable[[WorkOrder, Recorder, Controls], Model]: ...

    @property
    def check_url(self) -> Callable[[str], None]: ...

    @property
    def policy(self) -> Policy: ...

    @property
    def environ(self) -> Mapping[str, str]: ...
