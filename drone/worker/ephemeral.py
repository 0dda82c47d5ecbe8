"""`drone start --ephemeral`: the drone registers itself, works, and leaves nothing behind when it leaves."""

from __future__ import annotations

import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from drone.installation.home import DroneHome
from drone.installation.registration import Wishes, register, unregister
from drone.runs.directory import all_runs
from drone.sandbox.trees import remove
from drone.worker.leave_rule import LeaveRule
from drone.worker.parent import start
from drone.worker.status_line import tell
from drone.workspace import copy_owner_config
from shared.errors import Conflict, FleetError


def run_ephemeral(
    wishes: Wishes, rule: LeaveRule, environ: Mapping[str, str], *, metrics_port: int | None = None
) -> int:
    """Register, work until `rule` or a signal ends it, unregister; returns the exit code.

    Raises Conflict for a home that is in use and a pool that is full, and whatever registering and unregistering raise.
    """
    # From here to the start of the worker, a signal has to end this process as an error would: with its registration.
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    with _own_home(environ) as home:
        config = register(home, wishes, environ)
        tell(f"registered as {config.name} ({config.drone_id}) with {config.server_url}; home: {home.path}")
        tell(f"leaves {rule.text}")
        try:
            copy_owner_config(home.git_config_file, environ)
            return start(home, metrics_port=metrics_port, rule=rule)
        finally:
            _leave(home)


@contextmanager
def _own_home(environ: Mapping[str, str]) -> Iterator[DroneHome]:
    """DRONE_HOME, which must be empty, else a temporary directory that is removed at the end. Raises Conflict."""
    if environ.get("DRONE_HOME"):
        home = DroneHome.locate(environ)
        if home.path.exists() and any(home.path.iterdir()):
            raise _in_use(home)
        yield home
        return
    directory = Path(tempfile.mkdtemp(prefix="drone-"))
    try:
        yield DroneHome(directory)
    finally:
        with suppress(OSError):
            remove(directory)
        if directory.exists():
            tell(f"WARNING: {directory} could not be removed completely")


def _in_use(home: DroneHome) -> Conflict:
    name = home.config().name if home.config_file.exists() else ""
    return Conflict(
        f"{home.path} cannot be the home of an ephemeral drone",
        code="E-HOME-IN-USE",
        why=f"the drone {name} is registered there" if name else "it is not empty",
        next="unset DRONE_HOME        for a temporary directory, or: export DRONE_HOME=NEW-DIR",
    )


def _leave(home: DroneHome) -> None:
    """Unregister, unless the control plane may lack the end of a run: it would run that order once more."""
    config = home.config()
    unconfirmed = [run.run_id for run in all_runs(home.runs_dir) if (meta := run.meta()) and not meta.confirmed]
    if unconfirmed:
        tell(
            f"WARNING: {config.name} stays registered, as the control plane has not confirmed the end of "
            f"{len(unconfirmed)} run{'' if len(unconfirmed) == 1 else 's'}; it removes the drone within minutes"
        )
        return
    try:
        unregister(home)
    except FleetError:
        tell(f"WARNING: {config.name} could not unregister; the control plane removes it within minutes")
        raise
    tell(f"unregistered {config.name}")
