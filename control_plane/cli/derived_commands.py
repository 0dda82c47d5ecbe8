"""The commands of the declared operations. A group's declarations are loaded when one of its commands is requested."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from functools import cached_property
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from control_plane.cli.answers import print_answer
from control_plane.cli.common_options import Org
from control_plane.cli.connection import client
from shared.terminal.command_line import FleetGroup, JsonFlag, confirmed, examples, say
from shared.terminal.watch import WatchFlag, watched

if TYPE_CHECKING:
    from control_plane.contract.client.fleet import FleetClient
    from control_plane.contract.declarations.operation import Command, Operation

Texts = Mapping[str, Callable[[Any], str | None]]
"""By the last word of a command: returns the text of its answer, or prints it."""
Settlings = Mapping[str, Callable[["FleetClient", Any], tuple[Any, int]]]
"""The same: waits for what the answer announces, and returns the newer answer and the exit code."""
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
    texts: Callable[[], Texts] = dict
    """Loads what shows answers better than their labels and values."""
    settlings: Callable[[], Settlings] = dict
    default: str = ""
    """The command that options without a command are for; empty: there is none."""

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
                self._commands = {**_commands_of(group), **self._commands}
            return self._commands

        @commands.setter
        def commands(self, by_hand: MutableMapping[str, Any]) -> None:
            self._commands = by_hand

        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            if group.default and not ctx.resilient_parsing and _is_without_command(args):
                args = [group.default, *args]
            return super().parse_args(ctx, args)

    return LazyGroup


def _is_without_command(args: list[str]) -> bool:
    return not args or (args[0].startswith("-") and args[0] not in {"-h", "--help"})


def _commands_of(group: DerivedGroup) -> dict[str, Any]:
    """The commands that a noun's declarations define in the group, by their last word."""
    from control_plane.contract.declarations import operation as declared

    made = typer.Typer(cls=FleetGroup, rich_markup_mode=None)
    for operation in declared.operations_of(group.noun):
        command = operation.command
        if isinstance(command, declared.Command) and command.words.startswith(f"{group.name} "):
            kind = _WithNumbers if _has_number(operation, command) else None
            run = _Derived(group, operation, command).function()
            made.command(command.words.split(" ")[-1], cls=kind, epilog=examples(command.example), help=command.help)(
                run
            )
    return dict(typer.main.get_group(made).commands) if made.registered_commands else {}


# --- hand-written commands with derived options ---------------------------------------------------


@dataclass
class TypedCommand:
    """What a user typed: the operation, the names in its path, and the fields of its request, as text or parsed."""

    operation: Operation
    names: dict[str, str]
    fields: dict[str, Any]
    form: str
    """`fleet submit --help`"""
    organization: str | None

    @cached_property
    def fleet(self) -> FleetClient:
        return client(self.organization)

    def perform(self, *, idempotency_key: str | None = None) -> Any:
        """The answer. Raises Invalid for a field that cannot be used."""
        from control_plane.contract.validation.invalid_requests import checked

        request = checked(self.operation.request, self.fields, form=self.form) if self.operation.request else None
        return self.fleet.call(self.operation, request, idempotency_key=idempotency_key, **self.names)


@dataclass(frozen=True)
class ByHandCommand:
    """A hand-written command: it adds its own options to those of the operation's names and fields.

    Its declaration is loaded when its options are needed, not when it is listed.
    """

    words: str
    """`submit`, `task create`"""
    declared: Callable[[], Mapping[str, Operation]]
    """Loads the operations of such commands, by the words of these."""
    run: Callable[..., int]
    """Receives a `TypedCommand`, then its own options; its docstring is the help."""
    panel: str | None = None
    """Of the list of commands at the top level."""
    examples: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    """Fields of the request that are given by position."""
    without: tuple[str, ...] = ()
    """Fields that are for programs."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Defaults that are smaller for a person than for a script."""
    found: Mapping[str, str] = field(default_factory=dict)
    """Required fields that the function finds if they are not given, and where, for the help."""

    def add_to(self, app: typer.Typer) -> None:
        """Register the command."""
        org = Parameter("org", Parameter.KEYWORD_ONLY, annotation=Org, default=None)

        def listed() -> None:
            """Has the parameters that are known without the declaration."""

        listed.__dict__["__signature__"] = Signature([*self._own(), org])
        kind = type("_Command", (_Completed,), {"by_hand": self})
        app.command(
            self.words.rpartition(" ")[2],
            cls=kind,
            help=self.run.__doc__,
            rich_help_panel=self.panel,
            epilog=examples(*self.examples),
        )(listed)

    def act(self, **given: Any) -> int:
        """Run it with what was typed."""
        from control_plane.cli import options

        operation = self.declared()[self.words]
        # An option that may be repeated comes as a tuple, which is empty if it was not given.
        given = {name: list(each) if isinstance(each, tuple) else each for name, each in given.items()}
        names = {name: given[name] for name in operation.names}
        fields = {**self.defaults, **options.values(operation, given)}
        call = TypedCommand(operation, names, fields, f"fleet {self.words} --help", given["org"])
        return self.run(call, **{each.name: given[each.name] for each in self._own()})

    def _own(self) -> list[Parameter]:
        return list(signature(self.run, eval_str=True).parameters.values())[1:]

    def derived_parameters(self) -> list[Any]:
        """Those of the names and fields, for click."""
        from control_plane.cli import options
        from control_plane.contract.declarations.operation import Command

        defaults = {**self.defaults, **self.found}
        fields = Command(self.words, "", "", arguments=self.arguments, defaults=defaults, without=self.without)

        def command(**_: Any) -> None: ...

        command.__dict__["__signature__"] = Signature(list(options.parameters(self.declared()[self.words], fields)))
        made = typer.Typer(add_completion=False)
        made.command()(command)
        return list(typer.main.get_command(made).params)


class _Completed(TyperCommand):
    """A command whose parameters are completed with derived ones when they are first needed."""

    by_hand: ByHandCommand
    _own: list[Any]
    _all: list[Any] | None = None

    def __init__(self, *given: Any, **settings: Any) -> None:
        super().__init__(*given, **{**settings, "callback": self.by_hand.act})

    @property
    def params(self) -> list[Any]:
        if self._all is None:
            self._all = [*self.by_hand.derived_parameters(), *self._own]
        return self._all

    @params.setter
    def params(self, own: list[Any]) -> None:
        self._own = own


def _has_number(operation: Operation, command: Command) -> bool:
    from control_plane.contract.declarations.operation import value_type

    fields = operation.request.model_fields if operation.request else {}
    return any(value_type(fields[name].annotation) in {int, float} for name in command.arguments)


class _WithNumbers(TyperCommand):
    """A command with a number among its arguments: `-5` is a value, and the request says why it cannot be used."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        # Numbers may be surrounded by blanks; with one in front, it does not look like an option.
        return super().parse_args(ctx, [f" {each}" if _NEGATIVE.fullmatch(each) else each for each in args])


@dataclass(frozen=True)
class _Derived:
    """A command that is derived from the declaration of its operation."""

    group: DerivedGroup
    operation: Operation
    command: Command

    def function(self) -> Callable[..., int]:
        """The function behind it, with the parameters that its names and fields become."""
        from control_plane.cli import options

        flags = [options.parameter("as_json", JsonFlag, False), options.parameter("org", Org, None)]
        if self.command.words.endswith(" ls"):
            flags.insert(0, options.parameter("watch", WatchFlag, False))
        if self.command.confirm:
            flags.insert(0, options.parameter("yes", Yes, False))

        def run(**given: Any) -> int:
            return self._run(given)

        parameters = [*options.parameters(self.operation, self.command), *flags]
        ordered = sorted(parameters, key=lambda each: each.default is not Parameter.empty)
        run.__dict__["__signature__"] = Signature(ordered)
        return run

    def _run(self, given: dict[str, Any]) -> int:
        from control_plane.cli import options
        from control_plane.contract.validation.invalid_requests import checked

        operation, command = self.operation, self.command
        names = {name: given[name] for name in operation.names}
        fields = {**command.defaults, **options.values(operation, given)}
        form = f"fleet {command.words} --help"
        request = checked(operation.request, fields, form=form) if operation.request else None
        if command.confirm:
            confirmed(command.confirm.format(**given), yes=given["yes"])
        with client(given["org"]) as fleet:
            if settle := self.group.settlings().get(self._name):
                answer, code = settle(fleet, fleet.call(operation, request, **names))
                self._show(answer, given)
                return code
            watched(
                lambda: self._show(fleet.call(operation, request, **names), given),
                watch=given.get("watch", False),
                as_json=given["as_json"],
            )
            return 0

    @property
    def _name(self) -> str:
        return self.command.words.rpartition(" ")[2]

    def _show(self, answer: Any, given: dict[str, Any]) -> None:
        print_answer(answer, lambda document: self._text(document, given), as_json=given["as_json"])
        if self.command.then and not given["as_json"]:
            say(self.command.then.format(**{**given, **answer}))

    def _text(self, answer: Any, given: dict[str, Any]) -> str:
        from control_plane.cli import labeled_fields

        if isinstance(answer, dict):
            for warning in answer.get("warnings", ()):
                say(f"warning: {warning}")
        if self.command.done:
            say(self.command.done.format(**{**given, **answer}))
            return ""
        if self.command.columns:
            labeled_fields.print_rows(answer, self.operation, self.command)
            return ""
        if text := self.group.texts().get(self._name):
            return text(answer) or ""
        return labeled_fields.lines_of(answer, self.operation)
