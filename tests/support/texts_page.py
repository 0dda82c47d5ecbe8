"""Generates the page of all texts that users read, to be read as a whole: `make texts`.

Help comes from the commands, errors from the code that raises them, and reasons from every kind of reason there is.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from control_plane.cli.main import app as fleet
from drone.cli.main import app as drone
from shared.events import ApprovalStep
from shared.reason_text import (
    asked_text,
    ended_text,
    loss_text,
    placed_text,
    resumption_text,
    returned_text,
    state_text,
    waits_text,
)
from shared.reasons import CancelAsked, DroneState, Ended, Placed, Resumption, Returned, RunLoss, Waits
from shared.wire import Wire
from tests.support.command_tree import Node, walk
from tests.support.documents import ROOT
from tests.support.documents import texts as sources

PAGE = ROOT / "docs" / "reference" / "texts.md"
HEAD = """# Texts

All help, errors and reasons on one page, so that they can be read from top to bottom. Written by
`make texts`, and looked at there when a wording changes. `{…}` stands for a value.
"""
_PARTS = ("why", "next")
_VALUE = "{…}"


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
    yield f"- `{' '.join([program, *node.words])}`: {_joined(node.command.help)}"
    yield from (f"  - `{_name(each)}`: {_joined(each.help)}" for each in explained(node))


def explained(node: Node) -> list[Any]:
    """What a command takes, as far as its help shows it."""
    return [each for each in node.command.params if each.name != "help" and not getattr(each, "hidden", False)]


def _joined(text: str | None) -> str:
    return " ".join((text or "").split())


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
    """The errors in the code, by their code: what, why and next."""
    found: dict[str, set[str]] = {}
    for code, texts in error_texts():
        words = " · ".join(text if part == "what" else f"{part}: {text}" for part, text in texts.items())
        found.setdefault(code, set()).add(words)
    return found


def error_texts() -> Iterator[tuple[str, dict[str, str]]]:
    """The code of each error that is raised, with the texts that it is given."""
    for tree in map(ast.parse, sources().values()):
        constants = dict(_constants(tree))
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call) and _makes_error(node)):
            given = {word.arg: word.value for word in call.keywords}
            code = given["code"]
            if isinstance(code, ast.Constant):
                parts = {"what": call.args[0], **{part: given[part] for part in _PARTS if part in given}}
                yield str(code.value), {part: _text(node, constants) for part, node in parts.items()}


def _makes_error(call: ast.Call) -> bool:
    """Is a class called with a text and a code? The facts about orders have codes, too, and no text before them."""
    is_class = ast.unparse(call.func).rpartition(".")[2][:1].isupper()
    return is_class and bool(call.args) and any(word.arg == "code" for word in call.keywords)


def _constants(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, _text(value, {})


def _text(node: ast.expr, constants: Mapping[str, str]) -> str:
    """A literal, with `{…}` for the values in it, or a constant of the module; `{…}` for other expressions."""
    match node:
        case ast.Name(id=name):
            return constants.get(name, _VALUE)
        case ast.Constant(value=str() as text):
            return " ".join(text.split())
        case ast.JoinedStr(values=parts):
            pieces = (str(part.value) if isinstance(part, ast.Constant) else _VALUE for part in parts)
            return " ".join("".join(pieces).split())
    return _VALUE


# --- reasons -------------------------------------------------------------------------------

_RENDERED: tuple[tuple[Any, Callable[[Any], str]], ...] = (
    (Waits, waits_text),
    (Returned, returned_text),
    (Placed, placed_text),
    (DroneState, state_text),
    (Resumption, resumption_text),
    (RunLoss, loss_text),
    (Ended, lambda ended: ended_text(ended, None)),
    (CancelAsked, asked_text),
)
_SAMPLES: dict[Any, Any] = {
    str: _VALUE,
    int: 3,
    float: 3.0,
    bool: False,
    datetime: datetime(2026, 11, 20, 12, 3, 7, tzinfo=UTC),
}
_ABOUT = ApprovalStep.model_fields["about"].annotation


def _reasons() -> Iterator[str]:
    yield "## Reasons of orders\n"
    yield from (f"- {text}" for text in dict.fromkeys(text for _, text in reasons()))
    yield ""


def reasons() -> Iterator[tuple[Wire, str]]:
    """Every kind of reason in each of its variants, with its sentence."""
    for union, render in _RENDERED:
        for kind in _members(union):
            yield from ((each, render(each)) for each in _variants(kind))


def _members(annotation: Any) -> tuple[Any, ...]:
    """The classes of a union, also of an annotated one."""
    if isinstance(annotation, type):
        return (annotation,)
    members = get_args(annotation)
    return _members(members[0]) if get_origin(members[0]) else members


def _variants(kind: type[Wire]) -> Iterator[Wire]:
    """A value of this kind, and one more for each other value that one of its fields can have."""
    kinds = {name: _ABOUT if name == "about" else info.annotation for name, info in kind.model_fields.items()}
    first = {name: _choices(annotation)[0] for name, annotation in kinds.items()}
    yield kind(**first)
    for name, annotation in kinds.items():
        yield from (kind(**{**first, name: choice}) for choice in _choices(annotation)[1:])


def _choices(annotation: Any) -> list[Any]:
    """The values that matter for a text; of a number or a text, one."""
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    if get_origin(annotation) is tuple:
        return [tuple(_choices(get_args(annotation)[0])[:1])]
    if annotation is bool:
        return [False, True]
    if annotation in _SAMPLES:
        return [_SAMPLES[annotation]]
    if isinstance(annotation, type) and issubclass(annotation, Wire):
        return list(_variants(annotation))[:1]
    members = [each for each in get_args(annotation) if each is not NoneType]
    return [None, *(choice for each in members for choice in _choices(each))]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
