"""`fleet serve`: the API in the main thread, collector and supervisor in threads beside it, until a signal arrives."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Protocol, TypeVar

from control_plane.core import Core
from control_plane.core.settings import FleetSettings
from control_plane.db.upgrade import apply_migrations
from control_plane.server.assemble import open_broker, open_core
from shared.errors import Conflict, FleetFault, Unreachable
from shared.names import new_id
from shared.signal_event import SignalEvent
from shared.terminal import logs

log = logs.get(__name__)

T = TypeVar("T")

WAIT_SECONDS = 15.0
"""How long a database or a broker that starts at the same time may take."""


class Part(Protocol):
    """Background work with its own loops."""

    def start(self) -> None: ...

    def stop(self) -> list[str]: ...


def serve(settings: FleetSettings, role: str = "all", *, patience_s: float = WAIT_SECONDS) -> int:
    """Serve until SIGTERM or Ctrl-C, then stop; returns the exit code.

    Running requests have `web.server.GRACE_S` to end, then the loops 5 s. Both end at once as a rule; the whole time,
    about 16 s, is needed while the database does not answer.

    The schema is brought up to date first. Raises Unreachable (exit code 5) if the database or the broker does not
    respond for `patience_s`, Precondition if the database is newer than this program.
    """
    logs.configure()
    applied = _patiently(lambda: apply_migrations(settings.database_url), "the database", patience_s)
    if applied:
        log.info("the database was upgraded", revisions=applied)
    broker = open_broker(settings)
    _patiently(broker.ping, "the broker", patience_s)
    # The database responded just now, but may have been restarted since.
    core = _patiently(lambda: open_core(settings, broker=broker), "the database", patience_s)
    try:
        _patiently(core.blobs.check, "the blob store", patience_s)
        _run(core, role)
    finally:
        broker.close()
        core.database.dispose()
    return 0


def _run(core: Core, role: str) -> None:
    parts = list(_parts(core, role))
    with _signals() as stopping:
        for part in parts:
            part.start()
        log.info("serving", role=role, database=core.database.shown, broker=core.broker.shown)
        try:
            if role in {"api", "all"}:
                _serve_api(core, stopping)
            else:
                stopping.wait()
        finally:
            _stop(parts)


def _parts(core: Core, role: str) -> Iterator[Part]:
    holder = new_id()
    if role in {"collector", "all"}:
        from control_plane.collector import Collector

        yield Collector(core, holder)
    if role in {"supervisor", "all"}:
        from control_plane.supervisor import Supervisor

        yield Supervisor(core, holder)


def _serve_api(core: Core, stopping: SignalEvent) -> None:
    from control_plane.web.server import api_server

    server = api_server(core, host=core.settings.host, port=core.settings.port)
    # A signal arrived before the server installed its own handlers.
    if stopping.is_set():
        return
    try:
        server.run()
    except SystemExit as refused:
        # uvicorn's way to report that it cannot listen; the cause is in the log.
        raise Conflict(
            f"the API cannot listen on {core.settings.host} port {core.settings.port}",
            code="E-SERVE-PORT",
            why="another program uses the port, or the address does not belong to this machine",
            next="choose another: FLEET_HOST, FLEET_PORT",
        ) from refused


def _stop(parts: list[Part]) -> None:
    """All at the same time, because each may take several seconds."""
    began = time.monotonic()
    threads = [threading.Thread(target=_stop_one, args=(part,), daemon=True) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5.0)
    log.info("stopped", seconds=round(time.monotonic() - began, 1))


def _stop_one(part: Part) -> None:
    try:
        hanging = part.stop()
    except FleetFault as error:
        # Its leases could not be released, because the database is unavailable or full; they expire.
        log.warning("stopped without releasing its leases", why=error.what)
        return
    if hanging:
        log.warning("loops did not end in time", loops=hanging)


def _patiently(ask: Callable[[], T], what: str, seconds: float) -> T:
    """Return the answer of `ask`, retried while a required server still starts. Raises its Unreachable in the end."""
    deadline = time.monotonic() + seconds
    logged = False
    while True:
        try:
            return ask()
        except Unreachable as error:
            if time.monotonic() > deadline:
                raise
            if not logged:
                log.warning(f"waiting for {what}", why=error.what, seconds=seconds)
                logged = True
            time.sleep(0.25)


@contextmanager
def _signals() -> Iterator[SignalEvent]:
    """Turn SIGTERM and SIGINT into an event.

    uvicorn replaces these handlers while it runs, and raises the signal again when it is done: these handlers keep that
    from ending the process before the other parts have stopped.
    """
    stopping = SignalEvent()

    def stop(_signal: int, _frame: FrameType | None) -> None:
        stopping.set()

    before = {each: signal.signal(each, stop) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stopping
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
        stopping.close()
