"""What the model is told: a system prompt whose bytes depend on nothing that changes, and the message that opens a run.

The system prompt is in cache order, the most stable part first (O-060, S-070). Date, directory, session and budget are
in the user message, so that the prefix stays byte-identical between runs.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from pathlib import Path
from xml.sax.saxutils import escape

from drone.prompting import PromptParts, Skill, Templates
from drone.prompting.files import MAX_CHARACTERS
from shared.work_order import Resumed, WorkOrder

MAX_INSTRUCTIONS = MAX_CHARACTERS
"""Characters of project instructions that enter the prompt."""
READING = "file_read"
"""Without this tool no skill could be read, and none is listed."""
_SECTIONS = (
    "rules",
    "identity",
    "organization",
    "agent",
    "mode_{mode}",
    "instructions",
    "appended",
    "memory",
    "user_profile",
    "skills",
    "channel",
)
"""In cache order; a template that gives nothing leaves its section out."""


def system_prompt(
    order: WorkOrder, parts: PromptParts | str = "", *, channel: str = "", tools: Collection[str] = (READING,)
) -> str:
    """Return the system prompt of an order: the same bytes for the same mode, parts, channel and tools.

    `parts` is what `read_sources` gave, or the project's instructions alone. `channel` names where the conversation is
    held, where that makes a difference. What goes wrong with a template of the owner's is added to `parts.problems`.
    """
    parts = PromptParts(instructions=parts.strip()) if isinstance(parts, str) else parts
    templates = Templates(parts.templates, parts.problems)
    values = {
        "mode": order.session.mode,
        "system": parts.system,
        "soul": parts.soul,
        "instructions": parts.instructions[:MAX_INSTRUCTIONS],
        "elided": max(0, len(parts.instructions) - MAX_INSTRUCTIONS),
        "appended": parts.appended,
        "memory": parts.memory,
        "user_profile": parts.user,
        "skills": [_escaped(skill) for skill in parts.skills] if READING in tools else [],
        "channel": channel,
    }
    names = (section.format(mode=order.session.mode) for section in _SECTIONS)
    return "\n\n".join(filter(None, (templates.render(f"{name}.jinja", **values) for name in names))) + "\n"


def user_prompt(order: WorkOrder, workspace: Path, now: datetime, parts: PromptParts | None = None) -> str:
    """Return the message that opens a run: the prompt as it was written, then date, directory and budget."""
    parts = parts or PromptParts()
    # Not the whole order: it holds the provider's key.
    text = Templates(parts.templates, parts.problems).render(
        "user.jinja",
        prompt=order.prompt,
        project=order.project.name,
        session=order.session.id,
        limits=order.limits,
        workspace=workspace,
        date=now.date().isoformat(),
    )
    return text + "\n"


def resumed_prompt(resumed: Resumed) -> str:
    """Return the one line that opens a run which goes on from a checkpoint of an earlier one.

    It says what was salvaged and what was not: the model is asked again, and must not rely on what is gone.
    """
    parts = ["This work was broken off and goes on here, with the files as they were after your last complete step."]
    if resumed.cut_off:
        parts.append("A step that had begun was cut off and undone; what it did outside the workspace was not undone.")
    parts.append("Processes that were running are gone.")
    if resumed.left_out:
        parts.append(f"Not kept, and missing or old now: {'; '.join(resumed.left_out)}.")
    return " ".join(parts)


def _escaped(skill: Skill) -> dict[str, str]:
    return {"name": skill.name, "description": escape(skill.description), "location": escape(skill.location)}
