"""`drone start`: take orders until asked to stop."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from shared.terminal.command_line import parse_labels, read_secret

EXAMPLES = (
    "drone start",
    "drone start --metrics-port 9464",
    "DRONE_TOKEN=fj_... drone start --ephemeral --url https://fleet.example.org --idle 10m",
)
PANEL = "Ephemeral drones"
ONLY_EPHEMERAL = ("url", "token", "name", "label", "concurrency", "sandbox", "idle", "orders", "allow_http", "ca")


def command(
    context: typer.Context,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            "--metrics-port",
            metavar="PORT",
            min=1,
            max=65535,
            envvar="DRONE_METRICS_PORT",
            help="Serve metrics for Prometheus at http://127.0.0.1:PORT/metrics (default: off).",
        ),
    ] = None,
    ephemeral: Annotated[
        bool,
        typer.Option(
            "--ephemeral",
            help="Register with a pool's token in a temporary home, work, unregister when there is nothing to do.",
        ),
    ] = False,
    url: Annotated[
        str | None, typer.Option("--url", metavar="URL", help="The control plane's URL.", rich_help_panel=PANEL)
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            metavar="TOKEN|-",
            envvar="DRONE_TOKEN",
            help="The pool's token; - reads it from stdin.",
            rich_help_panel=PANEL,
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("--name", help="The drone's name (default: the pool's with a suffix).", rich_help_panel=PANEL),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option("--label", metavar="K=V", help="Label that orders can require; repeats.", rich_help_panel=PANEL),
    ] = None,
    concurrency: Annotated[
        int, typer.Option("--concurrency", min=1, max=64, help="Maximum concurrent orders.", rich_help_panel=PANEL)
    ] = 1,
    sandbox: Annotated[
        Literal["auto", "bwrap", "docker", "none"],
        typer.Option("--sandbox", help="Sandbox for the model's commands.", rich_help_panel=PANEL),
    ] = "auto",
    idle: Annotated[
        str,
        typer.Option(
            "--idle",
            metavar="DURATION",
            help="Leave after this time without work: 30s, 5m, 2h.",
            rich_help_panel=PANEL,
        ),
    ] = "5m",
    orders: Annotated[
        int | None,
        typer.Option(
            "--orders",
            metavar="N",
            min=1,
            help="Leave after N orders (default: no limit).",
            rich_help_panel=PANEL,
        ),
    ] = None,
    allow_http: Annotated[
        bool,
        typer.Option(
            "--allow-http",
            envvar="DRONE_ALLOW_HTTP",
            help="Allow plain http to another machine.",
            rich_help_panel=PANEL,
        ),
    ] = False,
    ca: Annotated[
        Path | None,
        typer.Option(
            "--ca",
            metavar="FILE",
            help="Certificates of authorities to trust, in addition to the machine's.",
            rich_help_panel=PANEL,
        ),
    ] = None,
) -> int:
    """Take work orders and run them until Ctrl-C."""
    if not ephemeral:
        _refuse_without_effect(context)
        return _start(metrics_port)
    from drone.installation import settings
    from drone.installation.registration import Wishes
    from drone.worker.ephemeral import run_ephemeral
    from drone.worker.leave_rule import LeaveRule
    from shared.durations import parse_duration

    rule = LeaveRule(parse_duration(idle, "--idle 5m"), orders)
    joins = _joins(url, token)
    wishes = Wishes(
        *joins,
        name=name,
        labels=parse_labels(label or ()),
        concurrency=concurrency,
        sandbox=sandbox,
        allow_http=allow_http,
        ca_file=ca,
        ephemeral=True,
    )
    _prepare()
    return run_ephemeral(wishes, rule, settings.load().environ, metrics_port=metrics_port)


def _refuse_without_effect(context: typer.Context) -> None:
    """Raise Invalid for an option that only an ephemeral drone has."""
    from shared.errors import Invalid

    sources = {each: context.get_parameter_source(each) for each in ONLY_EPHEMERAL}
    typed = [each for each, source in sources.items() if source is not None and source.name == "COMMANDLINE"]
    if typed:
        raise Invalid(
            f"--{typed[0].replace('_', '-')} is only for an ephemeral drone",
            code="E-EPHEMERAL",
            why="another drone has what it was registered with",
            next="drone start --ephemeral --url URL --token TOKEN        or: drone register --url URL --token TOKEN",
        )


def _joins(url: str | None, token: str | None) -> tuple[str, str]:
    """The address and the token. Raises Invalid if one is missing."""
    from shared.errors import Invalid

    if not url or not token:
        raise Invalid(
            f"--ephemeral needs {'--token or DRONE_TOKEN' if url else '--url'}",
            code="E-EPHEMERAL",
            why="the drone registers itself, with the token of a pool",
            next="drone start --ephemeral --url URL --token TOKEN        (the token: fleet pool add NAME)",
        )
    return url, read_secret(token, "join token")


def _prepare() -> None:
    """What every start checks first. Raises Invalid, Precondition for a policy that cannot be read."""
    import os

    from drone.installation import policy, settings
    from shared.terminal.private_files import PRIVATE_UMASK

    policy.load(settings.load().policy_file)
    os.umask(PRIVATE_UMASK)


def _start(metrics_port: int | None) -> int:
    from drone.installation import settings
    from drone.worker.parent import start
    from drone.workspace import copy_owner_config
    from shared.terminal.output import say
    from shared.terminal.private_files import make_private

    chosen = settings.load()
    config = chosen.home.config()  # reports a missing registration before anything is started
    _prepare()
    for open_to_others in filter(None, (chosen.home.make_private(), make_private(Path(config.workspace), []))):
        say(f"WARNING: {open_to_others}")
    copy_owner_config(chosen.home.git_config_file, chosen.environ)
    return start(chosen.home, metrics_port=metrics_port)
