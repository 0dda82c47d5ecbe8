"""Generates the manual pages of `fleet` and `drone` in docs/man: `python -m tests.support.man_pages`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from control_plane.cli.main import app as fleet
from drone.cli.main import app as drone
from shared.terminal.own_commands import EXIT_CODES
from tests.support.command_tree import Node, invoke, walk
from tests.support.documents import ROOT

DIRECTORY = ROOT / "docs" / "man"
PROGRAMS = {"fleet": fleet, "drone": drone}
_COLUMNS = re.compile(r"^  (\S+)  +(.+)$", re.MULTILINE)


def page(program: str) -> str:
    """The manual page of a program, in the macros of man(7): each command with all of its options."""
    top, *nodes = walk(PROGRAMS[program])
    parts = [
        f".\\\" Made by `python -m tests.support.man_pages`; a test fails where it is out of date.\n"
        f'.TH {program.upper()} 1 "" Dronefleet "User Commands"\n',
        f".SH NAME\n{program} \\- {_text(_first_sentence(top.command.help))}\n",
        f".SH SYNOPSIS\n.B {program}\n.RI [ OPTION \" ...] \" COMMAND \" \" [ ARGUMENT \" ...]\"\n",
        f".SH DESCRIPTION\n{_text(top.command.help)}\n",
        ".SH OPTIONS\n", *_parameters(top, program),
        ".SH COMMANDS\n", *(part for node in nodes if not node.command.hidden for part in _command(node, program)),
        ".SH ENVIRONMENT\n", *_listed(invoke(program, "help", "environment").stdout),
        ".SH \"EXIT STATUS\"\n", *_listed(EXIT_CODES),
        f".SH \"SEE ALSO\"\n.BR {'drone' if program == 'fleet' else 'fleet'} (1)\n",
    ]  # fmt: skip
    return "".join(parts)


def _command(node: Node, program: str) -> Iterator[str]:
    """The section of one command or group: how it is written, what it does, its options and examples."""
    context = _context(node, program)
    usage = " ".join((context.command_path, *node.command.collect_usage_pieces(context)))
    yield f".SS {_quoted(f'{program} {node.name}')}\n{_text(_paragraphs(node.command.help))}\n"
    if node.is_group:
        return
    yield f".PP\n.B {_text(usage)}\n"
    yield from _parameters(node, program)
    if node.command.epilog:
        examples = [line.strip() for line in node.command.epilog.splitlines()[2:]]
        yield ".PP\nExamples:\n.PP\n.nf\n" + "".join(f"{_text(line)}\n" for line in examples) + ".fi\n"


def _parameters(node: Node, program: str) -> Iterator[str]:
    context = _context(node, program)
    records = [each.get_help_record(context) for each in node.command.get_params(context)]
    for written, meaning in filter(None, records):
        # Once, at the top.
        if node.words and written.endswith("--help"):
            continue
        yield f".TP\n.B {_text(written)}\n{_text(meaning)}\n"


def _context(node: Node, program: str) -> Any:
    name = f"{program} {' '.join(node.words)}".strip()
    return node.command.context_class(node.command, info_name=name, **node.command.context_settings)


def _listed(text: str) -> Iterator[str]:
    for name, meaning in _COLUMNS.findall(text):
        yield f".TP\n.B {_text(name)}\n{_text(meaning)}\n"


def _first_sentence(text: str) -> str:
    return text.partition(". ")[0].rstrip(".")


def _paragraphs(text: str | None) -> str:
    return re.sub(r"\n\n+", "\n.PP\n", (text or "").strip())


def _quoted(text: str) -> str:
    return f'"{_text(text)}"'


def _text(text: str) -> str:
    """Text as roff: no character of it is a request or an escape, and all are ASCII."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    escaped = re.sub(r"(?m)^(?!\.PP$)(?=[.'])", r"\\&", escaped)
    return "".join(each if ord(each) < 128 else f"\\[u{ord(each):04X}]" for each in escaped)


def main() -> None:
    """Write all pages anew."""
    DIRECTORY.mkdir(exist_ok=True)
    for program in PROGRAMS:
        path_of(program).write_text(page(program), encoding="ascii")


def path_of(program: str) -> Path:
    return DIRECTORY / f"{program}.1"


if __name__ == "__main__":
    main()
