"""`fleet organization …`: the isolated units, and who works in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from control_plane.cli import transfer
from control_plane.cli.connection import Org, client
from shared.terminal.command_line import JsonFlag, confirmed, examples, group, print_json, print_table, put, say
from shared.terminal.output import printable

if TYPE_CHECKING:
    pass

PANEL = "Teams"
Doc = dict[str, Any]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The organization's name.")]
Description = Annotated[str | None, typer.Option("--description", help="Its purpose, which its agents are told.")]
Concurrency = Annotated[int | None, typer.Option("--concurrency", min=0, help="Tasks in progress at once; 0: any.")]
HandOffs = Annotated[
    int | None,
    typer.Option("--max-hand-offs", min=0, help="From agent to agent in a row, until a task comes back; 0: any."),
]


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    commands = group("organization", "Keep teams apart: each has its own projects, agents, tasks and tokens.")
    commands.command("add", epilog=examples("fleet organization add payments --description 'Card payments'"))(add)
    commands.command("ls", epilog=examples("fleet organization ls"))(list_)
    commands.command("show", epilog=examples("fleet organization show payments"))(show)
    commands.command("edit", epilog=examples("fleet organization edit payments --concurrency 8 --project shop"))(edit)
    commands.command("rm", epilog=examples("fleet organization rm payments --yes"))(remove)
    commands.command("pause", epilog=examples("fleet organization pause payments"))(pause)
    commands.command("resume", epilog=examples("fleet organization resume payments"))(resume)
    transfer.add_commands(commands)
    app.add_typer(commands, rich_help_panel=PANEL)


def add(
    name: Name,
    description: Description = None,
    concurrency: Concurrency = None,
    max_hand_offs: HandOffs = None,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Make an organization. This needs a token that may act everywhere."""
    request = {"name": name, "description": description, "concurrency": concurrency, "max_hand_offs": max_hand_offs}
    made = client(org).create_organization({key: value for key, value in request.items() if value is not None})
    _tell(made, as_json=as_json)


def list_(as_json: JsonFlag = False, org: Org = None) -> None:
    """List the organizations that you may see."""
    found = client(org).list_organizations()
    if as_json:
        print_json(found)
        return
    rows = [
        (
            each["name"],
            f"{each['acronym']}-…",
            each["agent_count"],
            each["tasks"]["open"],
            each["tasks"]["in_progress"],
            _cost(each["totals"]["cost_usd"]),
            "paused" if each["paused"] else "",
        )
        for each in found
    ]
    print_table(("ORGANIZATION", "TASKS AS", "AGENTS", "OPEN", "IN PROGRESS", "COST", ""), rows)


def show(name: Name, as_json: JsonFlag = False, org: Org = None) -> None:
    """Show an organization and its agents."""
    _tell(client(org).show_organization(name), as_json=as_json)


def edit(
    name: Name,
    description: Description = None,
    project: Annotated[
        str | None, typer.Option("--project", help="Where tasks work that name no project; none: nowhere.")
    ] = None,
    concurrency: Concurrency = None,
    max_hand_offs: HandOffs = None,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Change an organization; only what is named changes, and the name never does."""
    given = {"description": description, "concurrency": concurrency, "max_hand_offs": max_hand_offs}
    changes: Doc = {key: value for key, value in given.items() if value is not None}
    if project is not None:
        changes["project"] = None if project == "none" else project
    _tell(client(org).edit_organization(name, changes), as_json=as_json)


def remove(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Remove an organization with its agents, tasks, orders, runs, tokens and drones. Nothing of it is kept."""
    confirmed(f"Remove organization {name}, with all its agents, tasks and runs?", yes=yes)
    removed = client(org).remove_organization(name)
    if as_json:
        print_json(removed)
        return
    for warning in removed["warnings"]:
        say(warning)
    say(f"organization {name} is removed")


def pause(name: Name, as_json: JsonFlag = False, org: Org = None) -> None:
    """Begin no more of its tasks; those in progress go on."""
    paused = client(org).pause_organization(name)
    if as_json:
        print_json(paused)
    else:
        at_work = paused["tasks"]["in_progress"]
        say(f"{name} begins no more tasks" + (f"; {at_work} in progress go on" if at_work else ""))


def resume(name: Name, as_json: JsonFlag = False, org: Org = None) -> None:
    """Let its tasks begin again."""
    resumed = client(org).resume_organization(name)
    if as_json:
        print_json(resumed)
    else:
        say(f"{name} begins tasks again; {resumed['tasks']['in_progress']} in progress")


def _tell(organization: Doc, *, as_json: bool) -> None:
    if as_json:
        print_json(organization)
        return
    tasks = ", ".join(f"{number} {status}" for status, number in organization["tasks"].items() if number)
    totals = organization["totals"]
    lines = [
        f"organization  {organization['name']}  ({organization['acronym']}-…)",
        f"purpose       {printable(organization['description']) or '-'}",
        f"project       {organization['project'] or 'the only one, or as each task says'}",
        f"at once       {organization['concurrency'] or 'any number of'} tasks; "
        f"{organization['max_hand_offs'] or 'any number of'} hand-offs in a row",
        f"tasks         {tasks or 'none'}",
        f"runs          {totals['runs']}, {_cost(totals['cost_usd'])}",
        *(["paused        since " + str(organization["paused_at"])] if organization["paused"] else []),
        f"agents        {organization['agent_count']}",
    ]
    put("\n".join([*lines, *_tree(organization["agents"] or [])]) + "\n")


def _cost(usd: float | None) -> str:
    return "cost unknown" if usd is None else f"${usd:.4f}"


def _tree(nodes: list[Doc]) -> list[str]:
    """The agents, each below its boss."""
    from shared.roster import draw, flattened

    return [printable(line) for line in draw(flattened(nodes)).splitlines()]
