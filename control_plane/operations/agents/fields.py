"""The settable fields of an agent. Each value is validated before it is stored."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from pathlib import PurePosixPath
from typing import Any

from sqlalchemy.orm import Session

from control_plane.contract.declarations.agents import AgentEdit, AgentRequest
from control_plane.contract.validation.checks import check_labels, check_text, shown
from control_plane.core.lookups.agents import active_agents, find_agent
from control_plane.core.lookups.projects import find_project
from control_plane.core.lookups.providers import find_provider
from control_plane.db.teams import Agent
from control_plane.operations.providers import check_model
from control_plane.orders.reviewers import reviewer_id_of
from shared.errors import Invalid
from shared.instructions import MAX_BYTES, instructions_of
from shared.roster import circle

MAX_PATH = 1024
MAX_LEVELS = 32
"""Maximum number of levels in the hierarchy of bosses."""
INSTRUCTIONS = frozenset({"instructions", "instructions_path"})


def fill(db: Session, agent: Agent, wanted: AgentRequest | AgentEdit, given: Collection[str]) -> None:
    """Set the `given` fields of an agent. Raises Invalid, and NotFound for an unknown name."""
    fill_own(agent, wanted, given)
    for name, setter in _NAMED.items():
        if name in given:
            setter(db, agent, getattr(wanted, name))


def fill_own(agent: Agent, wanted: AgentRequest | AgentEdit, given: Collection[str]) -> None:
    """Set the `given` fields that name nothing else. Raises Invalid."""
    if INSTRUCTIONS & set(given):
        _set_instructions(agent, wanted.instructions, wanted.instructions_path)
    for name, setter in _OWN.items():
        if name in given:
            setter(agent, getattr(wanted, name))


def _set_instructions(agent: Agent, text: str | None, path: str | None) -> None:
    """Replace the instructions by exactly one of the two (S-010)."""
    if (text is None) == (path is None):
        raise Invalid(
            f"agent {agent.name} requires either instructions or a path: {'none' if text is None else 'both'} given",
            code=_BAD,
            next=f"--instructions FILE uploads them    or: --instructions-path agents/{agent.name}.md",
        )
    agent.instructions = _check_instructions(agent.name, text) if text is not None else None
    agent.instructions_path = _check_path(agent.name, path) if path is not None else None


_BAD = "E-AGENT-INSTRUCTIONS"


def _check_instructions(name: str, text: str) -> str:
    try:
        # A lone surrogate cannot be encoded. A text that is far too long is rejected without encoding all of it.
        return instructions_of(text[: MAX_BYTES + 1].encode())
    except UnicodeEncodeError:
        why = "the text contains an unpaired surrogate"
    except ValueError as error:
        why = f"the text {error}"
    raise Invalid(
        f"invalid instructions for agent {name}",
        code=_BAD,
        why=why,
        next=f"shorten them, or keep them in the repository: fleet agent edit {name} --instructions-path PATH",
    ).of(text)


def _check_path(name: str, path: str) -> str:
    """The path of a Markdown file inside the repository, in git's notation (S-011, S-003)."""
    check_text("the instructions path", path, limit=MAX_PATH)
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or pure.suffix.lower() != ".md" or not path.isprintable():
        raise Invalid(
            f"invalid instructions path {shown(path)} for agent {name}",
            code=_BAD,
            why="it must be the path of a .md file in the project's repository, without '..'",
            next=f"for example agents/{name}.md",
        )
    return str(pure)


def _set_project(db: Session, agent: Agent, slug: str | None) -> None:
    agent.project_id = find_project(db, agent.organization_id, slug).id if slug is not None else None


def _set_provider(db: Session, agent: Agent, name: str | None) -> None:
    agent.provider_id = find_provider(db, agent.organization_id, name).id if name is not None else None


def _set_reviewer(db: Session, agent: Agent, named: str | None) -> None:
    agent.reviewer_id = reviewer_id_of(db, agent.organization_id, named)


def _set_model(agent: Agent, model: str | None) -> None:
    """`default` and null both select the provider's own model (S-015)."""
    agent.model = check_model(model) if model not in {None, "default"} and model is not None else None


def _set_cost_limit(agent: Agent, amount: float | None) -> None:
    if amount is not None and not math.isfinite(amount):
        raise Invalid("cost_limit must be a finite number", code="E-ORDER-LIMIT", next="0 means no limit")
    agent.cost_limit = amount


def _set_labels(agent: Agent, labels: dict[str, str] | None) -> None:
    agent.labels = check_labels(labels or {})


def _set_max_iterations(agent: Agent, number: int | None) -> None:
    if number is not None:
        agent.max_iterations = number


def _set_concurrency(agent: Agent, number: int | None) -> None:
    if number is not None:
        agent.concurrency = number


def _set_boss(db: Session, agent: Agent, name: str | None) -> None:
    """`none` and null both put the agent at the top (S-015). Raises Invalid if the bosses would form a circle."""
    if name in {None, "none"} or name is None:
        agent.boss_id = None
        return
    if name == agent.name:
        raise Invalid(
            f"agent {name} cannot be its own boss", code="E-AGENT-BOSS", next="--boss none puts it at the top"
        )
    boss = find_agent(db, agent.organization_id, name)
    everyone = active_agents(db, agent.organization_id)
    named = {each.id: each.name for each in everyone}
    bosses = {each.name: named.get(each.boss_id or "") for each in everyone} | {agent.name: name}
    _check_bosses(agent.name, bosses)
    agent.boss_id = boss.id


def _check_bosses(name: str, bosses: dict[str, str | None]) -> None:
    if way := circle(bosses, name):
        raise Invalid(
            f"agent {name} cannot have {way[1]} as its boss: that would be a cycle",
            code="E-AGENT-BOSS",
            why=f"the chain of bosses would be {' → '.join(way)}",
            next=f"first: fleet agent edit {way[-2]} --boss none",
        )
    levels = max(_levels(bosses, each) for each in bosses)
    if levels > MAX_LEVELS:
        raise Invalid(
            f"the agents would have {levels} levels of bosses; {MAX_LEVELS} are allowed",
            code="E-AGENT-BOSS",
            next="choose a boss that is higher up: fleet agent tree",
        )


def _levels(bosses: dict[str, str | None], name: str) -> int:
    above: str | None = name
    count = 0
    while above is not None and count <= len(bosses):
        above, count = bosses[above], count + 1
    return count


def _set_limits(agent: Agent, limits: dict[str, Any] | None) -> None:
    """Two of them have columns of their own: the field of that name and the limit are the same."""
    if limits is None:
        return
    agent.max_iterations = limits.get("max_iterations", agent.max_iterations)
    agent.cost_limit = limits.get("cost_limit", agent.cost_limit)
    agent.limits = {name: value for name, value in limits.items() if name not in {"max_iterations", "cost_limit"}}


def _set_thinking(agent: Agent, level: str | None) -> None:
    agent.thinking = level


_NAMED: dict[str, Callable[[Session, Agent, Any], None]] = {
    "project": _set_project,
    "provider": _set_provider,
    "reviewer": _set_reviewer,
    "boss": _set_boss,
}
_OWN: dict[str, Callable[[Agent, Any], None]] = {
    "model": _set_model,
    "cost_limit": _set_cost_limit,
    "labels": _set_labels,
    "max_iterations": _set_max_iterations,
    "concurrency": _set_concurrency,
    "limits": _set_limits,
    "thinking": _set_thinking,
}
