"""What a run says to its worker through the pipe."""

from __future__ import annotations

import json
from collections.abc import Iterator
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

import pytest

from drone.runs.pipe import PipeLink


@pytest.fixture
def ends() -> Iterator[tuple[Connection, Connection]]:
    worker, run = Pipe()
    yield worker, run
    worker.close()
    run.close()


def said(ends: tuple[Connection, Connection], *what: tuple[str, tuple[Any, ...]]) -> list[dict[str, Any]]:
    """What arrives of these words, once the link is closed."""
    worker, run = ends
    link = PipeLink(run, lambda _: None)
    for name, arguments in what:
        getattr(link, name)(*arguments)
    link.start()
    link.close()
    heard = []
    while worker.poll(0):
        heard.append(json.loads(worker.recv_bytes()))
    return heard


def test_what_the_run_does_comes_with_what_it_waits_for(ends: tuple[Connection, Connection]) -> None:
    assert said(ends, ("doing", ("waiting", "person"))) == [{"kind": "doing", "text": "waiting", "waits_for": "person"}]


def test_a_run_that_does_something_waits_for_nobody(ends: tuple[Connection, Connection]) -> None:
    assert said(ends, ("doing", ("working",)))[0]["waits_for"] == ""


def test_signs_of_progress_between_two_looks_are_one(ends: tuple[Connection, Connection]) -> None:
    assert said(ends, ("progress", ()), ("progress", ())) == [{"kind": "progress"}]
