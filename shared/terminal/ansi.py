"""Output of commands, made safe for a terminal: colors stay, and nothing moves the cursor or changes settings.

Only output is treated like this. In any other text, overwriting would hide something: `shared.visible_text` marks it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from shared.visible_text import visible

_SEQUENCE = re.compile(
    r"\x1b\[([0-?]*)[ -/]*([@-~])"  # CSI: colors end in m, everything else moves the cursor or erases
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)"  # strings: titles, links, images
    r"|\x1b\[[0-?]*[ -/]*|\x1b[ -/]*[0-~]?",
    re.DOTALL,
)
_COLOR = re.compile(r"(\x1b\[[0-9;]*m)")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_EXTENDED = re.compile(r"(?<![0-9])[34]8;(?:5;[0-9]+|2;[0-9]+;[0-9]+;[0-9]+)")
"""One of 256 colors, or of all: its numbers mean nothing else."""
_RESET = "\x1b[0m"
_HIDING = {"5", "6", "8"}
"""Blinking and invisible text."""


def safe_lines(output: str) -> list[str]:
    """The lines as a terminal would show them at the end: overwritten text is gone, colors are whole in each line.

    The only escape sequences left are those of colors; `uncolored` removes them.
    """
    colors, lines = "", []
    for line in _SEQUENCE.sub(_kept, output).split("\n"):
        shown = colors + line.rstrip("\r").rpartition("\r")[2]
        colors = _colors_at_end(colors + line)
        shown = between_colors(shown, lambda text: visible(_CONTROL.sub("", text)))
        lines.append(shown + _RESET if _COLOR.search(shown) else shown)
    return lines


def uncolored(line: str) -> str:
    """A line of `safe_lines` without its colors."""
    return _COLOR.sub("", line)


def between_colors(text: str, made: Callable[[str], str]) -> str:
    """The text with its colors unchanged, and with what `made` makes of the text between them."""
    parts = _COLOR.split(text)
    parts[::2] = map(made, parts[::2])
    return "".join(parts)


def _kept(found: re.Match[str]) -> str:
    parameters, final = found[1], found[2]
    if final != "m" or _HIDING & _numbers(parameters or ""):
        return ""
    return f"\x1b[{parameters}m" if re.fullmatch("[0-9;]*", parameters) else ""


def _numbers(parameters: str) -> set[str]:
    return {each.lstrip("0") for each in _EXTENDED.sub("", parameters).split(";")}


def _colors_at_end(text: str) -> str:
    """The color sequences that are still in effect after this text."""
    sequences = _COLOR.findall(text)
    last_reset = max((n for n, each in enumerate(sequences) if each in {_RESET, "\x1b[m"}), default=-1)
    return "".join(sequences[last_reset + 1 :])
