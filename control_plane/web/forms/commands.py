"""The command that does the same as an action of a page, for "Copy as command"."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from control_plane.contract.declarations.operation import (
    About,
    Command,
    NoDoor,
    Operation,
    about_of,
    every_operation,
    value_type,
)

Options = Callable[[Any], Sequence[str]]


@dataclass(frozen=True)
class HandWritten:
    """What a hand-written command does not take as its declaration says."""

    words: str = ""
    """Empty: the name of the command."""
    positional: tuple[str, ...] = ()
    """Fields that it takes by position, after the names in the path."""
    flags: Mapping[str, str | Options] = field(default_factory=dict)
    """Options that are not called as their field, or not written as its value."""
    always: str = ""
    """What follows every such command."""
    whole: bool = False
    """It reads the whole request as a document, which is piped to it."""
    piped: str = ""
    """A field that it reads as a document, which is piped to it."""


def command_of(
    operation: Operation, names: Mapping[str, Any], values: Mapping[str, Any], organization: str = ""
) -> str | None:
    """`fleet project edit shop --branch develop`, for a shell; None for an operation without a command.

    Secrets are not in it: the command reads them from stdin. A text for which the command takes a file is piped to it.
    """
    command = operation.command
    if isinstance(command, NoDoor):
        return None
    by_hand = HAND_WRITTEN.get(operation.name, HandWritten())
    words = command.words if isinstance(command, Command) else by_hand.words or command.name
    positional = command.arguments if isinstance(command, Command) else by_hand.positional
    values = _to_tell(operation, values)
    if by_hand.whole:
        ends = ["--org", organization] if organization else []
        return f"printf %s {shlex.quote(json.dumps(values))} | {shlex.join(['fleet', *words.split(), '-', *ends])}"
    if by_hand.piped:
        rest = [
            option
            for name, value in values.items()
            if name != by_hand.piped
            for option in _options(operation, by_hand, name, value)
        ]
        rest += shlex.split(by_hand.always) + (["--org", organization] if organization else [])
        document = shlex.quote(json.dumps(values.get(by_hand.piped)))
        return f"printf %s {document} | {shlex.join(['fleet', *words.split(), '-', *rest])}"
    told = [str(names[name]) for name in operation.names if name in names]
    told += [_told(operation, name, values[name]) for name in positional if values.get(name) is not None]
    options = [
        option
        for name, value in values.items()
        if name not in positional
        for option in _options(operation, by_hand, name, value)
    ]
    options += shlex.split(by_hand.always) + (["--yes"] if isinstance(command, Command) and command.confirm else [])
    options += ["--org", organization] if organization else []
    return _piped(values, operation) + shlex.join(["fleet", *words.split(), *_in_order(told, options)])


def command_for(operation: str, names: Mapping[str, Any], values: Mapping[str, Any]) -> str | None:
    """The same by the operation's name, for templates."""
    return command_of(_operations()[operation], names, values)


@cache
def _operations() -> Mapping[str, Operation]:
    return {each.name: each for each in every_operation()}


def _in_order(told: Sequence[str], options: Sequence[str]) -> Sequence[str]:
    """Arguments and options; an argument that looks like an option comes after `--`."""
    return [*options, "--", *told] if any(each.startswith("-") for each in told) else [*told, *options]


def _to_tell(operation: Operation, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that differ from what the command does without options."""
    if operation.request is None:
        return {}
    fields = operation.request.model_fields
    defaults: Mapping[str, Any] = getattr(operation.command, "defaults", {})
    without: Sequence[str] = getattr(operation.command, "without", ())
    # A command may do more than the interface does, for example test what it adds.
    known = {name: _default(fields[name]) for name in defaults if operation.method != "PATCH"} | dict(values)
    return {
        name: value
        for name, value in known.items()
        if name in fields
        and name not in without
        and (operation.method == "PATCH" or not _same(value, defaults.get(name, _default(fields[name]))))
    }


def _default(info: FieldInfo) -> Any:
    return None if info.is_required() else info.get_default(call_default_factory=True)


def _same(value: Any, default: Any) -> bool:
    """Whether a value, which may be the text of a form, is the default."""
    return value == default or (isinstance(value, str) and not isinstance(default, bool) and value == f"{default}")


def _options(operation: Operation, by_hand: HandWritten, name: str, value: Any) -> Sequence[str]:
    assert operation.request is not None
    info = operation.request.model_fields[name]
    about, flag = about_of(name, info), by_hand.flags.get(name)
    if callable(flag):
        return flag(value)
    return list(_written(flag or about.flag.split(" ")[0] or _flag(name), value, about, value_type(info.annotation)))


def _written(flag: str, value: Any, about: About, kind: Any) -> Iterator[str]:
    if about.secret or about.input == "file":
        yield from (flag, "-") if about.input else (f"{flag}-stdin",)
    elif kind is bool:
        yield from filter(None, [flag.partition("/")[0 if value else 2]])
    elif isinstance(kind, type) and issubclass(kind, BaseModel):
        yield from _nested(value)
    elif value in (None, [], {}):
        yield from _removed(flag, about.none)
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from (flag, f"{key}={_plain(each)}")
    else:
        for each in value if get_origin(kind) in {list, tuple} else [value]:
            yield from (flag, str(each))


def _removed(flag: str, none: str) -> Sequence[str]:
    return [none] if none.startswith("--") else [flag, none] if none else []


def _nested(value: Mapping[str, Any]) -> Iterator[str]:
    """The fields of a task that a schedule or a trigger creates are options of its command."""
    for name, each in value.items():
        if each is not None:
            yield from (_flag(name), str(each))


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _plain(value: Any) -> str:
    """A parameter's value, which the command reads as JSON if it is that."""
    if not isinstance(value, str):
        return json.dumps(value)
    try:
        json.loads(value)
    except ValueError:
        return value
    return json.dumps(value)


def _told(operation: Operation, name: str, value: Any) -> str:
    """A value by position; a text for which the command takes a file is piped to it."""
    assert operation.request is not None
    return "-" if about_of(name, operation.request.model_fields[name]).input == "file" else str(value)


def _piped(values: Mapping[str, Any], operation: Operation) -> str:
    """A text for which the command takes a file."""
    fields = operation.request.model_fields if operation.request else {}
    for name, value in values.items():
        about = about_of(name, fields[name])
        if about.input == "file":
            return f"printf %s {shlex.quote(str(value))} | "
    return ""


def _switch(flag: str) -> Options:
    return lambda value: [flag] if value else []


def _events(value: Sequence[str]) -> Sequence[str]:
    return [part for each in value for part in ("--event", each)] if value else ["--every-event"]


def _serves(value: Sequence[str]) -> Sequence[str]:
    return ["--serves-all"] if "*" in value else [part for each in value for part in ("--serves", each)]


def _secret(_value: str) -> Sequence[str]:
    return ["--secret", "-"]


_TRIGGER = HandWritten(flags={"events": _events, "secret": _secret})
_DIGEST: Mapping[str, Options] = {"digest": lambda _: []}
"""Of what a page showed: who types the command decides about what they read in the terminal."""
HAND_WRITTEN: Mapping[str, HandWritten] = {
    "submit": HandWritten(positional=("prompt",)),
    "submit_race": HandWritten(
        positional=("prompt",),
        flags={
            "count": "--race",
            "models": lambda value: ["--models", ",".join(value)] if value else [],
        },
    ),
    "submit_graph": HandWritten(whole=True),
    "submit_batch": HandWritten(piped="rows", always="--detach"),
    "say": HandWritten(
        positional=("text",),
        flags={name: _switch(f"--{name}") for name in ("after", "interrupt", "alone")},
    ),
    "answer_order": HandWritten(positional=("text",), flags=_DIGEST),
    "edit_plan": HandWritten(positional=("text",)),
    "approve_plan": HandWritten(
        flags={"points": lambda value: ["--points", ",".join(map(str, value))] if value else []}
    ),
    "approve": HandWritten(flags={**_DIGEST, "raise_usd": "--raise"}),
    "deny": HandWritten(flags=_DIGEST),
    "restore_item": HandWritten(always="--undo"),
    "label_entry": HandWritten(positional=("entry", "text")),
    "comment_task": HandWritten(positional=("text",)),
    "create_task": HandWritten(positional=("title",)),
    "create_schedule": HandWritten(positional=("name",)),
    "create_trigger": HandWritten(positional=("name",), flags=_TRIGGER.flags),
    "edit_trigger": _TRIGGER,
    "create_join_token": HandWritten(flags={"serves": _serves}),
    "revoke_drone_keys": HandWritten(always="--force --yes"),
}
