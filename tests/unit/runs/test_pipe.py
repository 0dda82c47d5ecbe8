"""The pipe between a worker and its run: what each says arrives whole and in order, and neither waits for the other."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

import pytest

from drone.runs.pipe import Doing, EndRun, FromRun, InFlight, LeaseExtended, PipeLink, Progress, ToRun, WorkerLink
from shared.control import Compact, Decide
from tests.support import wait_until
from tests.support.runs import said

LONG = "x" * 60_000


@pytest.fixture
def ends() -> Iterator[tuple[Connection, Connection]]:
    worker, run = Pipe()
    before = set(threading.enumerate())
    yield worker, run
    worker.close()
    # A thread that is about to read would otherwise read from whatever gets the same descriptor next.
    for thread in set(threading.enumerate()) - before:
        if thread.name == "receive":
            thread.join(60)
    run.close()


def heard_of(ends: tuple[Connection, Connection], *what: tuple[str, tuple[Any, ...]]) -> list[FromRun]:
    """What arrives of these words, once the run's link is closed."""
    connection, run = ends
    link, worker = PipeLink(run, lambda _: None), WorkerLink(connection)
    for name, arguments in what:
        getattr(link, name)(*arguments)
    link.start()
    link.close()
    heard = list(worker.receive(0))
    worker.close()
    return heard


def test_text_in_flight_is_joined_by_kind_and_comes_before_what_is_said_of_it(
    ends: tuple[Connection, Connection],
) -> None:
    words = (
        ("progress", ()),
        ("progress", ()),
        ("doing", ("waiting", "person")),
        ("delta", ("text", "a", 1)),
        ("delta", ("text", "b", 1)),
        ("delta", ("text", "c", 2)),
    )

    assert sorted(heard_of(ends, *words), key=lambda word: isinstance(word, Progress)) == [
        InFlight(of="text", text="ab", after_seq=1),
        InFlight(of="text", text="c", after_seq=2),
        Doing(text="waiting", waits_for="person"),
        Progress(),
    ]


def test_a_run_whose_worker_is_gone_is_told_so(ends: tuple[Connection, Connection]) -> None:
    gone: list[bool] = []
    PipeLink(ends[1], lambda _: None, lambda: gone.append(True)).start()

    ends[0].close()

    wait_until(lambda: gone)


def test_every_message_arrives_and_a_run_that_does_not_read_holds_nobody_up(
    ends: tuple[Connection, Connection],
) -> None:
    worker, told = WorkerLink(ends[0]), []
    messages: list[ToRun] = [
        LeaseExtended(until=1.5),
        EndRun(wish="stale", reason="another run holds the order"),
        said("faster", interrupt=True),
        Decide(run_id="run000000000", call_id="c1", approved=False, comment="no"),
        Compact(run_id="run000000000", instructions="keep the names"),
        # Far more than a pipe holds: whoever wrote it straight into the pipe would wait here for ever.
        *(said(f"{number} {LONG}") for number in range(40)),
    ]
    for message in messages:
        worker.send(message)
    PipeLink(ends[1], told.append).start()
    wait_until(lambda: len(told) == len(messages))
    worker.close()
    assert told == messages


def test_sending_ends_when_the_run_is_gone(ends: tuple[Connection, Connection]) -> None:
    worker = WorkerLink(ends[0])
    worker.send(said(LONG * 20))
    ends[1].close()
    worker.close()
    wait_until(lambda: not worker._thread.is_alive())
