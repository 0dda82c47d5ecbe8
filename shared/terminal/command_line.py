"""Common parts of `fleet` and `drone`: groups of commands, the format of help, errors in four parts, exit codes.

A command raises `FleetError` or returns; `run` turns everything else into one sentence. Nothing heavy is imported here:
`--help` responds within half a second.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from shared.errors import Invalid, Precondition
from shared.terminal.boundary import report, run, version, wants_json
from shared.terminal.output import (
    coloured,
    console,
    iso,
    page,
    paint,
    print_json,
    print_json_line,
    print_table,
    put,
    say,
)
from shared.terminal.own_commands import MORE, add_completion, add_help, examples
from shared.terminal.text_file import first_line_of_stdin

__all__ = [
    "FleetGroup",
    "JsonFlag",
    "application",
    "coloured",
    "confirmed",
    "console",
    "examples",
    "group",
    "iso",
    "page",
    "paint",
    "parse_labels",
    "print_json",
    "print_json_line",
    "print_table",
    "put",
    "read_secret",
    "report",
    "run",
    "say",
    "version",
    "wants_json",
]

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout; messages go to stderr.")]
"""The `--json` option of every command with output for scripts."""

_SYNONYMS = (("ls", "list"), ("show", "view"), ("add", "create"), ("rm", "delete", "remove"))


# --- building a command line --------------------------------------------------------


class FleetGroup(TyperGroup):
    """A command group that accepts common synonyms of its verbs and suggests similar names."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - click's signature
        """The command with this name, or with a synonym of it."""
        for name in (cmd_name, *_synonyms(cmd_name)):
            if name in self.commands:
                return self.commands[name]
        return None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Like click's method, but for an unknown name the error suggests similar names."""
        word = args[0]
        if self.get_command(ctx, word) is None and not word.startswith("-") and not ctx.resilient_parsing:
            _unknown_command(ctx.command_path, word, [n for n, c in self.commands.items() if not c.hidden])
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - click's signature
        """List the commands under their registered headings; `More` comes last."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for name, command in self.commands.items():
            if not command.hidden:
                panel = getattr(command, "rich_help_panel", None)
                title = panel if isinstance(panel, str) else "Commands"
                panels.setdefault(title, []).append((name, command.get_short_help_str(limit=90)))
        for title in sorted(panels, key=lambda each: each == MORE):
            with formatter.section(title):
                formatter.write_dl(panels[title])


def application(
    name: str,
    purpose: str,
    *,
    environment: Mapping[str, str] | None = None,
    topics: Mapping[str, str] | None = None,
) -> typer.Typer:
    """A command line called `name`, with `--version`, `help` and `completion`; `purpose` describes it in one sentence.

    `environment` maps its variables to their meaning, for `help environment`; `topics` has more texts for `help`.
    """
    app = typer.Typer(
        name=name,
        cls=FleetGroup,
        help=purpose,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        add_completion=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
        epilog=f"Run `{name} COMMAND --help` for a command's options, `{name} help exit-codes` for the exit codes.",
    )
    app.callback(help=purpose)(_top)
    add_help(app, name, environment or {}, topics or {})
    add_completion(app, name)
    return app


def group(name: str, purpose: str) -> typer.Typer:
    """A group of commands below an application: `app.add_typer(group("token", "Hand out join tokens."))`."""
    return typer.Typer(name=name, cls=FleetGroup, help=purpose, no_args_is_help=True, rich_markup_mode=None)


# --- values that several commands accept -------------------------------------------------


def parse_labels(pairs: Iterable[str]) -> dict[str, str]:
    """`k=v` texts as a mapping. Raises Invalid for a text without a key or `=`, and for a key with two values."""
    labels: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = (part.strip() for part in pair.partition("="))
        if not equals or not key:
            raise Invalid(f"invalid label {pair!r}: expected KEY=VALUE", code="E-LABEL", next="--label gpu=yes")
        if labels.setdefault(key, value) != value:
            raise Invalid(f"label {key!r} has two values", code="E-LABEL")
    return labels


def parse_params(pairs: Iterable[str]) -> dict[str, Any]:
    """`temperature=0.2` texts as a mapping; a value that is valid JSON is parsed, any other is text.

    Raises Invalid for a text without a key or `=`.
    """
    params: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise Invalid(
                f"invalid parameter {pair[:80]!r}: expected KEY=VALUE", code="E-PARAM", next="--param temperature=0.2"
            )
        try:
            params[key.strip()] = json.loads(value)
        except ValueError:
            params[key.strip()] = value
    return params


def read_secret(value: str, what: str) -> str:
    """`value`, or the first line of stdin if it is `-`, so that a secret need not be on the command line.

    On a terminal, the user is prompted, and the input is not shown.
    """
    if value != "-":
        return value.strip()
    line = (_typed(what) if sys.stdin.isatty() else first_line_of_stdin()).strip()
    if not line:
        raise Invalid(f"no {what} on stdin", code="E-STDIN-EMPTY", why="`-` reads it from stdin")
    return line


def _typed(what: str) -> str:
    from getpass import getpass

    return getpass(f"{what[:1].upper()}{what[1:]}: ")


def confirmed(question: str, *, yes: bool) -> None:
    """Continue only if the user confirms. Raises Precondition without a terminal to ask on, Exit with 1 on no."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise Precondition(
            f"not confirmed: {question}",
            code="E-NOT-CONFIRMED",
            why="stdin is not a terminal",
            next="add --yes",
        )
    if not typer.confirm(question, err=True):
        say("canceled")
        raise typer.Exit(1)


# --- parts ---------------------------------------------------------------------------------


def _print_version(context: typer.Context, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        put(f"{context.find_root().info_name} {version()}\n")
        raise typer.Exit


def _top(
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options of the application itself."""


def _synonyms(name: str) -> tuple[str, ...]:
    return next((verbs for verbs in _SYNONYMS if name in verbs), ())


def _unknown_command(path: str, word: str, known: list[str]) -> NoReturn:
    spellings = dict.fromkeys([*known, *(other for name in known for other in _synonyms(name))])
    near = get_close_matches(word, list(spellings))
    raise Invalid(
        f"unknown command {word!r} for {path!r}",
        code="E-USAGE",
        why=f"did you mean {' or '.join(near)}?" if near else "",
        next=f"{path} {near[0]} --help" if near else f"{path} --help",
        help=f"{path.split(maxsplit=1)[0]} help",
    )
