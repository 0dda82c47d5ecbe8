"""The outermost boundary of both command lines: every error becomes a sentence and an exit code."""

from __future__ import annotations

import copy
import json
import os
import sys
from collections.abc import Sequence

import typer
from typer.models import CommandInfo, TyperInfo

from shared.errors import FleetError, FleetFault, Invalid
from shared.redaction import shortened
from shared.terminal.completion import completion_variable, print_completions
from shared.terminal.directories import state_home
from shared.terminal.output import paint, printable, say

INTERRUPTED = 130


def run(app: typer.Typer, arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; errors are reported in four parts, never as a traceback."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if any(name.lower().endswith("_proxy") for name in os.environ):
        from shared.loopback import bypass_proxies  # takes 10 ms, and few machines have a proxy

        bypass_proxies(os.environ)
    try:
        return _flushed(_obey(app, words))
    except typer.Exit as done:
        return _flushed(done.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        return _interrupted()
    except BrokenPipeError:
        return _reader_left()
    except FleetError as error:
        return report(error, as_json=wants_json(words))
    except typer.TyperException as error:
        return _misused(error, words)
    except Exception as error:  # noqa: BLE001 - the outermost boundary: the user gets a sentence, a file the traceback
        return _surprised(app.info.name or "fleet", error, words)


def report(error: FleetError, *, as_json: bool = False) -> int:
    """Report `error` on stderr, in four parts or as one JSON object, and return its exit code."""
    sys.stdout.flush()
    if as_json:
        document = {"code": error.code, "what": error.what, "why": error.why or None, "next": error.next or None}
        whole = {**document, "help": error.help, "exit_code": error.exit_code}
        sys.stderr.write(json.dumps(whole).replace("\x7f", "\\u007f") + "\n")
        return error.exit_code
    label = paint("error:", "red", sys.stderr)
    lines = [f"{label} {printable(error.what)}   [{printable(error.code)}]"]
    for name, text in (("why", error.why), ("next", error.next), ("help", error.help)):
        if text:
            lines.append(f"  {paint(f'{name:<4}', 'dim', sys.stderr)}  " + printable(text).replace("\n", "\n        "))
    sys.stderr.write("\n".join(lines) + "\n")
    return error.exit_code


def wants_json(words: Sequence[str]) -> bool:
    """Whether `--json` was given; determined before parsing, because wrong use is reported in the same format."""
    options = words[: words.index("--")] if "--" in words else words
    return "--json" in options


def version() -> str:
    """The installed version of the distribution."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return installed("dronefleet")
    except PackageNotFoundError:
        return "0 (not installed)"


def _interrupted() -> int:
    say("\ninterrupted")
    return INTERRUPTED


def _surprised(program: str, error: Exception, words: list[str]) -> int:
    if type(error).__name__ == "SchemaError" and KeyboardInterrupt.__name__ in str(error):
        return _interrupted()  # while pydantic built a validator: it tells no more of the exception than its name
    return report(_unexpected(program, error), as_json=wants_json(words))


def _obey(app: typer.Typer, words: list[str]) -> int:
    name = app.info.name or "fleet"
    if os.environ.get(completion_variable(name)):
        return print_completions(typer.main.get_command(app), name)
    command = typer.main.get_command(_narrowed(app, words))
    with command.make_context(name, words) as context:
        result = command.invoke(context)
    return result if isinstance(result, int) else 0


def _narrowed(app: typer.Typer, words: list[str]) -> typer.Typer:
    """The application with only the command or group that `words` name: building all of them takes 50 ms.

    Unknown names, options and `help`, which need all of them, get the whole application.
    """
    word = words[0] if words else ""
    commands = [each for each in app.registered_commands if _command_name(each) == word]
    groups = [each for each in app.registered_groups if _group_name(each) == word]
    if word == "help" or not (commands or groups):
        return app
    narrowed = copy.copy(app)
    narrowed.registered_commands, narrowed.registered_groups = commands, groups
    return narrowed


def _command_name(command: CommandInfo) -> str:
    function = command.callback.__name__ if command.callback else ""
    return command.name or function.lower().replace("_", "-")


def _group_name(group: TyperInfo) -> str | None:
    own = group.typer_instance.info.name if group.typer_instance else None
    return group.name if isinstance(group.name, str) else own


def _flushed(code: int) -> int:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return _reader_left()
    return code


def _reader_left() -> int:
    # `drone run … | head`: the reader is gone. The interpreter flushes again at exit, which would print an error.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


def _misused(error: typer.TyperException, words: list[str]) -> int:
    """Report wrong use: click's sentence, and the help of the intended command."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "fleet"
    if type(error).__name__ == "NoArgsIsHelpError":
        sys.stderr.write(printable(error.format_message()) + "\n")
        return error.exit_code
    near = getattr(error, "possibilities", None) or ()
    what = error.message if near else error.format_message().replace("Value error, ", "")
    usage = Invalid(
        f"{path}: {_lower_first(what.strip().rstrip('.'))}",
        code="E-USAGE",
        why=f"did you mean {' or '.join(sorted(near))}?" if near else "",
        next=f"{path} --help",
        help=f"{path.split(maxsplit=1)[0]} help exit-codes",
    )
    return report(usage, as_json=wants_json(words))


def _unexpected(name: str, error: Exception) -> FleetError:
    """Build the error for an unexpected exception; the traceback goes to a file that only its owner can read."""
    first = shortened(str(error).partition("\n")[0], 200)
    return FleetFault(
        f"unexpected error in {name}: {type(error).__name__}{': ' if first else ''}{first}",
        code="E-UNEXPECTED",
        why=_write_traceback(name, error),
        next=f"{name} doctor",
    )


def _write_traceback(name: str, error: Exception) -> str:
    import traceback
    from datetime import UTC, datetime

    directory = state_home() / "dronefleet" / "errors"
    path = directory / f"{name}-{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}.log"
    text = f"{name} {version()}, Python {sys.version}\n\n{''.join(traceback.format_exception(error))}"
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
    except OSError as failure:
        return f"the traceback could not be written to {path}: {failure.strerror}"
    return f"the traceback is in {path}"


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]
