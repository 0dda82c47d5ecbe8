"""`fleet follow` in a terminal, joined at any moment: everybody reads the same in the end."""

from __future__ import annotations

import difflib
import random
import threading
from collections.abc import Callable, Iterator
from itertools import count
from math import ceil

import pytest

from control_plane.cli.order_follow import follow_as_text
from shared.events import AssistantStep, ReasoningStep, ToolCallStep, ToolResultStep
from tests.support import wait_until
from tests.support.fleet import Api, PlayedRun
from tests.support.terminals import terminal

MESSAGES = 6
PIECE = 7


def words(what: str, number: int) -> str:
    return "\n".join(f"{what} {number}, line {line}: the sum is wrong, so I look again." for line in range(3))


def play(run: PlayedRun, before: Callable[[int], None]) -> None:
    """A run that thinks, speaks and calls, with every text in small pieces before its step, as a drone sends them.

    `before` is called with the number of each piece before it is sent.
    """
    pieces = count()
    for number in range(MESSAGES):
        thinking, text = words("Thought", number), words("Message", number)
        offset = 0
        for kind, whole in (("thinking", thinking), ("text", text)):
            for start in range(0, len(whole), PIECE):
                before(next(pieces))
                piece = whole[start : start + PIECE]
                run.streams(piece, kind, offset=offset)
                offset += len(piece)
        run.step(ReasoningStep(text=thinking))
        run.step(AssistantStep(text=text))
        run.step(ToolCallStep(call_id=f"c{number}", tool="shell", arguments={"command": f"make test{number}"}))
        run.streams("collecting\n", "output")
        run.step(ToolResultStep(call_id=f"c{number}", output="1 failed", return_code=number % 2, duration_ms=10))
    run.ends()


def expected() -> Iterator[str]:
    for number in range(MESSAGES):
        yield from (f"│ {line}" for line in words("Thought", number).splitlines())
        yield from words("Message", number).splitlines()
        if number % 2:
            yield from (f"✗ shell: make test{number} (exit 1, 10 ms)", "  1 failed")
        else:
            yield f"✓ shell: make test{number} (10 ms)"


class Viewer:
    """Somebody who follows the order in a terminal from now on."""

    def __init__(self, api: Api, order_id: str, joined: int) -> None:
        self.joined = joined
        """The number of the first piece that was sent after this."""
        self.text: Callable[[], str] = str
        """What the screen shows now."""
        self.lines: list[str] = []
        """What was on the screen in the end, without the lines about the order's state."""
        self.thread = threading.Thread(target=self._follow, args=(api, order_id))
        self.thread.start()

    def _follow(self, api: Api, order_id: str) -> None:
        with terminal() as (screen, stream):
            self.text = lambda: screen.text
            follow_as_text(api.client, order_id, stream=stream)
        said = [line for line in screen.lines if line and not line.startswith("●")]
        self.lines = said[: next(n for n, line in enumerate(said) if line.startswith("✓ succeeded"))]


@pytest.mark.parametrize("moments", [8, pytest.param(50, marks=pytest.mark.long)])
def test_who_joins_at_any_moment_reads_the_same_as_who_was_there_from_the_beginning(
    api: Api, run: PlayedRun, moments: int
) -> None:
    seed = random.randrange(10_000)
    chance = random.Random(seed)
    lasts = MESSAGES * sum(ceil(len(words(what, 0)) / PIECE) for what in ("Thought", "Message"))
    joins = [0, *sorted(chance.sample(range(1, lasts), moments))]
    viewers: list[Viewer] = []

    def join(number: int) -> None:
        if number in joins:
            viewer = Viewer(api, run.order_id, number)
            viewers.append(viewer)
            # Half of them are there before the next piece, and half come while pieces are on their way.
            if len(viewers) % 2:
                wait_until(lambda: "●" in viewer.text())

    play(run, join)
    for viewer in viewers:
        viewer.thread.join(60)
    whole = list(expected())
    assert [viewer.joined for viewer in viewers] == joins
    for viewer in viewers:
        lost_and_found = [line for line in difflib.ndiff(whole, viewer.lines) if line[0] in "+-"]
        assert lost_and_found == [], f"joined before piece {viewer.joined}, seed {seed}"
