"""The fields of a request as arguments and options of a command, and what was typed as values for the request."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from inspect import Parameter
from typing import Annotated, Any, get_args, get_origin

import typer
from pydantic.fields import FieldInfo

from control_plane.declarations.operation import (
    About,
    Command,
    Operation,
    choices_of,
    fields_of,
    names_of,
    value_type,
)
from shared.errors import FleetError, Invalid
from shared.terminal.command_line import parse_labels, read_secret

NUMBERS = {int: "<int>", float: "<float>"}


def parameters(operation: Operation, command: Command) -> Iterator[Parameter]:
    """A parameter for each name of the path and each field; numbers too arrive as text, and the request checks them."""
    for name, info, about in names_of(operation):
        yield _argument(name, info, about)
    for name, info, about in fields_of(operation.request) if operation.request else ():
        if name in command.arguments:
            yield _argument(name, info, about)
        elif about.secret:
            yield from _secret(name, about)
        else:
            yield _option(name, info, about, changes=operation.method == "PATCH")


def values(operation: Operation, given: dict[str, Any]) -> dict[str, Any]:
    """The fields that were given, as the request takes them."""
    found = {}
    for name, info, about in fields_of(operation.request) if operation.request else ():
        value = _read_secret(name, about, given) if about.secret else given[name]
        if value is not None and value is not False and value != []:
            found[name] = _value(value, value_type(info.annotation), about)
    return found


def flag_of(name: str, about: About) -> str:
    """`--git-url`"""
    return about.flag or f"--{name.replace('_', '-')}"


def _argument(name: str, info: FieldInfo, about: About) -> Parameter:
    metavar = about.metavar or name.upper()
    place = typer.Argument(metavar=metavar, help=about.help, autocompletion=_completion(info, about))
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=Annotated[str, place])


def _option(name: str, info: FieldInfo, about: About, *, changes: bool) -> Parameter:
    kind = value_type(info.annotation)
    place = typer.Option(
        flag_of(name, about),
        help=_help(info, about, changes=changes),
        metavar=None if kind is bool else _metavar(info, about),
        autocompletion=_completion(info, about),
    )
    shape: Any = bool if kind is bool else list[str] | None if _repeats(kind) else str | None
    default = False if kind is bool else None
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=Annotated[shape, place], default=default)


def _secret(name: str, about: About) -> Iterator[Parameter]:
    """A secret is never typed where a list of processes or a history shows it."""
    flag, what = flag_of(name, about), about.label
    variable = typer.Option(f"{flag}-env", metavar="VAR", help=f"Read the {what} from this variable here.")
    stdin = typer.Option(f"{flag}-stdin", help=f"Read the {what} from stdin.")
    keyword = Parameter.KEYWORD_ONLY
    yield Parameter(f"{name}_env", keyword, annotation=Annotated[str | None, variable], default=None)
    yield Parameter(f"{name}_stdin", keyword, annotation=Annotated[bool, stdin], default=False)


def _help(info: FieldInfo, about: About, *, changes: bool) -> str:
    default = None if changes or info.is_required() else info.get_default(call_default_factory=True) or about.absent
    parts = [
        about.help.rstrip("."),
        *(["repeats"] if _repeats(value_type(info.annotation)) else []),
        *([f"default: {default}"] if default else []),
    ]
    return "; ".join(parts) + "."


def _metavar(info: FieldInfo, about: About) -> str | None:
    shape = NUMBERS.get(value_type(info.annotation))
    return about.metavar or "|".join(choices_of(info.annotation)) or about.unit or shape


def _repeats(kind: Any) -> bool:
    return get_origin(kind) in {list, dict, tuple}


def _value(value: Any, kind: Any, about: About) -> Any:
    if get_origin(kind) is dict:
        return parse_labels(value) if get_args(kind)[1] is str else pairs(value)
    if kind is float and "/" in about.unit:
        return value.removeprefix("$").removesuffix(f"/{about.unit.partition('/')[2]}")
    return value


def pairs(texts: list[str]) -> dict[str, Any]:
    """`temperature=0.2` texts as a mapping; a value that is JSON is taken as such, any other as text."""
    found: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise Invalid(f"{text[:80]!r} is not a parameter", code="E-PARAM", next="--param temperature=0.2")
        try:
            found[key.strip()] = json.loads(value)
        except ValueError:
            found[key.strip()] = value
    return found


def _read_secret(name: str, about: About, given: dict[str, Any]) -> str | None:
    """Raises Invalid where both sources are named, or the one named is empty."""
    variable, stdin = given[f"{name}_env"], given[f"{name}_stdin"]
    if variable and stdin:
        raise Invalid(f"name one source of the {about.label}", code="E-USAGE", next=f"{flag_of(name, about)}-stdin")
    if stdin:
        return read_secret("-", about.label)
    if variable and not os.environ.get(variable):
        raise Invalid(f"the variable {variable} is not set here", code="E-KEY-VARIABLE", next=f"export {variable}=…")
    return os.environ[variable] if variable else None


def _completion(info: FieldInfo, about: About) -> Callable[[str], list[str]] | None:
    """The values that the shell offers: those of the type, or those that a list on the server has."""
    choices = choices_of(info.annotation)
    if not choices and not about.source:
        return None

    def complete(incomplete: str) -> list[str]:
        return [each for each in choices or _listed(about.source) if each.startswith(incomplete)]

    return complete


def _listed(source: str) -> list[str]:
    """What the list of a noun has; nothing where it cannot be asked, as a shell that completes shows no errors."""
    from importlib import import_module

    from control_plane.cli.connection import client

    noun, _, field = source.partition(":")
    try:
        listed = client().call(import_module(f"control_plane.declarations.{noun}").LIST)
    except FleetError:
        return []
    return [str(each[field]) for each in listed]
