"""The text of a pull request: a title, what was done, how it was verified, where it came from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count

from sqlalchemy import select
from sqlalchemy.orm import Session

from control_plane.db.orders import Order
from control_plane.db.projects import Project
from control_plane.db.teams import Agent, Comment, Task
from control_plane.teams.tags import parts_of
from shared.outcome import Verification
from shared.trailers import trailers_of

MAX_TITLE = 72
"""Maximum characters of a generated title."""
MAX_SUMMARY = 20_000
MAX_LISTED = 50
VERIFICATION = "## Verification"
"""Ends the first part of the text, which goes under a form's own heading."""
_MARK = re.compile(r"^(?:#{1,6}|[-*+>])\s+")
_TAG = re.compile(r"((?<![A-Za-z0-9_])@\w[\w-]*)")
_ADDRESS = re.compile(r"(https?://[^\s<>()`\"']+)")
"""A tag in it calls no one, and backticks would break it."""
_LINE_END = re.compile(r"\r\n|\r|\n")
"""As in Markdown."""
_TICKS = re.compile(r"`+")


def title_of(about: str) -> str:
    """The first line of what the work is about, as one line of at most 72 characters; empty if there is none."""
    first = next((line.strip() for line in about.split("\n") if line.strip()), "")
    words = " ".join(_MARK.sub("", first).split())
    return words if len(words) <= MAX_TITLE else words[: MAX_TITLE - 1].rstrip() + "…"


def about(db: Session, order: Order) -> str:
    """What the order's work is about: its task's title, else its prompt."""
    task = db.get(Task, order.task_id) if order.task_id else None
    return task.title if task else order.prompt


def body_of(db: Session, order: Order) -> str:
    """The text for the pull request of this order's branch; its trailers are the last paragraph."""
    project = db.get_one(Project, order.project_id)
    task = db.get(Task, order.task_id) if order.task_id else None
    named = [f"Task: {task.id}"] if task else []
    sections = [
        _summary(db, order, task),
        f"{VERIFICATION}\n\n{_verified(order, project)}",
        f"## Hand-offs\n\n{_hand_offs(db, task)}" if task else f"## Commits\n\n{_commits(order)}",
        "\n".join([*named, f"Order: {order.id}"]),
        "\n".join(trailers_of(project.trailers, model=order.model, order_id=order.id, ticket=order.ticket)),
    ]
    return "\n\n".join(filter(None, sections)) + "\n"


def quiet(text: str) -> str:
    """The text with its tags as code: on a code host, `@tester` would mention an unrelated user."""
    parts = [*parts_of(_LINE_END.sub("\n", text.removesuffix("\n")))]
    # A run of backticks outside code would pair with one of the same length.
    lonely = {len(run) for part, is_code in parts if not is_code for run in _TICKS.findall(part)}
    ticks = "`" * next(length for length in count(1) if length not in lonely)
    said = ""
    for part, is_code in parts:
        for piece, is_tag in [(part, False)] if is_code else _tagged(part):
            shown = f"{ticks}{piece}{ticks}" if is_tag else piece
            said += f" {shown}" if said.endswith("`") and shown.startswith("`") else shown
    return said


def _tagged(text: str) -> Iterator[tuple[str, bool]]:
    """The pieces of a text without code, and whether each is a tag."""
    for index, part in enumerate(_ADDRESS.split(text)):
        for place, piece in enumerate([part] if index % 2 else _TAG.split(part)):
            yield piece, place % 2 == 1


def _summary(db: Session, order: Order, task: Task | None) -> str:
    said = (_last_comment(db, task) if task else None) or order.response or f"Work of order {order.id}."
    text = said.strip()
    return quiet(text) if len(text) <= MAX_SUMMARY else quiet(text[:MAX_SUMMARY].rstrip()) + "\n\n… (cut)"


def _last_comment(db: Session, task: Task) -> str | None:
    by_agents = select(Comment.text).where(Comment.task_id == task.id, Comment.agent_id.is_not(None))
    return db.scalar(by_agents.where(Comment.author != "system").order_by(Comment.id.desc()).limit(1))


def _verified(order: Order, project: Project) -> str:
    verify = project.verify if order.verify is None else order.verify
    commands = ", ".join(f"`{' '.join(command.split())[:200]}`" for command in verify)
    match order.verification:
        case Verification.VERIFIED:
            return f"Passed: {commands}." if commands else "The commands passed."
        case Verification.FAILED:
            return f"**Failed**: the commands did not pass{f' ({commands})' if commands else ''}."
        case Verification.NOTHING_TO_VERIFY:
            return "There are no verify commands."
        case _:
            return "Not verified: the run ended before verification."


def _commits(order: Order) -> str:
    base = f"{order.base_commit[:12]}.." if order.base_commit else ""
    return f"{base}{(order.head_commit or '')[:12]} on `{order.branch}`"


def _hand_offs(db: Session, task: Task) -> str:
    """A line for each of the task's runs that ended, oldest first; if there are many, the newest ones."""
    turns = (
        select(Order, Agent.name)
        .outerjoin(Agent, Agent.id == Order.agent_id)
        .where(Order.task_id == task.id, Order.purpose == "work", Order.ended_at.is_not(None))
    )
    newest = db.execute(turns.order_by(Order.number.desc()).limit(MAX_LISTED)).all()
    return "\n".join(_turns((order, name) for order, name in reversed(newest))) or "None yet."


def _turns(turns: Iterator[tuple[Order, str | None]]) -> Iterator[str]:
    for order, name in turns:
        what = f"`{order.head_commit[:12]}`" if order.head_commit else "no changes"
        yield f"- {name or 'an agent'} ({order.status}): {what}"
