"""What an agent receives about its task: the briefing (block D) and its team (blocks B and C, S-070).

An agent remembers nothing and sees nothing of other runs: the comments are all that it has (S-041, S-073). The same
rows give the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from control_plane.contract.documents.base import USER
from control_plane.db.installation import Organization
from control_plane.db.orders import Order
from control_plane.db.projects import Project
from control_plane.db.runs import Run
from control_plane.db.sessions import ChatSession
from control_plane.db.teams import Agent, Comment, Task
from control_plane.orders.run_settings import OwnLimits, effective_limits
from control_plane.teams.roster import roster_of
from shared.work_order import Limits, Team

MAX_BRIEFING = 190_000
"""Characters. Fits into a prompt (`MAX_PROMPT` of order submission) and leaves room for later steering messages."""
_MAX_DESCRIPTION = 60_000
_AT_ONCE = 100


def briefing(db: Session, task: Task, agent: Agent) -> str:
    """The prompt of the agent's turn: the current task and the instructions."""
    name = db.get_one(Organization, task.organization_id).name
    head = _head(task, name, agent)
    chat, project = db.get_one(ChatSession, task.session_id), db.get_one(Project, task.project_id)
    tail = _what_to_do(agent, effective_limits(db, OwnLimits(task.limits, "task"), chat, agent, project).limits)
    room = MAX_BRIEFING - len(head) - len(tail)
    return "\n\n".join([head, *_thread(db, task, room), tail])


def team_of(db: Session, order: Order) -> Team | None:
    """The team sent with an order; None if the order is not an agent's turn."""
    if order.agent_id is None or order.task_id is None:
        return None
    agent = db.get_one(Agent, order.agent_id)
    organization = db.get_one(Organization, order.organization_id)
    roster = roster_of(db, order.organization_id)
    boss = db.get_one(Agent, agent.boss_id) if agent.boss_id else None
    return Team(
        organization=organization.name,
        purpose=organization.description,
        roster=roster,
        agent=agent.name,
        instructions=agent.instructions,
        instructions_path=agent.instructions_path,
        boss=boss.name if boss is not None and boss.removed_at is None else None,
        reports=tuple(each.name for each in roster if each.boss == agent.name),
        task=order.task_id,
        comments=_written(db, order),
    )


def _written(db: Session, order: Order) -> int:
    """The number of comments that earlier runs of this order wrote."""
    written = select(func.count()).select_from(Comment).join(Run, Run.id == Comment.run_id)
    mine = written.where(Comment.task_id == order.task_id, Comment.agent_id == order.agent_id, Run.order_id == order.id)
    return db.scalar(mine) or 0


# --- block D ----------------------------------------------------------------------------


def _head(task: Task, organization: str, agent: Agent) -> str:
    title = " ".join(task.title.split())
    return "\n".join([
        f"# Task {task.id}: {title}",
        "",
        f"Organization: {organization}",
        f"Assigned to: {agent.name} (you)",
        f"Opened: {_time(task.created_at)}{f' by {task.user}' if task.user else ''}",
        "",
        "## Description",
        "",
        _quoted(_cut(task.description, _MAX_DESCRIPTION, f"fleet task show {task.id}")),
    ])  # fmt: skip


def _thread(db: Session, task: Task, room: int) -> Iterator[str]:
    """The newest part of the thread that fits into `room`, with a note about omitted comments."""
    shown, left_out = _newest(db, task, room)
    yield "## Thread"
    if left_out:
        what = "comment is" if left_out == 1 else "comments are"
        yield f"[The oldest {left_out:,} {what} omitted here. Users can see them with: fleet task show {task.id}]"
    yield from reversed(shown)
    if not shown and not left_out:
        yield "[No comments yet.]"


def _newest(db: Session, task: Task, room: int) -> tuple[list[str], int]:
    """The newest comments, formatted and newest first, and the number of older ones."""
    shown: list[str] = []
    before: int | None = None
    total = db.scalar(select(func.count()).select_from(Comment).where(Comment.task_id == task.id)) or 0
    while len(shown) < total:
        wanted = select(Comment).where(Comment.task_id == task.id)
        older = wanted if before is None else wanted.where(Comment.id < before)
        for comment in db.scalars(older.order_by(Comment.id.desc()).limit(_AT_ONCE)).all():
            text = _entry(comment, room if not shown else None)
            room -= len(text) + 2
            if room < 0 and shown:
                return shown, total - len(shown)
            shown.append(text)
            before = comment.id
    return shown, 0


def _entry(comment: Comment, room: int | None) -> str:
    """One comment, with author and time at the left edge, where comment text never begins."""
    who = f"{USER} ({comment.user})" if comment.author == USER and comment.user else comment.author
    text = _quoted(comment.text)
    if room is not None:
        text = _cut(text, max(0, room - 200), f"fleet task show {comment.task_id}")
    return f"[{_time(comment.at)}] {who}:\n{text}"


def _what_to_do(agent: Agent, limits: Limits) -> str:
    """The instructions to work and hand off, and the budget (S-071)."""
    return "\n".join([
        "## Your turn",
        "",
        f"It is your turn on this task, {agent.name}. Read the thread, do your part in the workspace, and use the tool "
        "add_comment for everything that the others need to know: they see only your comments and the files.",
        "When your part is done, write a final comment that says what you did, what is open, and who is next. Its last "
        "tag decides: @name hands the task off to that agent, @user returns it to the user. Then stop.",
        "",
        f"Budget of this turn: {_budget(limits)}. Hand off before it is used up: anything not written "
        "down by then is lost.",
    ])  # fmt: skip


def _budget(limits: Limits) -> str:
    parts = []
    if limits.max_iterations:
        parts.append(f"{limits.max_iterations} steps")
    if limits.cost_limit:
        parts.append(f"USD {limits.cost_limit:.2f}")
    if limits.max_run_seconds:
        parts.append(f"{limits.max_run_seconds:g} seconds")
    return ", ".join(parts) or "no limit"


# --- text -------------------------------------------------------------------------------


def _quoted(text: str) -> str:
    """The text, indented so that no line of it can be mistaken for one of the briefing's own."""
    return "\n".join(f"  {line}".rstrip() for line in text.strip("\n").splitlines())


def _cut(text: str, limit: int, where: str) -> str:
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[Truncated: {len(text) - limit:,} more characters. Users can see them with: {where}]"


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"
