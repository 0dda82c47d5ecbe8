"""The fields of an operation's request as fields of a form."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Literal, get_args, get_origin

from pydantic import AwareDatetime, BaseModel
from pydantic.fields import FieldInfo

from control_plane.contract.declarations.operation import About, Operation, choices_of, fields_of, names_of, value_type
from control_plane.contract.validation.checks import shown
from control_plane.web.forms import texts
from shared.errors import Invalid

Shape = Literal["text", "long", "number", "switch", "choice", "lines", "pairs", "json", "secret", "hidden"]
"""`lines`: a list, one entry in each line; `pairs`: `key=value` in each line; `json`: anything else."""
LONG = frozenset({"prompt", "text", "instructions", "description", "comment", "reason"})
"""Texts of several lines."""


@dataclass(frozen=True)
class FormField:
    """One field of a form."""

    path: tuple[str, ...]
    """`("task", "title")` for a field of a nested request."""
    shape: Shape
    label: str
    hint: str
    unit: str
    absent: str
    """What no value means."""
    required: bool
    source: str
    """Where the possible values are listed: `projects:slug`."""
    choices: Sequence[str] = ()
    default: Any = None
    kind: Any = field(default=str, repr=False)
    """The type of the value."""
    removable: bool = False
    """An emptied field removes the value; else the empty text is the new value, which may be refused."""
    shown_first: bool = False
    """Shown at once although it may be left out."""
    may_be_empty: bool = False
    """No text is a value, though the field is required."""

    @property
    def name(self) -> str:
        return ".".join(self.path)

    def text_of(self, value: Any) -> str:
        """A value as the form shows it."""
        if value is None:
            return ""
        if self.shape == "lines":
            return "\n".join(map(str, value))
        if self.shape == "pairs":
            return "\n".join(
                f"{key}={each if isinstance(each, str) else json.dumps(each)}" for key, each in value.items()
            )
        if self.shape == "json":
            return json.dumps(value)
        if self.shape == "switch":
            return "true" if value else ""
        return f"{value:g}" if isinstance(value, float) else str(value)

    def value_of(self, text: str) -> Any:
        """The value of what was typed; None if nothing was. Raises Invalid."""
        typed = text if self.shape in {"long", "secret"} else text.strip()
        if not typed and self.shape != "switch":
            return "" if self.may_be_empty else {"lines": [], "pairs": {}}.get(self.shape) if self.removable else None
        if self.shape == "switch":
            return typed == "true"
        if self.shape == "lines":
            return [line.strip() for line in typed.splitlines() if line.strip()]
        if self.shape == "pairs":
            return _pairs(typed, self.kind)
        return _json(typed) if self.shape == "json" else typed.removeprefix("$") if self.shape == "number" else typed


def form_fields(operation: Operation) -> list[FormField]:
    """The fields of the operation's form, in the order of its request."""
    without = getattr(operation.command, "without", ())
    if operation.request is None:
        return []
    return [each for each in _fields(operation, operation.request, ()) if each.path[0] not in without]


def name_fields(operation: Operation) -> list[FormField]:
    """The names in the operation's path, for a form that asks for them: `set_budget` names its target."""
    return [_field(operation, (name,), info, about) for name, info, about in names_of(operation)]


def _fields(operation: Operation, model: type[BaseModel], prefix: tuple[str, ...]) -> Iterator[FormField]:
    for name, info, about in fields_of(model):
        kind = value_type(info.annotation)
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _fields(operation, kind, (*prefix, name))
        else:
            yield _field(operation, (*prefix, name), info, about)


def _field(operation: Operation, path: tuple[str, ...], info: FieldInfo, about: About) -> FormField:
    kind, name = value_type(info.annotation), path[-1]
    default = None if info.is_required() else info.get_default(call_default_factory=True)
    said = texts.wording(operation.name, ".".join(path))
    said = said if said != texts.Wording() else texts.wording(operation.name, name)
    creates = operation.status == HTTPStatus.CREATED and name in {"name", "slug"}
    choices = choices_of(info.annotation, about)
    return FormField(
        path=path,
        shape=_shape(name, kind, about, choices),
        label=said.label or ("Name" if creates else (about.label or name.replace("_", " ")).capitalize()),
        hint=said.hint or ("" if creates and not said.hint else about.help),
        unit=about.unit,
        absent=said.absent or about.absent,
        required=info.is_required(),
        source="" if creates else about.source,
        choices=choices,
        default=getattr(operation.command, "defaults", {}).get(name, default),
        kind=kind,
        removable=bool(about.none) or get_origin(kind) in {list, dict, tuple},
        shown_first=".".join(path) in texts.FIRST.get(operation.name, ()),
        may_be_empty=f"{operation.name}.{name}" in texts.MAY_BE_EMPTY,
    )


def _shape(name: str, kind: Any, about: About, choices: Sequence[str]) -> Shape:
    if name in texts.HIDDEN:
        return "hidden"
    if about.secret:
        return "secret"
    if choices and get_origin(kind) is not list:
        return "choice"
    simple: dict[Any, Shape] = {
        bool: "switch",
        int: "number",
        float: "number",
        str: "long" if name in LONG else "text",
        AwareDatetime: "text",
    }
    parts = get_args(kind)
    if parts and isinstance(parts[0], type) and issubclass(parts[0], BaseModel):
        return "json"
    containers: dict[Any, Shape] = {list: "lines", dict: "pairs", tuple: "lines"}
    return simple.get(kind) or containers.get(get_origin(kind)) or "json"


def _json(typed: str) -> Any:
    try:
        return json.loads(typed)
    except ValueError as error:
        raise Invalid("is not JSON", code="E-REQUEST") from error


def _pairs(typed: str, kind: Any) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    is_text = get_args(kind)[1:] == (str,)
    for line in filter(None, map(str.strip, typed.splitlines())):
        key, equals, text = (part.strip() for part in line.partition("="))
        if not equals or not key:
            raise Invalid(f"{shown(line)} is not of the form key=value", code="E-LABEL")
        if key in found:
            raise Invalid(f"{shown(key)} has two values", code="E-LABEL")
        found[key] = text if is_text else _parsed(text)
    return found


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
