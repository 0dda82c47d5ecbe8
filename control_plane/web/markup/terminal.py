"""The output of commands as HTML: colours become classes, everything else that a terminal would obey is gone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from markupsafe import Markup, escape

from shared.terminal.ansi import safe_lines

_SEQUENCE = re.compile(r"\x1b\[([0-9;]*)m")
_CUBE = (0, 95, 135, 175, 215, 255)


@dataclass(frozen=True)
class Look:
    """How text looks from one escape sequence to the next."""

    color: int | None = None
    """0 to 15."""
    bold: bool = False
    dim: bool = False
    italic: bool = False
    underlined: bool = False
    inverse: bool = False

    @property
    def classes(self) -> str:
        names = [f"t{self.color}"] if self.color is not None else []
        names += [f"t-{name}" for name in ("bold", "dim", "italic", "underlined", "inverse") if getattr(self, name)]
        return " ".join(names)


PLAIN = Look()


def terminal_lines(output: str, last: int | None = None) -> list[Markup]:
    """The lines of an output, or the `last` ones, as a terminal would show them at the end."""
    lines = output.removesuffix("\n").split("\n")
    # Line by line: a sequence that is never closed must not swallow what follows.
    return [terminal_line(line) for line in (lines[-last:] if last else lines)]


def terminal_line(line: str) -> Markup:
    """One line with its colours."""
    return Markup("").join(_spans(safe_lines(line)[0]))


def _spans(line: str) -> Iterator[Markup]:
    look = PLAIN
    for index, part in enumerate(_SEQUENCE.split(line)):
        if index % 2:
            look = _after(look, [int(number or 0) for number in part.split(";")])
        elif part:
            yield Markup('<span class="{}">{}</span>').format(look.classes, part) if look.classes else escape(part)


def _after(look: Look, numbers: Sequence[int]) -> Look:
    """The look after one sequence."""
    waiting = list(numbers)
    while waiting:
        number = waiting.pop(0)
        if number in {38, 48}:
            color = _extended(waiting)
            look = replace(look, color=color) if number == 38 and color is not None else look
        else:
            look = _simple(look, number)
    return look


def _simple(look: Look, number: int) -> Look:
    if number == 0:
        return PLAIN
    if 30 <= number <= 37 or 90 <= number <= 97:
        return replace(look, color=number - 30 if number < 40 else number - 82)
    change = _CHANGES.get(number)
    return replace(look, **change) if change else look


_CHANGES: dict[int, dict[str, Any]] = {
    1: {"bold": True},
    2: {"dim": True},
    3: {"italic": True},
    4: {"underlined": True},
    7: {"inverse": True},
    22: {"bold": False, "dim": False},
    23: {"italic": False},
    24: {"underlined": False},
    27: {"inverse": False},
    39: {"color": None},
}


def _extended(waiting: list[int]) -> int | None:
    """The nearest of the 16 colours for one of 256, or of all."""
    kind = waiting.pop(0) if waiting else 0
    if kind == 5 and waiting:
        number = waiting.pop(0)
        return number if number < 16 else _nearest(*_of_256(number))
    if kind == 2 and len(waiting) >= 3:
        red, green, blue = (waiting.pop(0) for _ in range(3))
        return _nearest(red, green, blue)
    return None


def _of_256(number: int) -> tuple[int, int, int]:
    if number >= 232:
        gray = 8 + (min(number, 255) - 232) * 10
        return gray, gray, gray
    number -= 16
    return _CUBE[number // 36], _CUBE[number // 6 % 6], _CUBE[number % 6]


def _nearest(red: int, green: int, blue: int) -> int:
    strongest = max(red, green, blue)
    if strongest < 60:
        return 0
    if max(red, green, blue) - min(red, green, blue) < 40:
        return 7
    bits = sum(bit for bit, part in ((1, red), (2, green), (4, blue)) if part > strongest * 0.6)
    return bits + (8 if strongest > 220 else 0)
