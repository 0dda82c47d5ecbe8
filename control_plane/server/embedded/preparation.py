"""Prepares database and token of a `fleet up` in a process that ends, and with it the memory of what it imports."""

from __future__ import annotations

import multiprocessing
import signal
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING

from control_plane.server.embedded.data_dir import DataDir, write_private
from control_plane.server.embedded.plan import Plan
from shared.errors import FleetError, FleetFault

if TYPE_CHECKING:
    from control_plane.core import Core


def prepare(plan: Plan, data: DataDir) -> str:
    """Bring the database up to date, and return the token for `server.json`.

    Raises Precondition if the database is newer than this program, Unreachable if it does not respond.
    """
    # A copy of this process has loaded most of what it needs, and `fleet up` has no other thread yet.
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(plan, data, theirs), name="preparation")
    process.start()
    theirs.close()
    try:
        token, error = ours.recv()
    except EOFError:
        token, error = "", None
    process.join()
    if error is not None:
        kind, what, parts = error
        raise kind(what, **parts)
    if process.exitcode:
        raise FleetFault(
            f"the preparation of the database ended with exit code {process.exitcode}",
            code="E-UP-PART",
            why="its error is above" if process.exitcode > 0 else "it was killed",
            next="fleet doctor",
        )
    return str(token)


def _run(plan: Plan, data: DataDir, answer: Connection) -> None:
    # Ctrl-C in the terminal reaches this process too: `fleet up` stops once the database is whole.
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, signal.SIG_IGN)
    try:
        answer.send((_prepare(plan, data), None))
    except FleetError as error:
        parts = {"code": error.code, "why": error.why, "next": error.next, "help": error.help}
        answer.send(("", (type(error), error.what, parts)))


def _prepare(plan: Plan, data: DataDir) -> str:
    from control_plane.core.settings import read_settings
    from control_plane.db.upgrade import apply_migrations
    from control_plane.server.assemble import open_core

    apply_migrations(data.database_url)
    # Passed as arguments, not through the environment, which drones inherit: these secrets are not for them.
    settings = read_settings(
        database_url=data.database_url,
        broker_url=plan.broker_url,
        master_key_file=data.master_key,
        blob_dir=data.blobs,
        ca_file=plan.options.tls_ca,
    )
    core = open_core(settings)
    try:
        return _admin_token(core, data)
    finally:
        core.database.dispose()


def _admin_token(core: Core, data: DataDir) -> str:
    """The previous token if it still works and acts everywhere, else a new one."""
    from control_plane.operations.access import tokens
    from shared.errors import Unauthenticated

    known = data.admin_token.read_text().strip() if data.admin_token.exists() else ""
    try:
        if tokens.authenticate(core, known).everywhere:
            return known
    except Unauthenticated:
        pass
    known = tokens.bootstrap_admin(core)
    write_private(data.admin_token, known)
    return known
