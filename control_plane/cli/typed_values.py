"""Text that a person typed, as the values of a request."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, get_args, get_origin

from shared.errors import Invalid
from shared.terminal.command_line import parse_labels, parse_params, read_secret
from shared.terminal.text_file import argument_text, text_of

if TYPE_CHECKING:
    from control_plane.contract.declarations.operation import About


MAX_BYTES = 1_000_000
"""Of a file in a request: less than the API takes, as the request has other fields too."""


def value(text: Any, kind: Any, unit: str) -> Any:
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


def read(text: Any, about: About) -> Any:
    """A value as typed, or what it names: a file, or stdin for `-`."""
    if about.input == "file":
        return text_of(text, MAX_BYTES)
    if about.input == "stdin":
        return read_secret(text, about.label) if about.secret else argument_text(text)
    return text
