"""`drone run`: the loop alone, without a control plane."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from shared.outcome import GREEN
from shared.terminal.command_line import JsonFlag, parse_params, print_json, say
from shared.terminal.output import content_writer
from shared.terminal.text_file import argument_text

if TYPE_CHECKING:
    from drone.local.document import LocalResult

EXAMPLES = (
    'drone run "Make the tests pass" --repo . --model openai/gpt-x --api-key-env OPENAI_API_KEY',
    "drone run - --repo https://example.org/project.git --model openai/x --api-base http://127.0.0.1:8000/v1 < task.md",
)


def command(
    prompt: Annotated[str, typer.Argument(metavar="PROMPT|-", help="The task; - reads it from stdin.")],
    repo: Annotated[
        str,
        typer.Option("--repo", metavar="PATH|URL", help="A work tree, bare repository or URL; never written to."),
    ],
    model: Annotated[str, typer.Option("--model", help="LiteLLM model name, for example openai/gpt-x.")],
    api_base: Annotated[
        str | None, typer.Option("--api-base", metavar="URL", help="The API endpoint (default: the provider's own).")
    ] = None,
    mode: Annotated[
        Literal["plan", "build", "test", "ship", "develop"],
        typer.Option("--mode", help="What the agent may do; plan is read-only."),
    ] = "build",
    thinking: Annotated[
        Literal["off", "minimal", "low", "medium", "high", "xhigh"] | None,
        typer.Option("--thinking", help="How much the model thinks (default: as it does unasked)."),
    ] = None,
    max_iterations: Annotated[int, typer.Option("--max-iterations", min=0, help="Maximum steps (0 = unlimited).")] = 50,
    cost_limit: Annotated[
        float, typer.Option("--cost-limit", min=0, metavar="USD", help="Maximum cost (0 = unlimited).")
    ] = 3.0,
    max_run_seconds: Annotated[
        float, typer.Option("--max-run-seconds", min=0, help="Time limit in seconds (0 = unlimited).")
    ] = 1800,
    api_key_env: Annotated[
        str | None,
        typer.Option(
            "--api-key-env",
            metavar="VAR",
            help="Environment variable with the model's API key (default without --api-base: PROVIDER_API_KEY).",
        ),
    ] = None,
    sandbox: Annotated[
        Literal["auto", "bwrap", "docker", "none"], typer.Option("--sandbox", help="Sandbox for the model's commands.")
    ] = "auto",
    params: Annotated[
        list[str] | None,
        typer.Option("--param", metavar="k=v", help="Model parameter, such as temperature=0; repeats."),
    ] = None,
    context_window: Annotated[
        int, typer.Option("--context-window", min=0, metavar="TOKENS", help="Context window (0 = LiteLLM's value).")
    ] = 0,
    trajectory: Annotated[
        Path | None, typer.Option("--trajectory", metavar="FILE", help="Write the trajectory, for `drone replay`.")
    ] = None,
    as_json: JsonFlag = False,
) -> int:
    """Run the agent loop locally on a copy of a repository and print the patch."""
    from drone.local.order import LocalWishes
    from drone.local.run import run_here
    from drone.processes.reaping import become_reaper

    become_reaper()  # so that every process started by the model can be found and ended, even if it detaches
    result = run_here(
        LocalWishes(
            prompt=argument_text(prompt),
            repo=repo,
            model=model,
            api_base=api_base,
            mode=mode,
            thinking=thinking,
            max_iterations=max_iterations,
            cost_limit=cost_limit,
            max_run_seconds=max_run_seconds,
            api_key_variable=api_key_env,
            sandbox=sandbox,
            context_window=context_window,
            params=parse_params(params or ()),
        ),
        os.environ,
    )
    _show(result, trajectory, as_json=as_json)
    if result.interrupted:
        raise KeyboardInterrupt  # the work is printed; now the command ends like any interrupted one
    return 0 if result.outcome in GREEN else 1


def _show(result: LocalResult, trajectory: Path | None, *, as_json: bool) -> None:
    from drone.local.document import document, trajectory_of

    if trajectory is not None:
        try:
            trajectory.write_text(json.dumps(trajectory_of(result), ensure_ascii=False) + "\n", encoding="utf-8")
        except OSError as error:
            # The patch is the work, and is printed anyway.
            say(f"the trajectory could not be written: {trajectory}: {error.strerror}")
    if as_json:
        print_json(document(result))
    else:
        _print_patch(result)


def _print_patch(result: LocalResult) -> None:
    """Print the patch byte for byte: files may be in any encoding, and the patch must apply."""
    if result.patch:
        content_writer()(result.patch)
    else:
        say("no files were changed" if result.patch == b"" else "no patch was created")
