"""`fleet follow` in a terminal, joined at any moment: everybody reads the same in the end."""

from __future__ import annotations

import difflib
import random
import threading
import time
from collections.abc import Iterator

import pytest

from control_plane.cli.order_follow import follow_as_text
from shared.events import AssistantStep, ReasoningStep, ToolCallStep, ToolResultStep
from tests.support.fleet import Api, PlayedRun
from tests.support.terminals import terminal

MESSAGES = 6
PIECE = 7
PAUSE_S = 0.02


def words(what: str, number: int) -> str:
    return "\n".join(f"{what} {number}, line {line}: the sum is wrong, so I look again." for line in range(3))


def play(run: PlayedRun) -> None:
    """A run that thinks, speaks and calls, with every text in small pieces before its step, as a drone sends them."""
    for number in range(MESSAGES):
        thinking, text = words("Thought", number), words("Message", number)
        offset = 0
        for kind, whole in (("thinking", thinking), ("text", text)):
            for start in range(0, len(whole), PIECE):
                piece = whole[start : start + PIECE]
                run.streams(piece, kind, offset=offset)
                offset += len(piece)
                time.sleep(PAUSE_S)
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


def followed(api: Api, order_id: str, after_s: float) -> list[str]:
    """What is on the screen in the end, without the lines about the order's state, for someone who joins then."""
    time.sleep(after_s)
    with terminal() as (screen, stream):
        follow_as_text(api.client, order_id, stream=stream)
    said = [line for line in screen.lines if line and not line.startswith("●")]
    return said[: next(n for n, line in enumerate(said) if line.startswith("✓ succeeded"))]


@pytest.mark.parametrize("moments", [8, pytest.param(50, marks=pytest.mark.long)])
def test_who_joins_at_any_moment_reads_the_same_as_who_was_there_from_the_beginning(
    api: Api, run: PlayedRun, moments: int
) -> None:
    seed = random.randrange(10_000)
    lasts = MESSAGES * 2 * len(words("Thought", 0)) / PIECE * PAUSE_S
    chance = random.Random(seed)
    delays = [0.0, *(chance.uniform(0, lasts) for _ in range(moments))]
    screens: dict[float, list[str]] = {}

    def join(after_s: float) -> None:
        screens[after_s] = followed(api, run.order_id, after_s)

    threads = [threading.Thread(target=join, args=(each,)) for each in delays]
    for thread in threads:
        thread.start()
    play(run)
    for thread in threads:
        thread.join(timeout=60)
    whole = list(expected())
    for delay in delays:
        lost_and_found = [line for line in difflib.ndiff(whole, screens.get(delay, [])) if line[0] in "+-"]
        assert lost_and_found == [], f"joined after {delay:.3f} s, seed {seed}"
