"""A run on the screen: what stays is the same for everybody, whenever they joined, and nothing else is left over."""

from __future__ import annotations

import io
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from control_plane.cli.order_follow import OrderEvents, StatusLine
from control_plane.cli.step_lines import StepLines
from shared.terminal.run_screen import RunScreen
from tests.support import wait_until
from tests.support.terminals import Terminal, terminal

MESSAGE = "I look at the tests first.\n\nThen I change calc.py,\nand run them again."
THINKING = "The sum is wrong.\nWhy?"
STAYS = ["│ The sum is wrong.", "│ Why?", "I look at the tests first.", "Then I change calc.py,", "and run them again."]


def pieces(size: int) -> list[tuple[str, str, int]]:
    """The two texts as a drone sends them, in pieces of this size, each with its offset in the message."""
    found, offset = [], 0
    for kind, text in (("thinking", THINKING), ("text", MESSAGE)):
        for start in range(0, len(text), size):
            piece = text[start : start + size]
            found.append((kind, piece, offset))
            offset += len(piece)
    return found


def shown(joined_at: int, size: int, *, lost: frozenset[int] = frozenset(), columns: int = 80) -> list[str]:
    """The screen of someone who joined before this piece and missed the `lost` ones, after the whole message."""
    with terminal(columns) as (screen, stream), RunScreen(stream) as run:
        for number, (kind, text, offset) in enumerate(pieces(size)):
            if number >= joined_at and number not in lost:
                run.piece(kind, text, offset)  # type: ignore[arg-type]
        run.message("thinking", THINKING)
        run.message("text", MESSAGE)
    return [line for line in screen.lines if line]


@given(st.integers(0, 40), st.integers(1, 20), st.frozensets(st.integers(0, 30)))
def test_who_joins_in_the_middle_of_a_message_or_loses_pieces_reads_the_same_as_who_was_there(
    joined_at: int, size: int, lost: frozenset[int]
) -> None:
    assert shown(joined_at, size, lost=lost) == STAYS


def draw(run: RunScreen, screen: Terminal, text: str) -> None:
    """Redraw what is in progress, and wait until this text of it is on the screen."""
    run.redraw()
    wait_until(lambda: text in screen.text)


def test_a_message_that_was_broken_off_stays_as_far_as_it_came() -> None:
    with terminal() as (screen, stream), RunScreen(stream) as run:
        run.piece("text", "I be", 0)
        run.cut()
        run.lines([("! model call failed; retrying", "yellow")])
        run.piece("text", "I begin", 0)
        run.message("text", "I begin")
    assert screen.lines == ["I be", "! model call failed; retrying", "I begin"]


def test_what_breaks_a_message_off_stands_between_it_and_the_next_one() -> None:
    said = {"kind": "user", "text": "Stop.", "source": "steer"}
    asked = {"kind": "approval", "call_id": "time-1", "tool": "run", "why": "The time limit is reached"}
    for step, line in ((said, "» Stop."), (asked, "time limit")):
        with terminal() as (screen, stream), RunScreen(stream) as run:
            events = OrderEvents(run, StatusLine(), StepLines())
            events.show("delta", {"kind": "text", "text": "I be", "offset": 0})
            events.show("step", step)
            events.show("delta", {"kind": "text", "text": "I begin", "offset": 0})
            events.show("step", {"kind": "assistant", "text": "I begin"})
        (between,) = (each for each in screen.lines if line in each)
        assert screen.lines == ["I be", between, "I begin"]


def test_the_end_of_the_output_of_a_call_moves_and_leaves_nothing_behind() -> None:
    with terminal() as (screen, stream), RunScreen(stream, lambda: "running · 0:07") as run:
        run.running("shell: make test")
        run.output("".join(f"line {number}\n" for number in range(100)))
        draw(run, screen, "running · 0:07")
        seen = screen.text
        run.running("")
        run.lines([("✓ shell: make test (7.0 s)", "green")])
    assert ("● shell: make test" in seen, "line 94" in seen, "95 earlier lines" in seen) == (True, False, True)
    assert "line 99" in seen
    assert screen.lines == ["✓ shell: make test (7.0 s)"]


@pytest.mark.parametrize("columns", [20, 200])
def test_a_long_line_is_whole_in_any_width(columns: int) -> None:
    words = " ".join(f"word{number}" for number in range(60))
    with terminal(columns) as (screen, stream), RunScreen(stream, lambda: "status " * 40) as run:
        run.piece("text", words[:200], 0)
        draw(run, screen, "word25")
        run.message("text", words)
    assert "".join(screen.lines).replace(" ", "") == words.replace(" ", "")


def test_a_window_that_is_resized_loses_no_line() -> None:
    status = "running"
    with terminal(100) as (screen, stream), RunScreen(stream, lambda: status) as run:
        for number in range(30):
            run.lines([(f"line {number}", None)])
            if number in {10, 20}:
                status = f"before {number}"
                draw(run, screen, status)
                screen.resize(60 if number == 10 else 120, 24)
                status = f"after {number}"
                draw(run, screen, status)
    assert [line for line in screen.lines if line.startswith("line")] == [f"line {number}" for number in range(30)]


def test_drawing_and_printing_at_the_same_time_never_wait_for_each_other() -> None:
    with terminal() as (screen, stream), RunScreen(stream, lambda: "running") as run:
        redrawing = threading.Thread(target=lambda: [run.redraw() for _ in range(300)])
        redrawing.start()
        for number in range(300):
            run.piece("text", f"line {number}\n", None)
        redrawing.join(timeout=60)
        assert not redrawing.is_alive()
    assert screen.lines == [f"line {number}" for number in range(300)]


def test_a_pipe_gets_what_stays_and_nothing_else() -> None:
    pipe = io.StringIO()
    with RunScreen(pipe, lambda: "running") as run:
        for kind, text, offset in pieces(5):
            run.piece(kind, text, offset)  # type: ignore[arg-type]
        run.output("moving")
        run.running("shell: ls")
        run.message("thinking", THINKING)
        run.message("text", MESSAGE)
    assert [line for line in pipe.getvalue().splitlines() if line] == STAYS


def test_control_characters_of_a_model_never_reach_the_terminal() -> None:
    with terminal() as (screen, stream), RunScreen(stream) as run:
        run.lines([("before", None)])
        run.piece("text", "\x1b[2J\x1b]0;title\x07clean", 0)
        run.message("text", "\x1b[2J\x1b]0;title\x07clean")
        run.running("shell: \x1b[2Jls")
        run.output("\x1b[2J\x1b[1;1Hmoved")
        draw(run, screen, "moved")
    assert screen.lines[0] == "before"
    assert b"\x1b[2J" not in screen.raw
    assert b"title\x07" not in screen.raw
