"""The fields of a request as arguments and options of a command, and the typed text as values for the request."""

from __future__ import annotations

import os
from collections.abc import Iterator
from inspect import Parameter
from typing import Annotated, Any, get_args, get_origin

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from control_plane.cli.completion import Completer, choices, listed
from control_plane.contract.declarations.operation import (
    About,
    Command,
    Operation,
    choices_of,
    fields_of,
    names_of,
    value_type,
)
from shared.durations import in_units, parse_duration
from shared.errors import Invalid
from shared.terminal.command_line import parse_labels, parse_params, read_secret
from shared.terminal.text_file import argument_text, text_of

NUMBERS = {int: "<int>", float: "<float>"}
MAX_BYTES = 1_000_000
"""Of a file in a request: less than the API takes, as the request has other fields too."""


def parameters(operation: Operation, command: Command) -> Iterator[Parameter]:
    """A parameter for each path name and each field; numbers also arrive as text, and the request validates them."""
    for name, info, about in names_of(operation):
        yield _argument(name, info, about)
    changes = operation.method == "PATCH"
    for (*_, name), info, about in _flat(operation.request):
        if name in command.without:
            continue
        if name in command.arguments:
            yield _argument(name, info, about)
        elif about.secret and not about.input:
            yield from _secret(name, about)
        else:
            yield _option(name, info, about, command, changes=changes)
        if changes and about.none.startswith("--"):
            place = typer.Option(about.none, help=f"Reset to the default: {about.absent}.")
            yield parameter(f"no_{name}", Annotated[bool, place], False)


def values(operation: Operation, given: dict[str, Any]) -> dict[str, Any]:
    """The fields that were given, as the request takes them."""
    found: dict[str, Any] = {}
    for (*within, name), info, about in _flat(operation.request):
        for value in _given(operation, name, info, about, given):
            to = found
            for each in within:
                to = to.setdefault(each, {})
            to[name] = value
    return found


def _given(operation: Operation, name: str, info: FieldInfo, about: About, given: dict[str, Any]) -> Iterator[Any]:
    """The value of a field, or nothing."""
    value = given.get(name)
    if about.secret and not about.input:
        value = secret(about.label, given.get(f"{name}_env"), given.get(f"{name}_stdin", False))
    if operation.method == "PATCH" and about.none and value == about.none:
        yield None
    elif about.none and given.get(f"no_{name}"):
        yield _emptied(name, info, about, value)
    elif value not in (None, []) and (value is not False or is_switch(about)):
        yield of_kind(read(value, about, flag_of(name, about)), value_type(info.annotation), about.unit)


def _flat(model: Any, within: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], FieldInfo, About]]:
    """The fields of a request by their paths, and beside them those of a nested request, such as a schedule's task."""
    for name, info, about in fields_of(model) if model else ():
        kind = value_type(info.annotation)
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _flat(kind, (*within, name))
        else:
            yield (*within, name), info, about


def parameter(name: str, annotation: Any, default: Any) -> Parameter:
    """One parameter of the function behind a command."""
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def flag_of(name: str, about: About) -> str:
    """`--git-url`, or several names of one option: `--assign --assignee`."""
    return about.flag or f"--{name.replace('_', '-')}"


def is_switch(about: About) -> bool:
    """Whether false differs from not given: `--on/--off`."""
    return "/" in about.flag


def _argument(name: str, info: FieldInfo, about: About) -> Parameter:
    metavar = about.metavar or name.upper()
    text = "; ".join([about.help.rstrip("."), *_input(about)]) + "."
    place = typer.Argument(metavar=metavar, help=text, autocompletion=_completion(info, about))
    return parameter(name, Annotated[str, place], Parameter.empty)


def _option(name: str, info: FieldInfo, about: About, command: Command, *, changes: bool) -> Parameter:
    kind = value_type(info.annotation)
    place = typer.Option(
        *flag_of(name, about).split(),
        help=_help(info, about, command.defaults.get(name), changes=changes),
        metavar=None if kind is bool else _metavar(info, about),
        autocompletion=_completion(info, about),
    )
    if kind is bool and not is_switch(about):
        return parameter(name, Annotated[bool, place], False)
    shape: Any = bool | None if kind is bool else list[str] | None if _repeats(kind) else str | None
    return parameter(name, Annotated[shape, place], None)


def _secret(name: str, about: About) -> Iterator[Parameter]:
    """A secret is never typed where a process list or a shell history shows it."""
    flag, what = flag_of(name, about), about.label
    variable = typer.Option(f"{flag}-env", metavar="VAR", help=f"Read the {what} from this environment variable.")
    stdin = typer.Option(f"{flag}-stdin", help=f"Read the {what} from stdin.")
    yield parameter(f"{name}_env", Annotated[str | None, variable], None)
    yield parameter(f"{name}_stdin", Annotated[bool, stdin], False)


def _help(info: FieldInfo, about: About, default: Any, *, changes: bool) -> str:
    if default is None and not changes and not info.is_required():
        default = info.get_default(call_default_factory=True) or about.absent
        if about.input == "duration" and isinstance(default, int):
            default = in_units(default)
    parts = [
        about.help.rstrip("."),
        *_input(about),
        *(["repeats"] if _repeats(value_type(info.annotation)) else []),
        *([f"default: {default}"] if default else []),
        *([f"{about.none}: {about.absent}"] if changes and about.none and not about.none.startswith("--") else []),
    ]
    return "; ".join(parts) + "."


def _input(about: About) -> list[str]:
    return {"": [], "duration": ["also as 30m, 12h or 7d"]}.get(about.input, ["- reads stdin"])


def _metavar(info: FieldInfo, about: About) -> str | None:
    shape = NUMBERS.get(value_type(info.annotation))
    if about.input == "duration":
        return "DURATION"
    return about.metavar or "|".join(choices_of(info.annotation, about)) or about.unit or shape


def _repeats(kind: Any) -> bool:
    return get_origin(kind) in {list, dict, tuple}


def _emptied(name: str, info: FieldInfo, about: About, value: Any) -> Any:
    """An empty list or mapping. Raises Invalid if entries are given as well."""
    if value:
        both = f"{flag_of(name, about)} and {about.none} cannot be used together"
        raise Invalid(both, code="E-USAGE", next="leave one of them out")
    return get_origin(value_type(info.annotation))()


def _completion(info: FieldInfo, about: About) -> Completer | None:
    """The values that the shell offers: those of the type, or those in a list on the server."""
    if fixed := choices_of(info.annotation, about):
        return choices(fixed)
    return listed(about.source) if about.source else None


def of_kind(text: Any, kind: Any, unit: str) -> Any:
    """A mapping for `k=v` texts, an amount without its unit; any other value as typed."""
    if get_origin(kind) is dict:
        return parse_labels(text) if get_args(kind)[1] is str else parse_params(text)
    if kind is float and unit.startswith("USD"):
        return text.removeprefix("$").removesuffix(unit.removeprefix("USD"))
    return text


def secret(what: str, variable: str | None, from_stdin: bool) -> str | None:
    """A secret from one of its two sources. Raises Invalid if both are named, or the named one is empty."""
    if variable and from_stdin:
        raise Invalid(
            f"choose one source of the {what}", code="E-USAGE", why="a variable and stdin cannot be used together"
        )
    if from_stdin:
        return read_secret("-", what)
    if variable and not os.environ.get(variable):
        raise Invalid(f"the variable {variable} is not set", code="E-KEY-VARIABLE", next=f"export {variable}=…")
    return os.environ[variable] if variable else None


def read(text: Any, about: About, flag: str) -> Any:
    """A value as typed, or what it stands for: a file, stdin for `-`, or seconds for a duration such as `30m`.

    Raises Invalid for what is no duration, with `flag` in the example.
    """
    if about.input == "file":
        return text_of(text, MAX_BYTES)
    if about.input == "stdin":
        return read_secret(text, about.label) if about.secret else argument_text(text)
    # What ends with a digit is a number of seconds, which the request checks.
    if about.input == "duration" and not text.strip()[-1:].isdigit():
        return parse_duration(text, f"{flag} 1h")
    return text
