"""Work beside the loop records its events in their place, and its errors are raised where it is awaited."""

from __future__ import annotations

import threading

import pytest

from drone.agent.in_memory import KeptEvents
from drone.runs.beside import Beside, InOrder
from shared.events import CommentStep


def test_an_event_of_the_loop_is_recorded_after_those_of_the_work() -> None:
    kept, work, may_end = KeptEvents(), Beside(), threading.Event()

    def slow() -> None:
        assert may_end.wait(60)
        kept.record(CommentStep(text="work"))

    work.start(slow)
    loop = threading.Thread(target=InOrder(kept, work).record, args=(CommentStep(text="loop"),))
    loop.start()
    assert kept.bodies == []
    may_end.set()
    loop.join(60)
    assert [body.text for body in kept.bodies if isinstance(body, CommentStep)] == ["work", "loop"]


def test_neither_the_work_itself_nor_live_text_waits_for_the_work() -> None:
    kept, work, may_end = KeptEvents(), Beside(), threading.Event()

    def slow() -> None:
        assert may_end.wait(60)
        InOrder(kept, work).record(CommentStep(text="work"))

    work.start(slow)
    InOrder(kept, work).delta("text", "Hello")
    assert not may_end.is_set()
    may_end.set()
    work.settle()
    assert len(kept.bodies) == 1


def test_an_error_of_the_work_is_raised_once_where_it_is_awaited() -> None:
    work = Beside()

    def broken() -> None:
        raise ZeroDivisionError("a bug")

    work.start(broken)
    with pytest.raises(ZeroDivisionError, match="a bug"):
        work.settle()
    work.settle()
