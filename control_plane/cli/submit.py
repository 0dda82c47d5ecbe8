"""`fleet submit`: a prompt becomes a work order."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from control_plane.cli.connection import Org, client
from control_plane.cli.orders import PANEL, follow_to_the_end
from control_plane.cli.tokens import seconds
from shared.errors import Invalid
from shared.terminal.command_line import JsonFlag, examples, parse_labels, print_json, put, say

Doc = dict[str, Any]


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command("submit", rich_help_panel=PANEL, epilog=EXAMPLES)(submit)


EXAMPLES = examples(
    "fleet submit 'Fix the failing test' --project demo --follow",
    "fleet submit - --project demo --label gpu=yes < prompt.md",
    "fleet submit 'Release it' --project demo --approve risky --allow 'git push origin *'",
)


def submit(
    prompt: Annotated[str, typer.Argument(metavar="PROMPT", help="What to do; `-` reads it from stdin.")],
    project: Annotated[str, typer.Option("--project", help="The project's slug.")],
    provider: Annotated[
        str | None, typer.Option("--provider", help="The model provider; default: the project's.")
    ] = None,
    drone: Annotated[str | None, typer.Option("--drone", help="Run on this drone and no other.")] = None,
    label: Annotated[list[str] | None, typer.Option("--label", help="k=v that the drone must have; repeats.")] = None,
    session: Annotated[str | None, typer.Option("--session", help="Go on in this session.")] = None,
    mode: Annotated[str | None, typer.Option("--mode", help="plan, build, test, ship or develop.")] = None,
    priority: Annotated[int, typer.Option("--priority", help="-100 to 100; higher goes first.")] = 0,
    max_iterations: Annotated[
        int | None, typer.Option("--max-iterations", help="Answers of the model; 0: no limit.")
    ] = None,
    cost_limit: Annotated[float | None, typer.Option("--cost-limit", help="USD; 0: no limit.")] = None,
    max_run_seconds: Annotated[float | None, typer.Option("--max-run-seconds", help="0: no limit.")] = None,
    verify_attempts: Annotated[
        int | None, typer.Option("--verify-attempts", help="How often a failed verification goes back to the model.")
    ] = None,
    max_attempts: Annotated[
        int | None,
        typer.Option("--max-attempts", min=1, max=100, help="How many runs may be lost; default 3."),
    ] = None,
    progress_timeout: Annotated[
        float | None,
        typer.Option("--progress-timeout", help="Seconds without any progress that end a run; 0: none; default 900."),
    ] = None,
    approve: Annotated[
        str | None, typer.Option("--approve", help="yolo, risky or all; default: the session's, else yolo.")
    ] = None,
    allow: Annotated[
        list[str] | None, typer.Option("--allow", metavar="PATTERN", help="A command that needs no approval; repeats.")
    ] = None,
    approval_timeout: Annotated[
        str | None, typer.Option("--approval-timeout", help="Then a call is denied: 30m, 24h; 0: it waits on.")
    ] = None,
    idempotency_key: Annotated[
        str | None, typer.Option("--idempotency-key", help="The same key never submits twice.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Watch it to its end; exit with its outcome.")] = False,
    as_json: JsonFlag = False,
    org: Org = None,
) -> int:
    """Submit a prompt as a work order."""
    request = _request(locals())
    fleet = client(org)
    order = fleet.submit(request, idempotency_key=idempotency_key)
    if follow:
        return follow_to_the_end(fleet, order["id"], as_json=as_json)
    _print_order(order, as_json=as_json)
    return 0


_AS_THEY_ARE = (
    "project",
    "provider",
    "drone",
    "session",
    "mode",
    "priority",
    "max_iterations",
    "cost_limit",
    "max_run_seconds",
    "verify_attempts",
    "max_attempts",
    "progress_timeout",
    "approve",
)


def _request(given: Doc) -> Doc:
    """The request that the options describe. Raises Invalid if they contradict each other."""
    if given["drone"] and given["label"]:
        raise Invalid("--drone and --label cannot be used together", code="E-USAGE", next="leave one of them out")
    prompt, timeout = given["prompt"], given["approval_timeout"]
    return {
        **{name: given[name] for name in _AS_THEY_ARE},
        "prompt": sys.stdin.read() if prompt == "-" else prompt,
        "labels": parse_labels(given["label"] or []),
        "allow": given["allow"] or [],
        "approval_timeout": None if timeout is None else 0 if timeout == "0" else seconds(timeout),
    }


def _print_order(order: Doc, *, as_json: bool) -> None:
    if as_json:
        print_json(order)
        return
    put(f"{order['id']}\n")
    say(f"{order['status']}: {order['reason']}")
    say(f"  next  fleet follow {order['id']}")
