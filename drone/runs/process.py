"""The process of one run: mostly a fork of the warm server; in its own session, alive only as long as its worker is."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from urllib.parse import urlsplit

from drone.agent.protocols import Controls, Model, Recorder
from drone.agent.values import ModelResponse, OnDelta, ToolSpec
from drone.installation.home import DroneHome
from drone.installation.policy import Policy
from drone.installation.settings import own_places
from drone.installation.spending import DaySpending
from drone.mcp_servers import secrets_of
from drone.model.litellm_import import litellm
from drone.processes.ending import end_all
from drone.processes.reaping import become_reaper
from drone.processes.receipt import Ended
from drone.reporting import journal
from drone.reporting.journal import Journal
from drone.runs.assembly import spent_before
from drone.runs.beside import Beside
from drone.runs.blobs import RunApi, Uploads
from drone.runs.context import MakeModel, RunContext
from drone.runs.controls import RunControls
from drone.runs.delivery import Pushing
from drone.runs.directory import CANNOT_LOCK, RunDirectory
from drone.runs.fleet_permits import FleetPermits
from drone.runs.job import Job
from drone.runs.kept_spending import KeptSpending
from drone.runs.lease import OFFLINE_GRACE_SECONDS
from drone.runs.pipe import PipeLink, Probed
from drone.runs.provider_keys import keys_of, litellm_model
from drone.runs.purse import Purse
from drone.runs.recorder import JournalRecorder
from drone.runs.run import execute
from drone.sandbox import Sandbox, choose
from drone.sandbox.network import NetworkAccess
from drone.sandbox.opened import close_all
from drone.workspace import Workspaces, git_environment
from shared.budgets import Money
from shared.clock import SystemClock
from shared.control import Compact, Say
from shared.errors import FleetFault, Refused
from shared.events import CommentStep
from shared.messages import Message
from shared.redaction import know, login_secrets
from shared.terminal import logs
from shared.work_order import WorkOrder

log = logging.getLogger(__name__)

FAILED = 1
ORPHANED = 4
"""Exit code of a run whose worker is gone."""
WISHED_PATIENCE_SECONDS = 10.0
"""Time for the control plane to accept the work of a run that was asked to end."""
LOG_SECONDS = 20.0
SHARED_UMASK = 0o022
OOM_SCORE = "500"
"""When memory runs out, the kernel should kill a run and not the worker that watches it."""


def main(connection: Connection, job: Job) -> None:
    """Run one order in this process, and end the process."""
    code = FAILED
    try:
        _settle_in(job)
        code = _run(connection, job, os.environ)
    except Exception:  # the boundary of the process: the worker reports a run that ended without a last event
        log.exception("run %s failed unexpectedly", job.run_id)
    finally:
        # Not through the interpreter's shutdown: it would wait for threads of libraries that have nothing left to do.
        logging.shutdown()
        sys.stderr.flush()
        os._exit(code)


def probe(connection: Connection) -> None:
    """Report over the pipe whether runs that are forked now start warm: empty, or the problem."""
    connection.send_bytes(Probed(problem=_cold()).model_dump_json().encode())
    os._exit(0)


def _settle_in(job: Job) -> None:
    if os.getsid(0) != os.getpid():
        os.setsid()
    # The commands and the drone's git share the workspace and the mirrors, on root's drones as two accounts. They lie
    # in directories that only the drone's user can enter.
    os.umask(SHARED_UMASK)
    become_reaper()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(OSError):  # no such file outside Linux
        Path("/proc/self/oom_score_adj").write_text(OOM_SCORE)
    logs.configure(file=DroneHome(job.home).log_file)
    logs.bind(run=job.run_id, order=job.order.order_id, drone=job.order.drone_id)


def _run(connection: Connection, job: Job, environ: Mapping[str, str]) -> int:
    directory = RunDirectory(DroneHome(job.home).run_dir(job.run_id))
    identity = directory.identity()
    lock = directory.lock()
    if identity is None or lock is None:
        raise FleetFault(CANNOT_LOCK, code="E-RUN-LOCKED", why=str(directory.path))
    order = job.order
    controls = RunControls(SystemClock(), job.valid_until)
    if order.session.compact is not None:
        controls.receive(Compact(run_id=job.run_id, instructions=order.session.compact))
    with journal.opened(directory.journal, identity, SystemClock()) as writer:
        link = PipeLink(connection, controls.receive, partial(_end_without_worker, directory, writer))
        link.start()
        with closing_link(link):
            _execute(job, writer, (controls, link), environ)
    return 0


def _execute(job: Job, writer: Journal, ends: tuple[RunControls, PipeLink], environ: Mapping[str, str]) -> None:
    order = job.order
    controls, link = ends
    clock = SystemClock()
    redactor = know(_secrets(job, environ))
    recorder = JournalRecorder(writer, link, redactor)
    controls.on_taken_back = partial(_taken_back, recorder)
    home = DroneHome(job.home)
    directory = RunDirectory(home.run_dir(job.run_id))
    api = RunApi(
        job.server_url, job.credentials.api_token, order.run_id, clock, partial(_patience, controls), job.ca_file
    )
    uploads, purse = Uploads(api, redactor), _purse(order, api, directory)
    owner = f"{job.boot_id}.{job.run_id}"
    sandbox = _sandbox(job, environ, owner)
    loading = Beside()
    if "litellm" not in sys.modules:
        # The fork server rests. Loading takes seconds, so it happens while the workspace is prepared.
        loading.start(litellm)
    context = RunContext(
        boot_id=job.boot_id,
        recorder=recorder,
        controls=controls,
        clock=clock,
        sandbox=sandbox,
        workspaces=partial(_workspaces, job, sandbox, environ),
        store=api,
        pushing=Pushing(
            api,
            controls.lease,
            clock,
            wish=lambda: controls.wish,
            say=partial(recorder.doing, waits_for="provider"),
        ),
        log_dir=directory.logs,
        make_model=_once_loaded(loading, partial(_metered_model, job, environ, (api, purse))),
        check_url=partial(_check_url, job),
        check_order=job.policy.check_order,
        end_processes=partial(_end_processes, sandbox),
        store_log=uploads.add_log,
        checkpoint_store=uploads,
        secrets=redactor,
        policy=job.policy,
        home=home.path,
        environ=environ,
    )
    try:
        execute(order, context)
    finally:
        close_all()  # a delivery, after the processes were ended, may have opened it again
    uploads.finish(LOG_SECONDS)
    purse.close()
    api.close()


def _purse(order: WorkOrder, api: RunApi, directory: RunDirectory) -> Purse:
    """The run's money; a control plane that keeps no account of it sends orders without `money`."""
    account = api if order.money is not None else None
    kept = KeptSpending(directory.spending)
    return Purse(order.limits.cost_limit, spent_before(order).cost_usd, account, order.money or Money(), kept)


def _once_loaded(loading: Beside, make: MakeModel) -> MakeModel:
    """`make`, once the model library is loaded: the loop's time begins only then."""

    def made(order: WorkOrder, recorder: Recorder, controls: Controls) -> Model:
        loading.settle()
        return make(order, recorder, controls)

    return made


def _metered_model(  # noqa: PLR0913, PLR0917 - three of the process, three of the loop
    job: Job,
    environ: Mapping[str, str],
    control_plane: tuple[RunApi, Purse],
    order: WorkOrder,
    recorder: Recorder,
    controls: Controls,
) -> Model:
    api, purse = control_plane
    clock = SystemClock()
    permits = FleetPermits(api, order.provider, recorder, controls, clock)
    model = litellm_model(
        order, recorder, controls, clock=clock, policy=job.policy, environ=environ, purse=purse, permits=permits
    )
    return _MeteredModel(model, job.policy, DaySpending(DroneHome(job.home).spending_file, clock))


def _sandbox(job: Job, environ: Mapping[str, str], owner: str) -> Sandbox:
    policy, private = job.policy, own_places(job.home, environ, job.workspace)
    network, limits, image = _network(job), policy.limits, policy.image
    return choose(job.sandbox, environ, network, limits, owner=owner, trial=False, image=image, private=private)


def _check_url(job: Job, url: str) -> None:
    job.policy.check_git_url(url, job.server_url, own=(job.home, job.workspace))
    job.policy.check_repository(url)


def _network(job: Job) -> NetworkAccess:
    """What the owner allows, without the fleet's own servers, which a command has no business with."""
    urls = (job.server_url, job.credentials.broker_url)
    own = tuple(host for url in urls if (host := urlsplit(url).hostname))
    return replace(job.policy.network, own=own, works=job.network_works)


def _end_processes(sandbox: Sandbox) -> Ended:
    """End and count the processes that commands left behind. The network's own are not among them."""
    return close_all().then(end_all(asked_at=lambda: sandbox.tally.asked_at))


def _workspaces(job: Job, sandbox: Sandbox, environ: Mapping[str, str]) -> Workspaces:
    try:
        job.policy.check_git_url("file:///", job.server_url)
        allow_file = True
    except Refused:
        allow_file = False
    environment = git_environment(DroneHome(job.home).git_config_file, environ, allow_file=allow_file)
    return Workspaces(job.workspace, environment, sandbox, partial(_check_url, job))


@contextlib.contextmanager
def closing_link(link: PipeLink) -> Iterator[None]:
    """Close the link in any case, so that the remaining messages are sent."""
    try:
        yield
    finally:
        link.close()


def _end_without_worker(directory: RunDirectory, writer: Journal) -> None:
    """End this run's processes and then the run itself, without any message: its worker is gone.

    The receipt is left in a file, for the next worker.
    """
    # First: a command that we end here must not look as if its step were complete.
    writer.stop()
    ended = close_all().then(end_all(at_once=True))
    close_all()  # the cgroup too, which is empty now
    with contextlib.suppress(OSError):
        directory.orphaned.write_text(ended.receipt(SystemClock().now()).model_dump_json())
    os._exit(ORPHANED)


def _taken_back(recorder: JournalRecorder, messages: Sequence[Say]) -> None:
    """Record that the model was not given these messages."""
    text = "\n\n".join(f"Taken back before the agent read it: {say.text}" for say in messages)
    recorder.record(CommentStep(text=text, taken_back=tuple(say.message for say in messages)))


def _patience(controls: RunControls) -> float:
    """How long to wait for a control plane that does not answer."""
    return OFFLINE_GRACE_SECONDS if controls.wish is None else WISHED_PATIENCE_SECONDS


def _secrets(job: Job, environ: Mapping[str, str]) -> list[str]:
    """Known secrets of this run; others are also found by their well-known shapes."""
    order = job.order
    elsewhere = order.team.instructions_url if order.team else None
    addresses = (job.credentials.broker_url, order.project.git_url, elsewhere or "")
    logins = [secret for address in addresses for secret in login_secrets(address)]
    servers = secrets_of(job.home, environ)
    return [job.credentials.api_token, *logins, *_keys(order, environ), *servers]


def _keys(order: WorkOrder, environ: Mapping[str, str]) -> Iterator[str]:
    """The keys of all models that the order may use."""
    yield from keys_of(order.provider, environ)
    if order.reviewer is not None:
        yield from keys_of(order.reviewer.provider, environ)


def _cold() -> str:
    """Why the model library is not loaded and warm in this process; empty if it is.

    The fork server does not report a preload that could not be imported, so it is checked here.
    """
    try:
        from drone.model import preload
    except ImportError as error:
        return f"it cannot be imported: {error}"
    return "" if preload.WARM else preload.PROBLEM or "its warm-up did not finish"


@dataclass(frozen=True)
class _MeteredModel:
    """A model whose calls count towards what the drone's owner lets it spend in a day.

    Every call of a run goes through it: those of the loop, of its children, of compaction and of services.
    """

    model: Model
    policy: Policy
    spending: DaySpending

    @property
    def window(self) -> int:
        return self.model.window

    def answer(self, messages: Sequence[Message], tools: Sequence[ToolSpec], on_delta: OnDelta) -> ModelResponse:
        """As the model answers; raises Forbidden instead once the day's money is spent.

        Runs that ask at the same moment may together spend more, by what these calls cost.
        """
        self.policy.check_spent(self.spending.today())
        answer = self.model.answer(messages, tools, on_delta)
        # Not at the organization's prices, which its admins set: the limit is the owner's.
        self.spending.add(answer.listed_usd or 0.0)
        return answer
