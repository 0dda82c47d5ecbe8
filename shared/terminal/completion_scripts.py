"""What a shell runs to complete a command line: it asks the program, through typer."""

from __future__ import annotations

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
  compset -P '--*='
  eval $(env _TYPER_COMPLETE_ARGS="${{words[1,$CURRENT]}}" {variable}=complete_zsh {name})
}}

compdef _{name}_completion {name}
if [[ "$zsh_eval_context[-1]" == loadautofunc ]]; then
  _{name}_completion
fi"""


def completion_script(name: str, variable: str, shell: str) -> str:
    """The script for bash, zsh or fish that completes the program `name`, which `variable` asks for completions.

    Differs from typer's own: bash also completes `@last` and `--option=value`, zsh the latter, and at the first TAB.
    """
    # Public, though typer declares no exports.
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    own = {"bash": _BASH, "zsh": _ZSH}
    if shell in own:
        return own[shell].format(name=name, variable=variable)
    return str(get_completion_script(prog_name=name, complete_var=variable, shell=shell))
