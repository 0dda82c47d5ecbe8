"""`drone run`: the loop on a copy of a repository, without a control plane.

The same run as on a drone (`drone.runs.run.execute`), in a different environment: the journal is in a temporary
directory and is shown as it grows, blobs stay in memory, and nothing is pushed.
"""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from drone.agent.protocols import Controls, Model, Recorder
from drone.installation.home import DroneHome
from drone.installation.policy import Policy, policy_file
from drone.installation.policy import load as load_policy
from drone.installation.settings import own_places
from drone.local.document import LocalResult
from drone.local.order import HERE, LocalWishes, order_of
from drone.local.without_fleet import LocalControls, MemoryStore, TerminalLink
from drone.mcp_servers import secrets_of
from drone.model.litellm_import import litellm
from drone.processes.ending import end_all
from drone.processes.receipt import Ended
from drone.reporting import journal
from drone.reporting.journal import RunIdentity
from drone.runs.beside import Beside
from drone.runs.context import RunContext
from drone.runs.provider_keys import keys_of, litellm_model
from drone.runs.recorder import JournalRecorder
from drone.runs.run import execute
from drone.sandbox import Sandbox, choose
from drone.sandbox.opened import close_all
from drone.sandbox.trees import remove
from drone.workspace import Workspaces, copy_owner_config, git_environment
from shared.clock import SystemClock
from shared.errors import FleetError
from shared.events import Delivered, Prepared
from shared.redaction import know, login_secrets
from shared.terminal.output import say
from shared.work_order import WorkOrder


def run_here(wishes: LocalWishes, environ: Mapping[str, str]) -> LocalResult:
    """Run the loop to its end and return the result.

    Raises Invalid, NotFound, Precondition or Forbidden for problems before the start; later problems are in the result.
    KeyboardInterrupt propagates only at the second Ctrl-C.
    """
    order = order_of(wishes, environ)
    policy = load_policy(policy_file(environ))
    home = DroneHome.locate(environ).path
    private = own_places(home, environ)
    sandbox = choose(wishes.sandbox, environ, policy.network, policy.limits, image=policy.image, private=private)
    if sandbox.warning:
        say(f"WARNING: {sandbox.warning}")
    if sandbox.hidden:
        say(f"hidden from commands: {', '.join(map(str, sandbox.hidden))}")
    # Loading takes seconds, so it goes on while the workspace is prepared.
    loading = Beside()
    loading.start(litellm)
    # Children that already existed do not belong to the run: it must not end them.
    others = tuple(child.pid for child in psutil.Process().children())
    directory = Path(tempfile.mkdtemp(prefix="drone-run-"))
    run = _LocalRun(order, policy, sandbox, directory, others, home, environ, loading)
    try:
        return run.to_its_end()
    finally:
        close_all()


@dataclass(frozen=True)
class _LocalRun:
    """One run in a temporary directory."""

    order: WorkOrder
    policy: Policy
    sandbox: Sandbox
    directory: Path
    others: tuple[int, ...]
    home: Path
    environ: Mapping[str, str]
    loading: Beside

    def to_its_end(self) -> LocalResult:
        controls, store = LocalControls(), MemoryStore()
        try:
            with _interrupts_go_to(controls):
                self._execute(controls, store)
        except KeyboardInterrupt:
            self._end_processes(at_once=True)
            say(f"\nstopped immediately; the unfinished copy is in {self.directory}")
            raise
        except FleetError:
            remove(self.directory)  # nothing had begun
            raise
        result = self._result(store, interrupted=controls.wish is not None)
        self._clean_up(result)
        return result

    def _execute(self, controls: LocalControls, store: MemoryStore) -> None:
        git_config = self.directory / "gitconfig"
        copy_owner_config(git_config, self.environ)
        order, clock = self.order, SystemClock()
        servers = secrets_of(self.home, self.environ)
        secrets = (*keys_of(order.provider, {}), *login_secrets(order.project.git_url), *servers)
        redactor = know(secrets)
        identity = RunIdentity(order.run_id, order.order_id, order.generation)
        with journal.opened(self._journal, identity, clock) as writer, TerminalLink(self._journal) as screen:
            context = RunContext(
                boot_id=HERE,
                recorder=JournalRecorder(writer, screen, redactor),
                controls=controls,
                clock=clock,
                sandbox=self.sandbox,
                workspaces=partial(self._workspaces, git_config),
                store=store,
                pushing=None,
                log_dir=self.directory / "logs",
                make_model=self._model,
                check_url=lambda url: Policy().check_git_url(url, None),
                end_processes=self._end_processes,
                policy=self.policy,
                home=self.home,
                environ=self.environ,
            )
            execute(order, context)

    @property
    def _journal(self) -> Path:
        return self.directory / journal.FILE

    def _model(self, order: WorkOrder, recorder: Recorder, controls: Controls) -> Model:
        # The loop's time begins only after this.
        self.loading.settle()
        how = "export VAR=…, then drone run … --api-key-env VAR"
        return litellm_model(order, recorder, controls, clock=SystemClock(), policy=Policy(), environ={}, set_key=how)

    def _workspaces(self, git_config: Path) -> Workspaces:
        environment = git_environment(git_config, self.environ, allow_file=True)
        return Workspaces(self.directory / "workspace", environment, self.sandbox)

    def _end_processes(self, *, at_once: bool = False) -> Ended:
        return close_all().then(end_all(spare=self.others, at_once=at_once))

    def _result(self, store: MemoryStore, *, interrupted: bool) -> LocalResult:
        events = tuple(line.event for line in journal.walk(self._journal))
        result = LocalResult(self.order, events, None, interrupted)
        delivered = result.last(Delivered)
        if delivered is None:
            return result
        name = delivered.patch_sha256
        return LocalResult(self.order, events, b"" if name is None else store.get(HERE, name), interrupted)

    def _clean_up(self, result: LocalResult) -> None:
        """Remove the copy, unless it is the only place that contains the work."""
        if result.patch is None and result.last(Prepared) is not None:
            say(f"no patch could be created; the work is kept in {self.directory}")
        else:
            remove(self.directory)


@contextmanager
def _interrupts_go_to(controls: LocalControls) -> Iterator[None]:
    """On the first Ctrl-C (or SIGTERM), ask the run to end and keep its work; on the second, end this process."""

    def first(number: int, _frame: Any) -> None:
        signal.signal(number, signal.default_int_handler)
        say("\nending the run and keeping its work; press Ctrl-C again to end it immediately")
        controls.interrupt()

    before = {number: signal.signal(number, first) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
