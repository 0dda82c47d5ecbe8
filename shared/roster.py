"""The agents of an organization as a tree in plain text: the same in a model's prompt and on a terminal (S-070)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from shared.work_order import RosterAgent

_BRANCH, _LAST, _BESIDE, _BELOW = "├── ", "└── ", "│   ", "    "


def draw(agents: Iterable[RosterAgent]) -> str:
    """One line per agent, sorted by name, below its boss: `├── backend — Writes the server.`; empty without agents.

    The same agents give the same text, regardless of their order. An agent whose boss is not among them is at the top.
    """
    below = reports_of(agents)
    return "\n".join(line for agent in below[None] for line in _lines(agent, below, "", ""))


def flattened(nodes: Iterable[Mapping[str, Any]], boss: str | None = None) -> Iterator[RosterAgent]:
    """The agents of a tree in the form of documents: `name`, `description` and `reports`, which are nodes too."""
    for node in nodes:
        yield RosterAgent(name=node["name"], boss=boss, description=node["description"])
        yield from flattened(node["reports"], node["name"])


def reports_of(agents: Iterable[RosterAgent]) -> dict[str | None, list[RosterAgent]]:
    """The reports of each agent, by its name; under None the agents that have no boss among these."""
    everyone = sorted(agents, key=lambda agent: agent.name)
    names = {agent.name for agent in everyone}
    below: dict[str | None, list[RosterAgent]] = defaultdict(list)
    for agent in everyone:
        below[agent.boss if agent.boss in names else None].append(agent)
    return below


def circle(bosses: dict[str, str | None], name: str) -> Sequence[str]:
    """The path from `name` up to itself, if its bosses form a circle; otherwise empty (S-016, W13 fixed)."""
    way = [name]
    while (boss := bosses.get(way[-1])) is not None and boss not in way:
        way.append(boss)
    return [*way, name] if boss == name else ()


def _lines(agent: RosterAgent, below: dict[str | None, list[RosterAgent]], first: str, others: str) -> Iterator[str]:
    """The line of an agent prefixed by `first`, then those of its reports prefixed by `others`."""
    said = " ".join(agent.description.split())
    yield f"{first}{agent.name} — {said}" if said else f"{first}{agent.name}"
    reports = below[agent.name]
    for report in reports:
        last = report is reports[-1]
        yield from _lines(report, below, others + (_LAST if last else _BRANCH), others + (_BELOW if last else _BESIDE))
