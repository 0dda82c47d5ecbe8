"""Output of commands in a terminal: its colors stay, and nothing of it can act on the terminal."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from shared.terminal.ansi import safe_lines, uncolored

RED, RESET = "\x1b[31m", "\x1b[0m"


def test_what_a_command_printed_is_shown_as_a_terminal_would_at_the_end() -> None:
    cases: list[tuple[str, list[str]]] = [
        ("plain\ntext", ["plain", "text"]),
        ("10%\r50%\r100%\ndone", ["100%", "done"]),
        ("dos\r\nlines\r\n", ["dos", "lines", ""]),
        ("\x1b[2J\x1b[1;1Hcleared", ["cleared"]),
        ("\x1b]0;a title\x07here", ["here"]),
        ("\x1b]8;;https://evil.example\x1b\\link\x1b]8;;\x1b\\", ["link"]),
        ("\x1bPq#0;2;0;0;0\x1b\\image", ["image"]),
        ("\x1b[5mblinking\x1b[8m hidden", ["blinking hidden"]),
        ("bell\x07 back\x08space \x9b31mcsi", ["bell backspace 31mcsi"]),
        ("half \x1b[3", ["half "]),
        (f"{RED}FAILED{RESET} test", [f"{RED}FAILED{RESET} test{RESET}"]),
        (f"{RED}one\ntwo{RESET}\nthree", [f"{RED}one{RESET}", f"{RED}two{RESET}{RESET}", "three"]),
        ("\x1b[38;5;196mred", ["\x1b[38;5;196mred\x1b[0m"]),
        ("\x1b[5;38;5;196mblinks", ["blinks"]),
    ]
    wrong = [(output, got) for output, shown in cases if (got := safe_lines(output)) != shown]
    assert wrong == []


@given(
    st.lists(st.sampled_from(["\x1b", "[", "]", "2J", "31m", "0m", ";", "?25l", "P", "\\", "\x07", "\r", "\n", "a"]))
)
def test_no_sequence_but_those_of_colors_is_ever_left(parts: list[str]) -> None:
    for line in safe_lines("".join(parts)):
        left = re.sub(r"\x1b\[[0-9;]*m", "", line)
        assert all(c == "\t" or c.isprintable() for c in left)
        assert uncolored(line) == left
