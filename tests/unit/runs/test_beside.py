"""Work beside the loop records its events in their place, and its errors are raised where it is awaited."""

from __future__ import annotations

import threading

import pytest

from drone.agent.in_memory import KeptEvents
from drone.runs.beside import Beside, InOrder
from shared.events import CommentStep


def test_an_event_of_the_loop_is_recorded_after_those_of_the_work_which_waits_for_nobody() -> None:
    kept, work, may_end = KeptEvents(), Beside(), threading.Event()
    recorder = InOrder(kept, work)

    def slow() -> None:
        assert may_end.wait(60)
        recorder.record(CommentStep(text="work"))

    work.start(slow)
    loop = threading.Thread(target=recorder.record, args=(CommentStep(text="loop"),))
    loop.start()
    recorder.delta("text", "Hello")  # nor does live text wait
    assert kept.bodies == []
    may_end.set()
    loop.join(60)
    assert [body.text for body in kept.bodies if isinstance(body, CommentStep)] == ["work", "loop"]


def test_an_error_of_the_work_is_raised_once_where_it_is_awaited() -> None:
    work = Beside()
    work.start(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        work.settle()
    work.settle()
