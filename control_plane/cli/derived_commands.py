"""The commands of the declared operations. A group's declarations are loaded when one of its commands is requested."""

from __future__ import annotations

import re
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from control_plane.cli.answers import print_answer
from control_plane.cli.common_options import Org
from control_plane.cli.connection import client
from shared.terminal.command_line import FleetGroup, JsonFlag, confirmed, examples, say
from shared.terminal.watch import WatchFlag, watched

if TYPE_CHECKING:
    from control_plane.declarations.operation import Command, Operation

_NEGATIVE = re.compile(r"-\d[\d.]*")
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


@dataclass(frozen=True)
class DerivedGroup:
    """A group of commands derived from the declarations of a noun; hand-written commands can be added to it."""

    noun: str
    name: str
    purpose: str
    panel: str
    add_others: Callable[[typer.Typer], None] | None = None

    def add_to(self, app: typer.Typer) -> None:
        """Register the group without loading its declarations."""
        group = typer.Typer(
            name=self.name, cls=_loading(self), help=self.purpose, no_args_is_help=True, rich_markup_mode=None
        )
        if self.add_others is not None:
            self.add_others(group)
        app.add_typer(group, rich_help_panel=self.panel)


def _loading(group: DerivedGroup) -> type[FleetGroup]:
    class LazyGroup(FleetGroup):
        _loaded = False
        _commands: MutableMapping[str, Any]

        @property
        def commands(self) -> MutableMapping[str, Any]:
            if not self._loaded:
                self._loaded = True
                self._commands = {**commands_of(group.noun, group.name), **self._commands}
            return self._commands

        @commands.setter
        def commands(self, by_hand: MutableMapping[str, Any]) -> None:
            self._commands = by_hand

    return LazyGroup


def commands_of(noun: str, group: str) -> dict[str, Any]:
    """The commands that a noun's declarations define in a group, by their last word."""
    from control_plane.declarations import operation as declared

    made = typer.Typer(cls=FleetGroup, rich_markup_mode=None)
    for operation in declared.operations_of(noun):
        command = operation.command
        if isinstance(command, declared.Command) and command.words.startswith(f"{group} "):
            add_command(made, command.words.removeprefix(f"{group} "), operation, command)
    return dict(typer.main.get_group(made).commands) if made.registered_commands else {}


def add_command(app: typer.Typer, name: str, operation: Operation, command: Command) -> None:
    """Register the command of one operation."""
    kind = _WithNumbers if _has_number(operation, command) else None
    app.command(name, cls=kind, epilog=examples(command.example), help=command.help)(_function(operation, command))


def _has_number(operation: Operation, command: Command) -> bool:
    from control_plane.declarations.operation import value_type

    fields = operation.request.model_fields if operation.request else {}
    return any(value_type(fields[name].annotation) in {int, float} for name in command.arguments)


class _WithNumbers(TyperCommand):
    """A command with a number among its arguments: `-5` is a value, and the request says why it cannot be used."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        # Numbers may be surrounded by blanks; with one in front, it does not look like an option.
        return super().parse_args(ctx, [f" {each}" if _NEGATIVE.fullmatch(each) else each for each in args])


def _function(operation: Operation, command: Command) -> Callable[..., int]:
    from control_plane.cli import options
    from control_plane.validation.invalid_requests import checked

    def run(**given: Any) -> int:
        names = {name: given[name] for name in operation.names}
        fields = {**command.defaults, **options.values(operation, given)}
        form = f"fleet {command.words} --help"
        request = checked(operation.request, fields, form=form) if operation.request else None
        if command.confirm:
            confirmed(command.confirm.format(**given), yes=given["yes"])
        with client(given["org"]) as fleet:
            if command.settled:
                answer, code = options.named(command.settled)(fleet, fleet.call(operation, request, **names))
                _show(answer, operation, command, given)
                return int(code)
            watched(
                lambda: _show(fleet.call(operation, request, **names), operation, command, given),
                watch=given.get("watch", False),
                as_json=given["as_json"],
            )
            return 0

    flags = [options.parameter("as_json", JsonFlag, False), options.parameter("org", Org, None)]
    if command.words.endswith(" ls"):
        flags.insert(0, options.parameter("watch", WatchFlag, False))
    if command.confirm:
        flags.insert(0, options.parameter("yes", Yes, False))
    parameters = [*options.parameters(operation, command), *flags]
    run.__dict__["__signature__"] = Signature(sorted(parameters, key=lambda each: each.default is not Parameter.empty))
    return run


def _show(answer: Any, operation: Operation, command: Command, given: dict[str, Any]) -> None:
    print_answer(answer, lambda document: _text(document, operation, command, given), as_json=given["as_json"])
    if command.then and not given["as_json"]:
        say(command.then.format(**{**given, **answer}))


def _text(answer: Any, operation: Operation, command: Command, given: dict[str, Any]) -> str:
    from control_plane.cli import labeled_fields
    from control_plane.cli.options import named

    if isinstance(answer, dict):
        for warning in answer.get("warnings", ()):
            say(f"warning: {warning}")
    if command.done:
        say(command.done.format(**{**given, **answer}))
        return ""
    if command.columns:
        labeled_fields.print_rows(answer, operation, command)
        return ""
    if command.text:
        return str(named(command.text)(answer) or "")
    return labeled_fields.lines_of(answer, operation)
