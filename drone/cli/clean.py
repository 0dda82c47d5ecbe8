"""`drone clean`: remove now what the running drone removes every hour."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from shared.terminal.command_line import JsonFlag, print_json, put

if TYPE_CHECKING:
    from drone.runs.cleaning import CleanedKind

EXAMPLES = ("drone clean --dry-run", "drone clean")


def command(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Remove runs, workspaces and mirrors that were not used for long, as `[keep]` of the policy says.

    A running drone does it every hour. What is in use stays.
    """
    from dataclasses import asdict

    from drone.installation import policy, settings
    from drone.runs.cleaning import clean
    from shared.clock import SystemClock

    chosen = settings.load()
    config = chosen.home.config()
    rules = policy.load(chosen.policy_file).keep
    found = clean(chosen.home.runs_dir, config, rules, SystemClock(), dry_run=dry_run)
    if as_json:
        print_json({"dry_run": dry_run, "kinds": [asdict(each) for each in found]})
    else:
        put(_lines(found, "would be removed" if dry_run else "removed"))


def _lines(found: list[CleanedKind], done: str) -> str:
    lines = [
        f"{each.kind:10}  {each.removed} of {each.held} {done}, {each.removed_bytes / 1e6:,.1f} MB" for each in found
    ]
    return "\n".join(lines) + "\n"
