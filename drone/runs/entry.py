"""The entry point of a run process: the only code of a run that the worker itself has to import.

As a program, it reads its job from the descriptor that it is given the number of.
"""

from __future__ import annotations

import sys
from multiprocessing.connection import Connection

from drone.runs.job import Job


def main(connection: Connection, job: Job) -> None:
    """Run one order in this process, and end the process."""
    # Imported here: the fork server has loaded it already, and the worker must never load it.
    from drone.runs import process

    process.main(connection, job)


def probe(connection: Connection, _job: None) -> None:
    """Report over the pipe whether runs that are forked now start warm: empty, or the problem."""
    from drone.runs import process

    process.probe(connection)


if __name__ == "__main__":
    from_worker = Connection(int(sys.argv[1]))
    main(from_worker, from_worker.recv())
