"""What the model is told: a system prompt whose bytes depend on nothing that changes, and the message that opens a run.

The system prompt is in cache order, the most stable part first: rules, identity, mode, the project's instructions.
Date, directory, session and budget are in the user message, so that the prefix stays byte-identical between runs.
"""

from __future__ import annotations

from datetime import datetime
from functools import cache
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from shared.work_order import WorkOrder

INSTRUCTION_FILES = ("AGENTS.md", "AGENT.md")
"""Names under which a project's instructions are looked for on its default branch; the first that exists counts."""
MAX_INSTRUCTIONS = 40_000
"""Characters of project instructions that enter the prompt."""


def system_prompt(order: WorkOrder, instructions: str = "") -> str:
    """Return the system prompt of an order: the same bytes for the same mode and `instructions`.

    `instructions` is the text of the first of INSTRUCTION_FILES on the project's default branch, read by the caller
    from git and never from the agent's own work, or empty.
    """
    text = instructions.strip()
    return _render(
        "system.jinja",
        mode=order.session.mode,
        instructions=text[:MAX_INSTRUCTIONS],
        elided=max(0, len(text) - MAX_INSTRUCTIONS),
    )


def user_prompt(order: WorkOrder, workspace: Path, now: datetime) -> str:
    """Return the message that opens a run: the prompt as it was written, then date, directory and budget."""
    return _render("user.jinja", order=order, limits=order.limits, workspace=workspace, date=now.date().isoformat())


def _render(template: str, **values: object) -> str:
    return _environment().get_template(template).render(**values).strip() + "\n"


@cache
def _environment() -> Environment:
    # Nothing is escaped: the reader is a model, not a browser. A name that a template misspells is an error.
    return Environment(
        loader=PackageLoader("drone.agent"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # noqa: S701
    )
