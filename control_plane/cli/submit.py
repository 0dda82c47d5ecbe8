"""`fleet submit`: a prompt becomes a work order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from control_plane.cli.common_options import Org
from control_plane.cli.completion import choices, listed
from control_plane.cli.connection import client
from control_plane.cli.orders import PANEL, follow_to_the_end
from control_plane.cli.races import submit_race
from shared.durations import parse_duration
from shared.errors import Invalid, Precondition
from shared.terminal.command_line import JsonFlag, examples, parse_labels, parse_params, print_json, put, say
from shared.terminal.output import printable
from shared.terminal.text_file import argument_text

if TYPE_CHECKING:
    from control_plane.client.fleet import FleetClient

Doc = dict[str, Any]


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command("submit", rich_help_panel=PANEL, epilog=EXAMPLES)(submit)


EXAMPLES = examples(
    "fleet submit 'Fix the failing test' --follow",
    "fleet submit - --project demo --label gpu=yes < prompt.md",
    "fleet submit 'Make it faster' --project demo --race 3",
    "fleet submit 'Document it' --after @last --follow",
    "fleet submit 'Release it' --project demo --approve risky --allow 'git push origin *'",
)


def submit(
    prompt: Annotated[str, typer.Argument(metavar="PROMPT", help="The task; `-` reads it from stdin.")],
    project: Annotated[
        str | None,
        typer.Option(
            "--project",
            help="The project's slug (default: the session's, or the only project).",
            autocompletion=listed("projects:slug"),
        ),
    ] = None,
    provider: Annotated[
        str | None,
        typer.Option(
            "--provider", help="The model provider (default: the project's).", autocompletion=listed("providers:name")
        ),
    ] = None,
    drone: Annotated[
        str | None, typer.Option("--drone", help="Run only on this drone.", autocompletion=listed("drones:name"))
    ] = None,
    label: Annotated[list[str] | None, typer.Option("--label", help="Required drone label k=v; repeats.")] = None,
    session: Annotated[
        str | None, typer.Option("--session", help="Continue this session.", autocompletion=listed("sessions:id"))
    ] = None,
    after: Annotated[
        list[str] | None,
        typer.Option(
            "--after",
            metavar="ORDER",
            help="Start when this order has succeeded, from its work; repeats.",
            autocompletion=listed("orders:id"),
        ),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option("--base", metavar="COMMIT", help="Start from this commit (default: the tip of the branch)."),
    ] = None,
    mode: Annotated[
        str | None,
        typer.Option(
            "--mode",
            help="plan (read-only), build, test, ship, develop, or one of `fleet mode ls`.",
            autocompletion=listed("modes:name"),
        ),
    ] = None,
    plan_first: Annotated[
        bool,
        typer.Option("--plan-first", help="Change nothing before a user has approved the agent's plan."),
    ] = False,
    thinking: Annotated[
        str | None,
        typer.Option(
            "--thinking",
            help="How much the model thinks: off, minimal, low, medium, high or xhigh (default: the session's, else "
            "the provider's).",
            autocompletion=choices("shared.work_order:ThinkingLevel"),
        ),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile",
            help="A profile, which sets what the other options do not.",
            autocompletion=listed("profiles:name"),
        ),
    ] = None,
    reviewer: Annotated[
        str | None,
        typer.Option(
            "--reviewer",
            metavar="MODEL",
            help="The provider, or its model, that reviews the change before it is delivered (default: the project's; "
            "none = no review).",
            autocompletion=listed("providers:name"),
        ),
    ] = None,
    keep_raw: Annotated[
        bool, typer.Option("--keep-raw", help="Keep the provider's raw answers; show --raw prints one.")
    ] = False,
    priority: Annotated[int, typer.Option("--priority", help="-100 to 100; higher runs first.")] = 0,
    max_iterations: Annotated[
        int | None, typer.Option("--max-iterations", help="Maximum steps (default 50; 0 = unlimited).")
    ] = None,
    cost_limit: Annotated[
        float | None, typer.Option("--cost-limit", help="Maximum cost in USD (default 3; 0 = unlimited).")
    ] = None,
    on_limit: Annotated[
        str | None,
        typer.Option(
            "--on-limit",
            help="At a limit of cost, steps or time: stop and keep the work, or ask a user (default stop).",
            autocompletion=choices("shared.budgets:OnLimit"),
        ),
    ] = None,
    max_run_seconds: Annotated[
        float | None, typer.Option("--max-run-seconds", help="Time limit in seconds (default 1800; 0 = unlimited).")
    ] = None,
    verify: Annotated[
        list[str] | None,
        typer.Option(
            "--verify", metavar="COMMAND", help="Command that must pass at the end, instead of the project's; repeats."
        ),
    ] = None,
    verify_attempts: Annotated[
        int | None, typer.Option("--verify-attempts", help="Maximum attempts of the model to fix failed checks.")
    ] = None,
    max_attempts: Annotated[
        int | None,
        typer.Option("--max-attempts", min=1, max=100, help="Maximum attempts if runs are lost (default 3)."),
    ] = None,
    progress_timeout: Annotated[
        float | None,
        typer.Option(
            "--progress-timeout", help="Seconds without progress after which a run is ended (default 900; 0 = never)."
        ),
    ] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option("--limit", metavar="NAME=VALUE", help="Any limit; `fleet limit ls` lists all; repeats."),
    ] = None,
    approve: Annotated[
        str | None,
        typer.Option(
            "--approve",
            help="Calls that require approval: yolo (none), risky or all (default: the session's, else yolo).",
            autocompletion=choices("shared.work_order:Approve"),
        ),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option("--allow", metavar="PATTERN", help="Shell pattern of commands that need no approval; repeats."),
    ] = None,
    approval_timeout: Annotated[
        str | None, typer.Option("--approval-timeout", help="Deny automatically after (30m, 24h; 0 = never).")
    ] = None,
    race: Annotated[
        int | None,
        typer.Option("--race", min=2, metavar="N", help="Submit it N times, and take the best result."),
    ] = None,
    models: Annotated[
        str | None,
        typer.Option("--models", metavar="A,B", help="Submit it once for each of these providers or models."),
    ] = None,
    pick: Annotated[
        str | None,
        typer.Option(
            "--pick",
            help="Who decides a race: first (verified work, default), person or judge.",
            autocompletion=choices("shared.races:Pick"),
        ),
    ] = None,
    rubric: Annotated[str | None, typer.Option("--rubric", help="What counts, for --pick judge.")] = None,
    idempotency_key: Annotated[
        str | None,
        typer.Option("--idempotency-key", help="A repeated request with the same key returns the same order."),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Follow the order until it ends; exit with its outcome.")
    ] = False,
    as_json: JsonFlag = False,
    org: Org = None,
) -> int:
    """Submit a prompt as a work order."""
    given = locals()
    request = _request(given)
    fleet = client(org)
    request["project"] = project or _project(fleet, session)
    if terms := _race(given):
        return submit_race(fleet, {**request, **terms}, key=idempotency_key, follow=follow, as_json=as_json)
    order = fleet.submit(request, idempotency_key=idempotency_key)
    if follow:
        return follow_to_the_end(fleet, order["id"], as_json=as_json)
    _print_order(order, as_json=as_json)
    return 0


def _project(fleet: FleetClient, session: str | None) -> str:
    """The session's project, else the only one. Raises Precondition without a project, Invalid with several."""
    from control_plane.declarations import projects, sessions

    if session is not None:
        return str(fleet.call(sessions.SHOW, session_id=session)["project"])
    slugs = [str(each["slug"]) for each in fleet.call(projects.LIST)]
    if not slugs:
        raise Precondition(
            "there is no project yet", code="E-PROJECT-NONE", next="fleet project add SLUG --git-url URL"
        )
    if len(slugs) > 1:
        raise Invalid(
            "--project is required",
            code="E-USAGE",
            why=f"there are several projects: {', '.join(slugs)}",
            next=f"fleet submit … --project {slugs[0]}",
        )
    return slugs[0]


_AS_THEY_ARE = (
    "provider",
    "drone",
    "session",
    "base",
    "mode",
    "plan_first",
    "thinking",
    "profile",
    "reviewer",
    "keep_raw",
    "priority",
    "max_iterations",
    "cost_limit",
    "max_run_seconds",
    "on_limit",
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
        "prompt": argument_text(prompt),
        "labels": parse_labels(given["label"] or []),
        "allow": given["allow"] or [],
        **({"verify": given["verify"]} if given["verify"] else {}),
        **({"limits": parse_params(given["limit"])} if given["limit"] else {}),
        "after": given["after"] or [],
        "approval_timeout": None if timeout is None else 0 if timeout == "0" else parse_duration(timeout),
    }


def _race(given: Doc) -> Doc:
    """The terms of a race, if the options describe one. Raises Invalid for options that only a race has."""
    if given["race"] is None and given["models"] is None:
        if given["pick"] or given["rubric"]:
            raise Invalid("--pick and --rubric are for races", code="E-USAGE", next="add --race N, or --models A,B")
        return {}
    models = [each.strip() for each in (given["models"] or "").split(",") if each.strip()]
    terms = {"count": given["race"], "models": models, "pick": given["pick"], "rubric": given["rubric"]}
    return {name: value for name, value in terms.items() if value is not None}


def _print_order(order: Doc, *, as_json: bool) -> None:
    if as_json:
        print_json(order)
        return
    put(f"{printable(order['id'])}\n")
    say(f"{order['status']}: {order['reason']}")
    say(f"  next  fleet follow {order['id']}")
