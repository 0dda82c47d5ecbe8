"""The container sandbox: only the image's files, the workspace and the session's home exist for a command.

All commands of a session share one container, which is made for the first of them. In it a process of ours starts and
holds each command; only an MCP server has a process on the drone's side too, which passes its streams (`client.py`).
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from drone.processes.receipt import Ended
from drone.processes.tree import MARK
from drone.sandbox import account
from drone.sandbox.command import Watch
from drone.sandbox.command_lines import new_mark, passable
from drone.sandbox.container import client
from drone.sandbox.container.engine import Engine
from drone.sandbox.container.options import HOME, Mounts, holds_by_cgroup
from drone.sandbox.container.running import RunningContainer
from drone.sandbox.environment import carried, clean_environment
from drone.sandbox.keepers import run_below
from drone.sandbox.network import Gateway
from drone.sandbox.network.namespace import proxy_variables
from drone.sandbox.opened import opened
from drone.sandbox.protocol import NO_VARIABLES, Asked, CommandLine, CommandResult, CommandSpec, Tally
from drone.sandbox.resources import ResourceLimits
from drone.sandbox.resources.usage import UsageWatch


class Containers:
    """The containers of one run, shared by all copies of its sandbox."""

    def __init__(self, find: Callable[[], Engine], gateway: Gateway, limits: ResourceLimits) -> None:
        """`find` returns the engine, or raises FleetFault."""
        self.limits, self.gateway = limits, gateway
        self._find = find
        self._lock = threading.Lock()
        self._running: dict[Mounts, RunningContainer] = {}

    @cached_property
    def engine(self) -> Engine:
        return self._find()

    def at(self, mounts: Mounts) -> RunningContainer:
        """The running container of this mounts, made if there is none. Raises FleetFault."""
        with self._lock:
            found = self._running.get(mounts)
            if found is None or not found.is_running():
                self._close(mounts)
                found = self._running[mounts] = RunningContainer(self.engine, mounts, self.gateway, self.limits)
                opened[self] = None
            return found

    def leave(self, mounts: Mounts) -> None:
        """Close the container of a mounts."""
        with self._lock:
            self._close(mounts)

    def close(self) -> Ended:
        """End all containers; return how many processes of commands were still running."""
        with self._lock:
            opened.pop(self, None)
            return sum(map(self._close, list(self._running)), Ended())

    def _close(self, mounts: Mounts) -> Ended:
        running = self._running.pop(mounts, None)
        return Ended() if running is None else running.close()


@dataclass(frozen=True)
class ContainerSandbox:
    """Runs commands in containers of podman or docker."""

    environ: Mapping[str, str] = field(repr=False, compare=False)
    """The drone's own environment."""
    containers: Containers
    owner: str = ""
    scratch: Path | None = None
    read_only: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    tally: Tally = field(default_factory=Tally)
    kind: str = "docker"
    python: str = "python3"
    """The image's."""
    warning: str = ""

    @property
    def network_rule(self) -> str:
        return self.containers.gateway.access.rule

    @property
    def gateway(self) -> Gateway:
        return self.containers.gateway

    @property
    def user(self) -> int | None:
        return account.of_commands()

    def for_session(self, *, scratch: Path, read_only: Sequence[Path] = ()) -> ContainerSandbox:
        return replace(self, scratch=scratch, read_only=(*self.read_only, *read_only))

    def run(self, spec: CommandSpec) -> CommandResult:
        also_read = replace(self, read_only=(*self.read_only, *spec.read_only))
        if self.scratch is not None:
            return also_read._run(spec, also_read._mounts(spec.workspace))
        with tempfile.TemporaryDirectory(prefix="drone-") as directory:
            once = replace(also_read, scratch=Path(directory))
            mounts = once._mounts(spec.workspace)
            try:
                return once._run(spec, mounts)
            finally:
                self.containers.leave(mounts)

    def line(
        self, command: str | Sequence[str], *, workspace: Path, variables: Mapping[str, str] = NO_VARIABLES
    ) -> CommandLine:
        mounts = self._mounts(workspace)
        return self._line(self.containers.at(mounts), command, mounts.workspace, variables)

    def _run(self, spec: CommandSpec, mounts: Mounts) -> CommandResult:
        container = self.containers.at(mounts)
        limits, processes = self.containers.limits, not holds_by_cgroup(self.containers.engine)
        # The command's processes are below the container's first one, and not below the client.
        watch = Watch(
            spec,
            usage=lambda _: UsageWatch(
                limits, container.process.pid, [mounts.workspace, mounts.scratch], processes=processes
            ),
        )
        with passable(spec.command, container.shell, mounts.scratch / "tmp", "/tmp") as passed:  # noqa: S108
            asked = Asked(_words(container, passed), self._environment(container), mounts.workspace)
            result = run_below(container, asked, watch, self.tally)
        return replace(result, refused=container.take_refused(), reached=container.take_reached())

    def _line(
        self,
        container: RunningContainer,
        command: str | Sequence[str],
        workspace: Path,
        variables: Mapping[str, str] = NO_VARIABLES,
    ) -> CommandLine:
        inside, carriers = carried(_words(container, command), variables)
        environment = self._environment(container)
        script = [sys.executable, "-I", "-S", str(Path(client.__file__)), str(container.requests), str(workspace)]
        return CommandLine([*script, *inside], environment | carriers, Path("/"), environment[MARK])

    def _environment(self, container: RunningContainer) -> dict[str, str]:
        mark = new_mark(self.owner)
        environment = clean_environment(home=HOME, tmp="/tmp", path="", mark=mark, source=self.environ)  # noqa: S108
        del environment["PATH"]  # the image's own applies
        return environment | (proxy_variables() if container.proxy is not None else {})

    def _mounts(self, workspace: Path) -> Mounts:
        """Where commands run, given to their account."""
        if self.scratch is None:
            raise ValueError("a command that outlives its call requires a session's home: use for_session")
        mounts = Mounts(workspace.resolve(), self.scratch.resolve(), tuple(dict.fromkeys(self.read_only)))
        for directory in (mounts.scratch / "home", mounts.scratch / "tmp"):
            directory.mkdir(parents=True, exist_ok=True)
        if self.user is not None:
            for directory in (mounts.workspace, mounts.scratch / "home", mounts.scratch / "tmp"):
                account.hand_over(directory, self.user)
        return mounts


def _words(container: RunningContainer, command: str | Sequence[str]) -> list[str]:
    return [container.shell, "-c", command] if isinstance(command, str) else list(command)
