"""Common parts of `fleet` and `drone`: the format of help, errors in four parts, exit codes, completion.

A command raises `FleetError` or returns; `run` turns everything else into one sentence. Nothing heavy is imported here:
`--help` responds within half a second.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from shared.errors import Invalid, NotFound, Precondition
from shared.terminal.boundary import completion_variable, report, run, version, wants_json
from shared.terminal.completion_scripts import completion_script
from shared.terminal.error_help import explanation, is_code
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
from shared.terminal.text_file import first_line_of_stdin

__all__ = [
    "EXIT_CODES",
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

MORE = "More"
"""The last panel of every command list."""

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout; messages go to stderr.")]
"""The `--json` option of every command with output for scripts."""

_SYNONYMS = (("ls", "list"), ("show", "view"), ("add", "create"), ("rm", "delete", "remove"))

EXIT_CODES = """\
  0    done; with --follow: the order is done, or nothing had to change
  1    failed; with --follow: also incomplete, or it ended with a question
  2    invalid usage: an option, a value or the order of steps
  3    not found
  4    conflict with the current state
  5    no connection
  6    not allowed
  130  interrupted with Ctrl-C
"""

_ENVIRONMENT = {
    "NO_COLOR": "any value: no colors",
    "FORCE_COLOR": "any value: colors even if the output is not a terminal",
    "CLICOLOR": "0: no colors",
    "XDG_DATA_HOME": "parent of the home directories; default ~/.local/share",
    "XDG_CONFIG_HOME": "parent of the configuration files; default ~/.config",
    "XDG_STATE_HOME": "parent of the files with the traceback of an unexpected error; default ~/.local/state",
}


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
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
        epilog=f"Run `{name} COMMAND --help` for a command's options, `{name} help exit-codes` for the exit codes.",
    )
    app.callback(help=purpose)(_top)
    _add_help(app, name, {**(environment or {}), **_ENVIRONMENT}, topics or {})
    _add_completion(app, name)
    return app


def group(name: str, purpose: str) -> typer.Typer:
    """A group of commands below an application: `app.add_typer(group("token", "Hand out join tokens."))`."""
    return typer.Typer(name=name, cls=FleetGroup, help=purpose, no_args_is_help=True, rich_markup_mode=None)


def examples(*lines: str) -> str:
    """The `epilog=` of a command: its examples, each on a separate line."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


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


def _add_help(app: typer.Typer, name: str, environment: Mapping[str, str], more: Mapping[str, str]) -> None:
    topics = {
        **more,
        "exit-codes": EXIT_CODES,
        "environment": "".join(f"  {variable:<18} {meaning}\n" for variable, meaning in environment.items()),
    }

    @app.command("help", rich_help_panel=MORE, epilog=examples(f"{name} help exit-codes", f"{name} help environment"))
    def show_help(
        context: typer.Context,
        topic: Annotated[
            list[str] | None, typer.Argument(help="A command, an error code, exit-codes or environment.")
        ] = None,
    ) -> None:
        """Explain a command, an error code or a topic: exit-codes, environment."""
        words = topic or []
        if len(words) == 1 and words[0] in topics:
            put(topics[words[0]])
        elif len(words) == 1 and is_code(words[0]):
            put(explanation(words[0]))
        else:
            put(_help_of(context.find_root(), words) + "\n")


def _help_of(context: Any, words: Sequence[str]) -> str:
    for word in words:
        commands = getattr(context.command, "commands", {})
        command = context.command.get_command(context, word) if commands else None
        if command is None:
            raise NotFound(f"no help for {' '.join(words)!r}", code="E-HELP", next=f"{context.command_path} --help")
        context = type(context)(command, info_name=word, parent=context)
    return str(context.get_help())


def _add_completion(app: typer.Typer, name: str) -> None:
    @app.command(
        "completion",
        rich_help_panel=MORE,
        epilog=examples(
            f"source <({name} completion bash)",
            f"{name} completion zsh > ~/.zfunc/_{name}",
            f"{name} completion fish > ~/.config/fish/completions/{name}.fish",
        ),
    )
    def completion(shell: Annotated[str, typer.Argument(help="bash, zsh or fish")]) -> None:
        """Print the completion script for a shell: bash, zsh or fish."""
        if shell not in {"bash", "zsh", "fish"}:
            raise Invalid(
                f"unknown shell {shell!r}: expected bash, zsh or fish", code="E-SHELL", next=f"{name} completion bash"
            )
        put(completion_script(name, completion_variable(name), shell) + "\n")


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
