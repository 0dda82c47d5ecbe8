"""Prompts for the model: a system prompt whose bytes depend only on stable inputs, and the message that opens a run.

The system prompt is in cache order, the most stable part first (O-060, S-070). Date, directory, session and budget are
in the user message, so that the prefix stays byte-identical between runs.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from pathlib import Path
from xml.sax.saxutils import escape

from drone.prompting import PromptParts, Skill, Templates
from shared.plans import PRESENT, REPORT
from shared.roster import draw
from shared.work_order import Resumed, Team, WorkOrder

READING = "file_read"
"""Without this tool skills cannot be read, so none are listed."""
_PLAN_FIRST = (
    "Plan first: your user approves a plan before anything is changed. Until then only tools that read can be used; "
    f"other calls are refused. Find out what you need, then call {PRESENT}. The decision follows as a message, and "
    f"after the approval all your tools can be used. Then carry out the approved points, and call {REPORT} for each."
)
"""Below the situation: the system prompt is the same for all orders."""
_SECTIONS = (
    "rules",
    "thread",
    "identity",
    "organization",
    "agent",
    "mode_{mode}",
    "instructions",
    "appended",
    "memory",
    "notes",
    "user_profile",
    "skills",
    "channel",
)
"""In cache order; a template that renders to nothing omits its section."""


def system_prompt(
    order: WorkOrder, parts: PromptParts | str = "", *, channel: str = "", tools: Collection[str] = (READING,)
) -> str:
    """Return the system prompt of an order: the same bytes for the same team, mode, parts, channel and tools.

    An agent's turn has three more sections: how a thread works, the same for all agents (A, with the rules), the
    organization (B) and the agent (C). None of them contains anything that changes from task to task (S-070).

    `parts` is the result of `read_sources`, or only the project's instructions. `channel` names where the conversation
    takes place, if that matters. Problems with a template of the owner are added to `parts.problems`.
    """
    parts = PromptParts(instructions=parts.strip()) if isinstance(parts, str) else parts
    templates = Templates(parts.templates, parts.problems)
    values = {
        "mode": order.mode.name if order.mode else order.session.mode,
        "mode_text": order.mode.text.strip() if order.mode else "",
        "team": _told_of(order.team) if order.team else None,
        "system": parts.system,
        "soul": parts.soul,
        "instructions": parts.instructions,
        "appended": parts.appended,
        "memory": parts.memory,
        # Escaped: a note cannot end the section that it stands in, whatever an editor of notes typed.
        "organization_notes": [escape(note) for note in order.memory.organization] if order.memory else [],
        "project_notes": [escape(note) for note in order.memory.project] if order.memory else [],
        "user_profile": parts.user,
        "skills": [_escaped(skill) for skill in parts.skills] if READING in tools else [],
        "channel": channel,
    }
    mode = order.session.mode if order.mode is None else "own"
    names = (section.format(mode=mode) for section in _SECTIONS)
    return "\n\n".join(filter(None, (templates.render(f"{name}.jinja", **values) for name in names))) + "\n"


def user_prompt(
    order: WorkOrder, workspace: Path, now: datetime, parts: PromptParts | None = None, note: str = ""
) -> str:
    """Return the message that opens a run: the prompt as written, then date, directory and budget, and the note."""
    parts = parts or PromptParts()
    # Do not pass the whole order: it contains the provider's key.
    text = Templates(parts.templates, parts.problems).render(
        "user.jinja",
        prompt=order.prompt,
        project=order.project.name,
        session=order.session.id,
        limits=order.limits,
        workspace=workspace,
        date=now.date().isoformat(),
    )
    return "\n\n".join(filter(None, (text, note, _PLAN_FIRST if order.plan else "", _unseen(order.team)))) + "\n"


def resumed_prompt(resumed: Resumed, team: Team | None = None, *, in_place: bool = False) -> str:
    """Return the message that opens a run resumed from a checkpoint of an earlier one; `in_place`: on the same disk.

    It says what was kept and what was not: the model is asked again and must not rely on what is lost. Comments whose
    step was cut off stay in the thread, and are listed.
    """
    parts = ["This work was interrupted and continues here, with the files as they were after your last complete step."]
    if resumed.cut_off:
        parts.append("A step in progress was cut off and undone; its effects outside the workspace were not undone.")
    parts.append("Processes that were running no longer exist, nor do stashes, tags and branches that you made:")
    parts.append("the repository has the branch that you began on, at your last commit.")
    missing = resumed.left_out if in_place else (*resumed.left_out, *resumed.kept_on_disk)
    if missing:
        parts.append(f"Not kept, and now missing or outdated: {'; '.join(missing)}.")
    if in_place and resumed.cut_off and resumed.kept_on_disk:
        parts.append(f"Not undone, but as the cut-off step left them: {'; '.join(resumed.kept_on_disk)}.")
    return "\n\n".join(filter(None, (" ".join(parts), _unseen(team))))


def _told_of(team: Team) -> dict[str, object]:
    """Team values for the templates: nothing that differs between two tasks of one agent."""
    return {
        "organization": team.organization,
        "purpose": team.purpose.strip(),
        "roster": draw(team.roster),
        "agent": team.agent,
        "boss": team.boss,
        "reports": team.reports,
        "instructions": (team.instructions or "").strip(),
    }


def _unseen(team: Team | None) -> str:
    """List the comments that an interrupted run of this turn wrote, so that this run does not write them again."""
    if team is None or not team.unseen:
        return ""
    texts = "\n\n".join(f"<comment>\n{text}\n</comment>" for text in team.unseen)
    return (
        "Before the interruption you wrote this to the thread. It stays there and counts; do not write it again:"
        f"\n\n{texts}"
    )


def _escaped(skill: Skill) -> dict[str, str]:
    return {"name": skill.name, "description": escape(skill.description), "location": escape(skill.location)}
