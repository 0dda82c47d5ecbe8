"""`fleet agent add|ls|show|edit|rm|tree`: the identities that models take on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from control_plane.cli.connection import Org, client
from control_plane.cli.instructions_file import read_instructions
from shared.errors import Invalid
from shared.terminal.command_line import (
    JsonFlag,
    confirmed,
    examples,
    group,
    parse_labels,
    print_json,
    print_table,
    put,
    say,
)
from shared.terminal.output import printable

if TYPE_CHECKING:
    from shared.work_order import RosterAgent

PANEL = "Teams"
NONE = "none"
"""Takes a value away; of a model `default` does."""
_SHOWN = 60
"""Characters of a description in a list."""
Doc = dict[str, Any]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The agent's name, which is also its tag: @NAME.")]
Instructions = Annotated[
    str | None, typer.Option("--instructions", metavar="FILE|-", help="Markdown file to upload; - reads stdin.")
]
InstructionsPath = Annotated[
    str | None,
    typer.Option("--instructions-path", metavar="PATH", help="Or: Markdown file in the project's repository."),
]
Project = Annotated[
    str | None, typer.Option("--project", metavar="SLUG", help="The repository of that file; default: the task's.")
]
Boss = Annotated[str | None, typer.Option("--boss", metavar="NAME", help="Whom it reports to; none: nobody.")]
MaxIterations = Annotated[int | None, typer.Option("--max-iterations", help="Answers of the model in a run; 0: any.")]
CostLimit = Annotated[str | None, typer.Option("--cost-limit", metavar="USD", help="The most that a run may cost.")]
ProviderOption = Annotated[str | None, typer.Option("--provider", help="Where its model is reached.")]
Model = Annotated[str | None, typer.Option("--model", help="In place of the provider's; default: the provider's own.")]
Label = Annotated[list[str] | None, typer.Option("--label", metavar="k=v", help="What its drone must have; repeats.")]
Concurrency = Annotated[int | None, typer.Option("--concurrency", help="Tasks in progress at once; 0: any number.")]


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    commands = group("agent", "Give models an identity: instructions, a boss, limits.")
    commands.command("add", epilog=examples("fleet agent add lead --instructions agents/lead.md"))(add)
    commands.command("ls", epilog=examples("fleet agent ls", "fleet agent ls --all"))(list_)
    commands.command("show", epilog=examples("fleet agent show lead"))(show)
    commands.command(
        "edit", epilog=examples("fleet agent edit backend --boss lead", "fleet agent edit lead --boss none")
    )(edit)
    commands.command("rm", epilog=examples("fleet agent rm backend"))(remove)
    commands.command("tree", epilog=examples("fleet agent tree"))(tree)
    app.add_typer(commands, rich_help_panel=PANEL)


def add(
    name: Name,
    instructions: Instructions = None,
    instructions_path: InstructionsPath = None,
    project: Project = None,
    boss: Boss = None,
    max_iterations: MaxIterations = None,
    cost_limit: CostLimit = None,
    provider: ProviderOption = None,
    model: Model = None,
    label: Label = None,
    concurrency: Concurrency = None,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Add an agent, or bring a removed one back. A model describes it from its instructions, a little later."""
    request = {
        "name": name,
        "instructions": _text(name, instructions),
        "instructions_path": instructions_path,
        "project": project,
        "boss": boss,
        "max_iterations": max_iterations,
        "cost_limit": _usd(cost_limit),
        "provider": provider,
        "model": model,
        "labels": parse_labels(label or []),
        "concurrency": concurrency,
    }
    _tell(client(org).create_agent(_given(request)), as_json=as_json)


def list_(
    everyone: Annotated[bool, typer.Option("--all", help="Also those that were removed.")] = False,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """List the agents."""
    found = client(org).list_agents(include_removed=everyone)
    if as_json:
        print_json(found)
        return
    rows = [
        (f"{a['name']} (removed)" if a["is_removed"] else a["name"], a["boss"], a["model"], _cut(a["description"]))
        for a in found
    ]
    print_table(("AGENT", "BOSS", "MODEL", "DESCRIPTION"), rows, empty="no agents; fleet agent add makes one")


def show(name: Name, as_json: JsonFlag = False, org: Org = None) -> None:
    """Show an agent with its instructions, and what its runs cost."""
    _tell(client(org).show_agent(name), as_json=as_json, in_full=True)


def edit(
    name: Name,
    instructions: Instructions = None,
    instructions_path: InstructionsPath = None,
    project: Project = None,
    boss: Boss = None,
    max_iterations: MaxIterations = None,
    cost_limit: CostLimit = None,
    provider: ProviderOption = None,
    model: Model = None,
    label: Label = None,
    no_labels: Annotated[bool, typer.Option("--no-labels", help="Any drone may run it.")] = False,
    concurrency: Concurrency = None,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Change an agent; only what is named changes.

    `none` takes boss, project, provider or cost limit away, `default` the model.
    """
    if label and no_labels:
        raise Invalid("--label and --no-labels are both given", code="E-USAGE", next="leave one of them out")
    changes = {
        "instructions": _text(name, instructions),
        "instructions_path": instructions_path,
        "max_iterations": max_iterations,
        "labels": {} if no_labels else parse_labels(label) if label else None,
        "concurrency": concurrency,
    }
    removable = {"project": project, "boss": boss, "provider": provider}
    edits = _given(changes) | {key: None if value == NONE else value for key, value in _given(removable).items()}
    if model is not None:
        edits["model"] = None if model == "default" else model
    if cost_limit is not None:
        edits["cost_limit"] = None if cost_limit == NONE else _usd(cost_limit)
    _tell(client(org).edit_agent(name, edits), as_json=as_json)


def remove(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: JsonFlag = False,
    org: Org = None,
) -> None:
    """Remove an agent; what it cost stays known, and those that report to it stand at the top from now on."""
    confirmed(f"Remove agent {name}?", yes=yes)
    agent = client(org).remove_agent(name)
    if as_json:
        print_json(agent)
        return
    _warn(agent)
    say(f"agent {name} is removed")


def tree(as_json: JsonFlag = False, org: Org = None) -> None:
    """Draw who reports to whom, as the agents themselves are shown it."""
    nodes = client(org).agent_tree()
    if as_json:
        print_json(nodes)
        return
    if not nodes:
        say("no agents; fleet agent add makes one")
        return
    from shared.roster import draw

    put(printable(draw(_roster(nodes))) + "\n")


def _roster(nodes: Iterable[Doc], boss: str | None = None) -> Iterator[RosterAgent]:
    from shared.work_order import RosterAgent

    for node in nodes:
        yield RosterAgent(name=node["name"], boss=boss, description=node["description"])
        yield from _roster(node["reports"], node["name"])


def _text(name: str, file: str | None) -> str | None:
    return read_instructions(file, name) if file is not None else None


def _given(fields: Doc) -> Doc:
    return {key: value for key, value in fields.items() if value is not None}


def _usd(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return float(text.removeprefix("$"))
    except ValueError:
        raise Invalid(f"{text[:40]!r} is not a sum in USD", code="E-BUDGET", next="--cost-limit 0.50") from None


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _warn(agent: Doc) -> None:
    for warning in agent["warnings"]:
        say(f"warning: {warning}")


def _tell(agent: Doc, *, as_json: bool, in_full: bool = False) -> None:
    if as_json:
        print_json(agent)
        return
    _warn(agent)
    lines = [
        f"agent        {agent['name']}{' (removed)' if agent['is_removed'] else ''}",
        f"description  {printable(agent['description']) or 'none yet'}",
        f"boss         {agent['boss'] or 'nobody'}",
        f"reports      {', '.join(agent['reports']) or 'nobody'}",
        f"model        {agent['model'] or 'the default of its provider'}",
        f"provider     {agent['provider'] or 'that of the project'}",
        f"limits       {agent['max_iterations'] or 'any number of'} iterations, {_limit(agent['cost_limit'])}",
        f"labels       {', '.join(f'{key}={value}' for key, value in agent['labels'].items()) or 'any drone'}",
        f"at once      {agent['concurrency'] or 'any number of'} tasks",
        f"read from    {_source(agent)}",
    ]
    if in_full:
        lines += [*_spent(agent["totals"]), *(["", printable(agent["instructions"])] if agent["instructions"] else [])]
    put("\n".join(lines) + "\n")


def _limit(cost: float | None) -> str:
    return "the usual cost" if cost is None else f"${cost:.2f} a run" if cost else "any cost"


def _source(agent: Doc) -> str:
    if agent["instructions_path"] is None:
        return "what was uploaded"
    where = f"of project {agent['project']}" if agent["project"] else "of the task's project"
    return f"{agent['instructions_path']} on the default branch {where}"


def _spent(totals: Doc | None) -> list[str]:
    if totals is None:
        return []
    known = "unknown" if totals["cost_usd"] is None else f"${totals['cost_usd']:.4f}"
    more = f", and {totals['unknown_costs']} of unknown cost" if totals["unknown_costs"] and known != "unknown" else ""
    tokens = f"{totals['input_tokens']} tokens in, {totals['output_tokens']} out"
    return [f"runs         {totals['runs']}: {tokens}, cost {known}{more}"]
