"""Agents as text: one, all, and the tree of who reports to whom."""

from __future__ import annotations

import json
from typing import Any

from shared.terminal.command_line import print_table, say
from shared.terminal.output import printable

Doc = dict[str, Any]
NO_AGENTS = "no agents; create one: fleet agent add"
_SHOWN = 60
"""Characters of a description in a list."""


def agent_lines(agent: Doc) -> str:
    """An agent without its instructions."""
    return "\n".join(
        [
            f"agent        {agent['name']}{' (removed)' if agent['is_removed'] else ''}",
            f"description  {printable(agent['description']) or 'none yet'}",
            f"boss         {agent['boss'] or 'none'}",
            f"reports      {', '.join(agent['reports']) or 'none'}",
            f"model        {agent['model'] or 'provider default'}",
            f"provider     {agent['provider'] or 'project default'}",
            f"limits       {agent['max_iterations'] or 'unlimited'} steps, {_limit(agent['cost_limit'])}",
            *(f"limit        {name}={json.dumps(value)}" for name, value in agent.get("limits", {}).items()),
            *([f"thinking     {agent['thinking']}"] if agent.get("thinking") else []),
            f"labels       {', '.join(f'{key}={value}' for key, value in agent['labels'].items()) or 'any drone'}",
            f"in parallel  {agent['concurrency'] or 'unlimited'} tasks",
            f"instructions {_source(agent)}",
        ]
    )


def agent_in_full(agent: Doc) -> str:
    """An agent with its instructions and what it cost."""
    instructions = ["", printable(agent["instructions"])] if agent["instructions"] else []
    return "\n".join([agent_lines(agent), _spent(agent["totals"]), *instructions])


def agent_table(agents: list[Doc]) -> str:
    """Print the agents as a table."""
    rows = [
        (f"{a['name']} (removed)" if a["is_removed"] else a["name"], a["boss"], a["model"], _cut(a["description"]))
        for a in agents
    ]
    print_table(("AGENT", "BOSS", "MODEL", "DESCRIPTION"), rows, empty=NO_AGENTS)
    return ""


def tree_text(nodes: list[Doc]) -> str:
    """The agents of an organization, or a hint if there are none."""
    if not nodes:
        say(NO_AGENTS)
        return ""
    return drawn(nodes)


def drawn(nodes: list[Doc]) -> str:
    """The agents, each below its boss."""
    from shared.roster import draw, flattened

    return printable(draw(flattened(nodes)))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _limit(cost: float | None) -> str:
    return "default cost limit" if cost is None else f"${cost:.2f} per run" if cost else "unlimited cost"


def _source(agent: Doc) -> str:
    if agent["instructions_path"] is None:
        return "uploaded text"
    where = f"of project {agent['project']}" if agent["project"] else "of the task's project"
    return f"{agent['instructions_path']} on the default branch {where}"


def _spent(totals: Doc) -> str:
    known = "price unknown" if totals["cost_usd"] is None else f"cost ${totals['cost_usd']:.4f}"
    unknown = totals["unknown_costs"] if totals["cost_usd"] is not None else 0
    more = f" and {unknown} at unknown price" if unknown else ""
    tokens = f"{totals['input_tokens']} tokens in, {totals['output_tokens']} out"
    return f"runs         {totals['runs']}: {tokens}, {known}{more}"
