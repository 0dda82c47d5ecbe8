"""`fleet graph …`: submitting a file of orders, and showing a graph."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import typer

from control_plane.cli.answers import cost, exit_code, for_people, outcome_word, print_answer
from control_plane.cli.common_options import Org
from control_plane.cli.completion import listed
from control_plane.cli.connection import client
from control_plane.cli.group_follow import follow_group
from shared.errors import Invalid
from shared.terminal.command_line import JsonFlag, examples, print_json_line, put, say
from shared.terminal.text_file import text_of

Doc = dict[str, Any]
_ENDED = {"blocked", "succeeded", "failed", "canceled"}
_FORMAT = """\
The file is YAML or JSON: {project, provider, name, orders: [{name, prompt, after: [NAME, …], …}, …]}."""


def add_others(group: typer.Typer) -> None:
    """Register the commands."""
    group.command("run", epilog=examples("fleet graph run release.yaml --follow"))(run)


def run(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The file with the orders; `-` reads it from stdin.")],
    project: Annotated[
        str | None,
        typer.Option(
            "--project",
            help="Project of the orders that name none (default: the file's).",
            autocompletion=listed("projects:slug"),
        ),
    ] = None,
    provider: Annotated[
        str | None,
        typer.Option(
            "--provider",
            help="Provider of the orders that name none (default: the file's, else the project's).",
            autocompletion=listed("providers:name"),
        ),
    ] = None,
    idempotency_key: Annotated[
        str | None,
        typer.Option("--idempotency-key", help="A repeated request with the same key returns the same graph."),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Follow the graph until nothing more can start.")] = False,
    as_json: JsonFlag = False,
    org: Org = None,
) -> int:
    """Submit the orders in a file, which start after each other."""
    from control_plane.contract.declarations.graphs import SUBMIT, GraphRequest
    from control_plane.contract.validation.invalid_requests import checked

    given = {name: value for name, value in (("project", project), ("provider", provider)) if value is not None}
    request = checked(GraphRequest, {**_read(file), **given}, form="fleet graph run --help")
    fleet = client(org)
    graph = fleet.call(SUBMIT, request, idempotency_key=idempotency_key)
    if follow:
        return _followed(fleet, graph, as_json=as_json)
    print_answer(graph, graph_text, as_json=as_json)
    if not as_json:
        say(f"  next  fleet graph show {graph['id']}")
    return 0


def graph_text(graph: Doc) -> str:
    """The graph's state, and a line for each order."""
    done = f"{sum(exit_code(order) == 0 for order in graph['orders'])} of {graph['total']} orders done"
    name = f"  {graph['name']}" if graph["name"] else ""
    names = {order["id"]: order["key"] for order in graph["orders"]}
    width = max((len(order["key"]) for order in graph["orders"]), default=0)
    lines = [
        f"graph    {graph['id']}{name}",
        f"status   {outcome_word(graph)}: {done}, {cost(graph['cost_usd'])}",
        "",
        *(_line(order, names, width) for order in graph["orders"]),
    ]
    return "\n".join(lines)


def _line(order: Doc, names: dict[str, str], width: int) -> str:
    after = ", ".join(names.get(each, each) for each in order["after"])
    what = order["branch"] if order["status"] == "succeeded" and order["branch"] else order["reason"]
    behind = f"  after {after}" if after else ""
    return f"{_mark(order)} {order['key']:<{width}}  {order['id']}  {outcome_word(order)}{behind}  {what}"


def _mark(order: Doc) -> str:
    from control_plane.cli.rendering import mark_of

    return mark_of(order)[0] if order["ended_at"] else {"queued": "·"}.get(order["status"], "●")


def _followed(fleet: Any, graph: Doc, *, as_json: bool) -> int:
    """Print each change until nothing more can start; 0 if all orders are done or unchanged, else 1."""
    from control_plane.contract.declarations.graphs import SHOW

    again = partial(fleet.call, SHOW, graph_id=graph["id"])
    graph = follow_group(graph, again, lambda found: found["status"] in _ENDED, _change, as_json=as_json)
    if as_json:
        print_json_line(graph)
    else:
        put(f"\n{graph_text(for_people(graph))}\n")
    return exit_code(graph)


def _change(order: Doc) -> str:
    return f"{_mark(order)} {order['key']} {outcome_word(order)}: {order['reason']}"


def _read(file: str) -> Doc:
    """The contents of the file. Raises NotFound, and Invalid if it is not a mapping."""
    import yaml  # type: ignore[import-untyped]

    try:
        content = yaml.safe_load(text_of(file))
    except yaml.YAMLError as error:
        why = str(error).replace("\n", " ")[:300]
        raise Invalid(
            f"{file} is neither YAML nor JSON", code="E-GRAPH-FILE", why=why, next="fleet help E-GRAPH-FILE"
        ) from None
    if not isinstance(content, dict):
        raise Invalid(f"{file} is no graph", code="E-GRAPH-FILE", why=_FORMAT, next="fleet help E-GRAPH-FILE")
    return content
