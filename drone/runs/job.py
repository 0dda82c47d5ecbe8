"""What a run process is given, and its entry: all of a run that the worker itself has to import."""

from __future__ import annotations

from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

from drone.installation.policy import Policy
from shared.registration import Credentials


@dataclass(frozen=True)
class Job:
    """All that a run process is given. It goes through a pipe and is never written to disk."""

    home: Path
    run_id: str
    order: str = field(repr=False)
    """The opened order, JSON."""
    boot_id: str
    sandbox: str
    server_url: str
    workspace: Path
    policy: Policy
    credentials: Credentials
    valid_until: float
    """The lease when the run was started, boot time."""


def main(connection: Connection, job: Job) -> None:
    """Run one order in this process, and end the process."""
    # Imported here: in the fork server it is loaded already, and in the worker it shall never be.
    from drone.runs import process as run_process

    run_process.main(connection, job)


def probe(connection: Connection, _job: None) -> None:
    """Say over the pipe whether runs that are forked now start warm: nothing, or what is wrong."""
    from drone.runs import process as run_process

    run_process.probe(connection)
