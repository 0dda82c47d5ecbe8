"""Generates the page of all texts that users read, to be read as a whole: `python -m tests.support.texts_page`.

Help comes from the commands, errors from the code that raises them, reasons from the tests of their wording.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from control_plane.cli.main import app as fleet
from drone.cli.main import app as drone
from tests.support.command_tree import Node, walk
from tests.support.documents import ROOT, modules
from tests.unit.orders import test_reason_text

PAGE = ROOT / "docs" / "reference" / "texts.md"
HEAD = """# Texts

All help, errors and reasons on one page, so that they can be read from top to bottom. Made by
`python -m tests.support.texts_page`; a test fails where it is out of date. `{…}` stands for a value.
"""
_PARTS = ("why", "next")


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *_help(), *_errors(), *_reasons()])


# --- help ----------------------------------------------------------------------------------


def _help() -> Iterator[str]:
    for name, app in (("fleet", fleet), ("drone", drone)):
        yield f"## Help of `{name}`\n"
        for node in walk(app):
            yield from _command(name, node)
        yield ""


def _command(program: str, node: Node) -> Iterator[str]:
    about = " ".join((node.command.help or "").split())
    yield f"- `{' '.join([program, *node.words])}`: {about}"
    for parameter in node.command.params:
        if (text := getattr(parameter, "help", None)) and parameter.name != "help" and not parameter.hidden:
            yield f"  - `{_name(parameter)}`: {' '.join(text.split())}"


def _name(parameter: Any) -> str:
    flags = [spelling for spelling in parameter.opts if spelling.startswith("-")]
    return flags[0] if flags else str(parameter.metavar or parameter.name).upper()


# --- errors --------------------------------------------------------------------------------


def _errors() -> Iterator[str]:
    yield "## Errors\n"
    for code, lines in sorted(_found().items()):
        yield f"- {code}"
        yield from (f"  - {line}" for line in sorted(lines))
    yield ""


def _found() -> dict[str, set[str]]:
    """The errors in the code, by their code: what, and why and next where they are literals or constants."""
    found: dict[str, set[str]] = {}
    for tree in modules().values():
        constants = dict(_constants(tree))
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            given = {word.arg: word.value for word in call.keywords}
            code = given.get("code")
            what = _text(call.args[0], constants) if call.args else None
            if isinstance(code, ast.Constant) and str(code.value).startswith("E-") and what:
                parts = [f"{part}: {text}" for part in _PARTS if (text := _text(given.get(part), constants))]
                found.setdefault(str(code.value), set()).add(" · ".join([what, *parts]))
    return found


def _constants(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, _text(value, {})


def _text(node: ast.expr | None, constants: Mapping[str, str]) -> str:
    """A literal, with `{…}` for the values in it, or a constant of the module; empty for other expressions."""
    match node:
        case ast.Name(id=name):
            return constants.get(name, "")
        case ast.Constant(value=str() as text):
            return " ".join(text.split())
        case ast.JoinedStr(values=parts):
            pieces = (str(part.value) if isinstance(part, ast.Constant) else "{…}" for part in parts)
            return " ".join("".join(pieces).split())
    return ""


# --- reasons -------------------------------------------------------------------------------


def _reasons() -> Iterator[str]:
    yield "## Reasons of orders\n"
    for test in vars(test_reason_text).values():
        for mark in getattr(test, "pytestmark", ()):
            if mark.name == "parametrize" and "text" in mark.args[0]:
                yield from (f"- {values[-1]}" for values in mark.args[1] if values[-1])
    yield ""


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
