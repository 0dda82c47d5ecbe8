"""Commands that templates offer to copy."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import control_plane.web
from tests.support.documents import parse

TEMPLATES = Path(control_plane.web.__file__).parent / "templates"
COMMAND = re.compile(r'"(?:fleet|drone) [^"]*"(?:\s*~\s*(?:[\w.]+|"[^"]*"))*')
PIECE = re.compile(r'"([^"]*)"|([\w.]+)')
ID = "0123456789ab"


def commands() -> Iterator[str]:
    """Each command, with an id for each value."""
    for template in sorted(TEMPLATES.rglob("*.html")):
        for found in COMMAND.findall(template.read_text(encoding="utf-8")):
            yield "".join(ID if name else text for text, name in PIECE.findall(found))


def test_each_is_understood_by_the_command_line() -> None:
    wrong = {}
    for command in commands():
        for part in command.split(" | "):
            words = shlex.split(part)
            if words[0] in {"fleet", "drone"}:
                try:
                    parse(words)
                except Exception as error:  # noqa: BLE001 - each wrong word has an error of its own
                    wrong[part] = repr(error)
    assert wrong == {}
    assert len(set(commands())) > 20
