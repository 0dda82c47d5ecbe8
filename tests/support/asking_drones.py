"""Drones that only ask their model, one question after another, with permits of a real control plane over HTTP."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from control_plane.contract.declarations import projects, providers
from control_plane.contract.declarations.projects import ProjectRequest
from control_plane.contract.declarations.providers import ProviderRequest
from drone.agent.in_memory import KeptEvents, QuietControls
from drone.agent.values import ModelCallFailed
from drone.model.litellm_model import LiteLLMModel
from drone.runs.blobs import RunApi
from drone.runs.fleet_permits import FleetPermits
from shared.clock import Clock, SystemClock
from shared.errors import Preempted
from shared.messages import Message
from shared.work_order import Limits, OrderProvider
from tests.support.fleet import Api, PlayedRun
from tests.support.limited_endpoint import LimitedEndpoint

KEY = "sk-shared-by-all"
_QUESTION = [Message(role="user", content="Say done.")]


class _Stoppable(QuietControls):
    """Controls that end a run."""

    def __init__(self) -> None:
        super().__init__()
        self.stopped = threading.Event()

    def check(self) -> None:
        if self.stopped.is_set():
            raise Preempted


@dataclass
class AskingDrone:
    """One run on a drone of its own, which asks in a thread."""

    name: str
    run: PlayedRun
    model: LiteLLMModel
    permits: FleetPermits
    api: RunApi
    controls: _Stoppable
    recorder: KeptEvents
    answers: int = 0
    failures: int = 0
    thread: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self.thread = threading.Thread(target=self._ask, name=self.name, daemon=True)

    def _ask(self) -> None:
        while not self.controls.stopped.is_set():
            try:
                self.model.answer(_QUESTION, [], lambda *_: None)
                self.answers += 1
            except ModelCallFailed:
                self.failures += 1
            except Preempted:
                return

    def stop(self) -> None:
        self.controls.stopped.set()
        self.thread.join(60)
        self.permits.close()
        self.model.close()
        self.api.close()


def add_provider(api: Api, endpoint: LimitedEndpoint, *, rpm: int = 0) -> None:
    """The provider of the endpoint, and a project that uses it."""
    request = ProviderRequest(name="limited", model=endpoint.model, api_base=endpoint.url, api_key=KEY, rpm=rpm)
    api.client.call(providers.ADD, request)
    api.client.call(
        projects.ADD, ProjectRequest(slug="demo", git_url="https://git.example/demo.git", provider="limited")
    )


def asking_drone(
    api: Api, name: str, endpoint: LimitedEndpoint, *, rpm: int = 0, priority: int = 0, clock: Clock | None = None
) -> AskingDrone:
    """A drone with one run of a new order; its thread is not started. It waits by `clock`, by default the machine's."""
    run = api.add_drone(name).take(api.submit(priority=priority))
    clock, controls, recorder = clock or SystemClock(), _Stoppable(), KeptEvents()
    run_api = RunApi(api.url, run.drone.token, run.id, clock, lambda: 0.0)
    provider = OrderProvider(
        name="limited",
        model=endpoint.model,
        api_base=endpoint.url,
        api_key=KEY,
        limited=bool(rpm),
    )
    permits = FleetPermits(run_api, provider, recorder, controls, clock)
    # Many retries: the figures are about refusals, not about runs that end because of them.
    limits = Limits(max_retries=50, base_delay=1.0)
    model = LiteLLMModel(provider, KEY, limits, recorder, clock, controls, permits=permits)
    return AskingDrone(name, run, model, permits, run_api, controls, recorder)


def warm_up() -> None:
    """Let the model library do what it does once: the drone does it before it takes orders."""
    with LimitedEndpoint(100) as endpoint:
        provider = OrderProvider(name="warm", model=endpoint.model, api_base=endpoint.url, api_key=KEY)
        model = LiteLLMModel(provider, KEY, Limits(), KeptEvents(), SystemClock(), QuietControls())
        model.answer(_QUESTION, [], lambda *_: None)
        model.close()


@contextmanager
def asking(*drones: AskingDrone) -> Iterator[None]:
    """Let them ask for the duration of the block."""
    for drone in drones:
        drone.thread.start()
    try:
        yield
    finally:
        for drone in drones:
            drone.controls.stopped.set()
        for drone in drones:
            drone.stop()


@dataclass(frozen=True)
class Figures:
    """What an endpoint saw in a span of time."""

    seconds: float
    accepted: int
    refused: int
    allowed: float
    """Requests that its limit allowed."""

    @property
    def refused_part(self) -> float:
        return self.refused / max(1, self.accepted + self.refused)

    @property
    def used_part(self) -> float:
        return self.accepted / self.allowed

    @property
    def cells(self) -> str:
        """Its cells in the table of docs/rate-limits.md."""
        calls = self.accepted + self.refused
        return f"{self.seconds:.0f} s | {calls} | {self.refused} ({self.refused_part:.1%}) | {self.used_part:.0%}"


def measured(endpoint: LimitedEndpoint, since: float, until: float) -> Figures:
    """The figures between two times of the monotonic clock, with the endpoint's limit as it is now."""
    accepted, refused = endpoint.counted(since, until)
    return Figures(
        seconds=until - since,
        accepted=accepted,
        refused=refused,
        allowed=endpoint.per_minute * (until - since) / 60,
    )


def watch(endpoint: LimitedEndpoint, seconds: float) -> Figures:
    """The figures of so many seconds from now on."""
    since = time.monotonic()
    time.sleep(seconds)
    return measured(endpoint, since, time.monotonic())
