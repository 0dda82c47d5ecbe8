"""`drone replay`: play a recorded run with the real tools, and report the first observation that differs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from shared.terminal.command_line import JsonFlag, print_json, put
from shared.terminal.output import printable
from shared.visible_text import visible

if TYPE_CHECKING:
    from drone.replay import ReplayResult
    from drone.replay.comparing import Difference, Observation

EXAMPLES = (
    "drone replay RUN.traj.json --repo .",
    "fleet trajectory ORDER --output RUN.traj.json && drone replay RUN.traj.json --repo . --json",
)


def command(
    trajectory: Annotated[
        Path, typer.Argument(metavar="TRAJECTORY", help="A recorded run in the format mini-swe-agent-1.1.")
    ],
    repo: Annotated[
        str,
        typer.Option("--repo", metavar="PATH|URL", help="The repository of the run; never written to."),
    ],
    sandbox: Annotated[
        Literal["auto", "bwrap", "docker", "none"], typer.Option("--sandbox", help="Sandbox for the commands.")
    ] = "auto",
    command_timeout: Annotated[
        float | None,
        typer.Option(
            "--command-timeout",
            min=0,
            metavar="S",
            help="Time limit per command in seconds (default: as recorded; 0 = none).",
        ),
    ] = None,
    as_json: JsonFlag = False,
) -> int:
    """Replay a recorded run through the agent loop with the real tools and compare the results."""
    from drone.processes.reaping import become_reaper
    from drone.replay import ReplayWishes, load, replay

    recording = load(trajectory)
    become_reaper()  # so that every process started by a command can be found and ended, even if it detaches
    result = replay(recording, ReplayWishes(repo, sandbox, command_timeout), os.environ)
    if as_json:
        print_json(result.document())
    else:
        put(_text(result))
    return 0 if result.same else 1


def _text(result: ReplayResult) -> str:
    if result.difference is not None:
        return _difference(result.difference)
    counted = f"{_number(result.compared, 'observation')} in {_number(result.steps, 'step')}"
    skipped = [
        (result.not_run, "call", "skipped (not run in the recording, or not available here)"),
        (result.unreadable, "observation", "not recorded, or in an unknown format"),
        (result.left, "recorded answer", "not played because the run had ended"),
    ]
    notes = "".join(f"; {_number(count, what)} {why}" for count, what, why in skipped if count)
    return f"{'identical' if result.same else 'not identical'}: {counted}{notes}\n"


def _difference(found: Difference) -> str:
    lines = [
        f"step {found.step}, call {found.call} differs: {found.made.tool}",
        *(f"  {line}" for line in visible(found.made.command).split("\n")),
        f"expected: {_ended(found.expected)}",
        f"actual:   {_ended(found.actual)}",
    ]
    return printable("\n".join([*lines, found.diff() or "the output is the same"])) + "\n"


def _ended(seen: Observation) -> str:
    if seen.timed_out:
        return "timed out"
    return "no return code" if seen.return_code is None else f"return code {seen.return_code}"


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
