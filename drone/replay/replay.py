"""One replay, from the repository to the verdict, in a temporary copy."""

from __future__ import annotations

import shutil
import signal
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import psutil

from drone.agent.agent import Agent
from drone.installation.home import DroneHome
from drone.installation.policy import load as load_policy
from drone.installation.policy import policy_file
from drone.installation.settings import own_places
from drone.local.order import LocalWishes, order_of
from drone.local.without_fleet import MemoryStore
from drone.processes.ending import end_all
from drone.replay.comparing import Comparison, Difference
from drone.replay.path_mapping import Places
from drone.replay.playback import RecordedModel, RecordedPeople, RecordedToolbox, Script
from drone.replay.recorded_shell import RecordedShell
from drone.replay.recording import Recording
from drone.sandbox import Sandbox, choose
from drone.sandbox.opened import close_all
from drone.tools import build_toolbox
from drone.workspace import Workspace, Workspaces, copy_owner_config, git_environment
from shared.clock import SystemClock
from shared.errors import FleetFault, Precondition
from shared.messages import Message
from shared.outcome import Outcome
from shared.terminal.output import say
from shared.work_order import Base, Limits, Mode, WorkOrder

FOREVER = 10**9


@dataclass(frozen=True)
class ReplayWishes:
    """Options from the command line."""

    repo: str
    sandbox: str = "auto"
    command_timeout: float | None = None
    """None: the recorded value, or else the default."""


@dataclass(frozen=True)
class ReplayResult:
    """How far the recording was played, and the result of the comparison."""

    steps: int
    """Number of model answers played."""
    compared: int
    not_run: int
    unreadable: int
    difference: Difference | None
    exit_status: str | None
    """How our loop ended; None if it was stopped at the difference."""
    left: int = 0
    """Recorded answers that the loop did not request."""

    @property
    def same(self) -> bool:
        """Whether the recording was played to its end without a difference; False if no observation was readable."""
        return self.difference is None and not self.left and (self.compared > 0 or not self.unreadable)

    def document(self) -> dict[str, Any]:
        return {
            "steps": self.steps,
            "compared": self.compared,
            "same": self.compared - (self.difference is not None),
            "not_run": self.not_run,
            "unreadable": self.unreadable,
            "not_played": self.left,
            "first_difference": self.difference.document() if self.difference else None,
            "exit_status": self.exit_status,
        }


def replay(recording: Recording, wishes: ReplayWishes, environ: Mapping[str, str]) -> ReplayResult:
    """Play a recording on a copy of the repository, up to the first observation that differs.

    Raises Invalid, NotFound, Precondition or Forbidden for problems before the start, OrderError or FleetFault if the
    repository cannot be fetched. KeyboardInterrupt propagates after cleanup.
    """
    order = _order(recording, wishes)
    policy = load_policy(policy_file(environ))
    private = own_places(DroneHome.locate(environ).path, environ)
    sandbox = choose(wishes.sandbox, environ, policy.network, policy.limits, image=policy.image, private=private)
    if sandbox.warning:
        say(f"WARNING: {sandbox.warning}")
    with _throw_away() as directory:
        workspace = _workspace(order, directory, sandbox, environ)
        try:
            return _Player(recording, order, workspace, directory / "logs").to_its_end()
        finally:
            workspace.close()


class _Player:
    """The loop, with the recording as its environment."""

    def __init__(self, recording: Recording, order: WorkOrder, workspace: Workspace, logs: Path) -> None:
        self._recording = recording
        self._script = Script(recording, Places(recording.cwd, str(workspace.path)))
        people = RecordedPeople(self._script)
        shell = RecordedShell(workspace.sandbox, recording.shell, recording.environment)
        tools = build_toolbox(
            workspace.path,
            shell,
            mode=order.session.mode,
            command_timeout=order.limits.command_timeout,
            log_dir=logs,
            on_output=None,
            check=people.check,
        )
        toolbox = RecordedToolbox(tools, self._script)
        self._comparison = Comparison(self._script, people, toolbox, shell)
        model = RecordedModel(self._script)
        self._agent = Agent(model, toolbox, self._comparison, people, order.limits, SystemClock())

    def to_its_end(self) -> ReplayResult:
        *before, opening = self._recording.opening or ("",)
        history = [Message(role="user", content=text, part="other") for text in before]
        outcome: Outcome = self._agent.run("", history, opening)
        seen = self._comparison
        return ReplayResult(
            steps=self._script.played,
            compared=seen.compared,
            not_run=seen.not_run,
            unreadable=seen.unreadable,
            difference=seen.difference,
            exit_status=None if seen.difference else outcome.exit_status.value,
            left=0 if seen.difference else self._script.left,
        )


def _order(recording: Recording, wishes: ReplayWishes) -> WorkOrder:
    order = order_of(LocalWishes(prompt="Replay a recording.", repo=wishes.repo, model="recorded"), {})
    usual = order.limits.command_timeout
    timeout = wishes.command_timeout if wishes.command_timeout is not None else recording.timeout or usual
    # The recording determines when the run ends, so there are no limits.
    limits = Limits(
        max_iterations=0, cost_limit=0, max_run_seconds=0, command_timeout=timeout, max_format_errors=FOREVER
    )
    modes: dict[str, Mode] = {mode: mode for mode in get_args(Mode)}
    session = order.session.model_copy(update={"mode": modes.get(recording.mode, "build")})
    base = Base(commit=recording.base_commit)
    return order.model_copy(update={"limits": limits, "session": session, "base": base})


def _workspace(order: WorkOrder, directory: Path, sandbox: Sandbox, environ: Mapping[str, str]) -> Workspace:
    git_config = directory / "gitconfig"
    copy_owner_config(git_config, environ)
    environment = git_environment(git_config, environ, allow_file=True)
    workspaces = Workspaces(directory / "workspace", environment, sandbox)
    try:
        return workspaces.prepare(order, MemoryStore().get, lambda: None)
    except FleetFault as error:
        if error.code != "E-GIT-BASE":
            raise
        raise Precondition(
            f"the repository does not have the commit {order.base.commit} that the recording starts from",
            code="E-TRAJECTORY-BASE",
            next="git fetch, or use the repository of the run as --repo",
        ) from error


@contextmanager
def _throw_away() -> Iterator[Path]:
    """Provide a directory for the copy; afterwards, it is removed and all started processes are ended."""
    # Children that already existed must not be ended.
    others = tuple(child.pid for child in psutil.Process().children())
    directory = Path(tempfile.mkdtemp(prefix="drone-replay-"))
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield directory
    finally:
        signal.signal(signal.SIGTERM, before)
        close_all()
        end_all(spare=others, at_once=True)
        shutil.rmtree(directory, onerror=_unlocked)


def _unlocked(function: Any, path: str, _error: Any) -> None:
    """Remove a path that a command has locked, after making its directory writable again."""
    for each in (Path(path).parent, Path(path)):
        if each.is_dir() and not each.is_symlink():
            each.chmod(0o700)
    function(path)
