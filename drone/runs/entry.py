"""The entry of a run process: all of a run's code that the worker itself has to import."""

from __future__ import annotations

from multiprocessing.connection import Connection

from drone.runs.job import Job


def main(connection: Connection, job: Job) -> None:
    """Run one order in this process, and end the process."""
    # Imported here: in the fork server it is loaded already, and in the worker it shall never be.
    from drone.runs import process

    process.main(connection, job)


def probe(connection: Connection, _job: None) -> None:
    """Say over the pipe whether runs that are forked now start warm: nothing, or what is wrong."""
    from drone.runs import process

    process.probe(connection)
