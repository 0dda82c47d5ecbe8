"""The commands that every program has: `help`, also for an error code, and `completion`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import typer

from shared.errors import Invalid, NotFound
from shared.terminal.completion import completion_variable
from shared.terminal.output import put

MORE = "More"
"""The last panel of every command list."""

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


def examples(*lines: str) -> str:
    """The `epilog=` of a command: its examples, each on a separate line."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


# --- help -------------------------------------------------------------------------


def add_help(app: typer.Typer, name: str, environment: Mapping[str, str], more: Mapping[str, str]) -> None:
    """Add `help`: `environment` maps the program's own variables to their meaning, `more` has texts by topic."""
    described = {**environment, **_ENVIRONMENT}
    topics = {
        **more,
        "exit-codes": EXIT_CODES,
        "environment": "".join(f"  {variable:<18} {meaning}\n" for variable, meaning in described.items()),
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
        elif len(words) == 1 and _is_code(words[0]):
            put(_explanation(words[0]))
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


# --- help E-…, from the page that the documents have of all codes ----------------

_PACKAGE = Path(__file__).parents[1]
_PAGES = (_PACKAGE / "errors.md", _PACKAGE.parent / "docs" / "errors.md")
"""In an installed distribution, and in a clone."""
_CODE = re.compile(r"[Ee]-[A-Za-z0-9-]+")
_LINK = re.compile(r"\[([^\[\]]+)\]\([^()]*\)")


def _is_code(word: str) -> bool:
    """Whether this is written like an error code, in any case."""
    return _CODE.fullmatch(word) is not None


def _explanation(code: str) -> str:
    """What the code means and what to do, as plain text. Raises NotFound with similar codes."""
    explained = _explanations()
    wanted = code.upper()
    if wanted not in explained:
        near = get_close_matches(wanted, list(explained))
        raise NotFound(
            f"unknown error code {code[:60]!r}",
            code="E-HELP",
            why=f"did you mean {' or '.join(near)}?" if near else "",
            next="docs/errors.md lists all codes",
        )
    return f"{wanted}\n\n{explained[wanted]}\n"


def _explanations() -> dict[str, str]:
    page = next(path for path in _PAGES if path.exists()).read_text(encoding="utf-8")
    sections = [section.partition("\n") for section in page.split("\n## ")[1:]]
    return {heading.strip(): _LINK.sub(r"\1", text).strip() for heading, _, text in sections}


# --- completion: what a shell runs to complete a line; it asks the program -------

_BASH = """\
_{name}_completion() {{
    local IFS=$'\\n' typed="${{COMP_LINE:0:COMP_POINT}}" word kept each
    # Bash divides words at `=` and `:`, too, and replaces only what stands behind them.
    word="${{typed##*[[:space:]]}}"
    kept="${{word%"${{word##*[=:]}}"}}"
    COMPREPLY=()
    for each in $(env {variable}=complete_fish _TYPER_COMPLETE_FISH_ACTION=get-args \\
                      _TYPER_COMPLETE_ARGS="$typed" "$1"); do
        each="${{each%%$'\\t'*}}"
        COMPREPLY+=("${{each#"$kept"}}")
    done
}}

complete -o default -F _{name}_completion {name}"""
# A directory of `fpath`, from which zsh loads the script at the first TAB, or `source`.
_ZSH = """\
#compdef {name}

_{name}_completion() {{
  local tab=$'\\t' each
  local -a offered
  compset -P '--*='
  for each in ${{(f)"$(env {variable}=complete_fish _TYPER_COMPLETE_FISH_ACTION=get-args \\
                           _TYPER_COMPLETE_ARGS="${{words[1,$CURRENT]}}" {name})"}}; do
    # What others wrote is passed on as data, and never evaluated.
    each=${{${{each//\\\\/\\\\\\\\}}//:/\\\\:}}
    offered+=(${{each/$tab/:}})
  done
  if (( $#offered )); then
    _describe '' offered
  else
    _files
  fi
}}

compdef _{name}_completion {name}
if [[ "$zsh_eval_context[-1]" == loadautofunc ]]; then
  _{name}_completion
fi"""


def add_completion(app: typer.Typer, name: str) -> None:
    """Add `completion`, which prints the script for a shell."""

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
        put(_completion_script(name, completion_variable(name), shell) + "\n")


def _completion_script(name: str, variable: str, shell: str) -> str:
    """The script for bash, zsh or fish that completes the program `name`, which `variable` asks for completions.

    Differs from typer's own: bash also completes `@last` and `--option=value`, zsh the latter, and at the first TAB;
    zsh evaluates nothing that the program prints.
    """
    # Public, though typer declares no exports.
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    own = {"bash": _BASH, "zsh": _ZSH}
    if shell in own:
        return own[shell].format(name=name, variable=variable)
    return str(get_completion_script(prog_name=name, complete_var=variable, shell=shell))
