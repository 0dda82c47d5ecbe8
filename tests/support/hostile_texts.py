"""A fleet in which one text stands in every place that takes one: names, prompts, steps, diffs, branches, answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import quote

from pydantic import BaseModel
from sqlalchemy import JSON, String, Table, select, update
from sqlalchemy.orm import Session

from control_plane.contract.declarations import agents, batches, orders, sessions, tasks
from control_plane.contract.declarations.sessions import CompactRequest, LabelRequest, SessionEdit
from control_plane.core.lookups.organizations import system_caller
from control_plane.db.metadata import METADATA
from shared import events, names
from shared.messages import ToolCall
from shared.plans import AgentPlan, PlanPoint, PointReport
from tests.support.filled import Filled, fill
from tests.support.fleet import Api, Doc, PlayedRun
from tests.support.routes import NOBODY, addresses_of_pages

MARK = "zqmarkqz"
"""What the texts contain when they are written; names must begin and end with a letter."""
MARKED = re.compile(rf"{MARK}|fleet/[0-9a-f]{{12}}")
"""Branches belong to their order, so they cannot be written with the mark."""
PATCH = f"diff --git a/{MARK} b/{MARK}\n--- a/{MARK}\n+++ b/{MARK}\n@@ -1 +1 @@ {MARK}\n-{MARK}\n+{MARK}\n"
STEPS: list[BaseModel] = [
    events.Phase(name=MARK, detail=MARK),
    events.Prepared(base_commit="a" * 40, default_branch=MARK, workspace=MARK),
    events.ReasoningStep(text=MARK),
    events.AssistantStep(text=MARK, tool_calls=(ToolCall(id=MARK, name=MARK, arguments=MARK),), model=MARK),
    events.UserStep(text=MARK, source="steer"),
    events.ToolCallStep(call_id=MARK, tool=MARK, arguments={"command": MARK, MARK: [MARK]}),
    events.ToolCallStep(call_id=MARK, tool=MARK, arguments={MARK: {MARK: MARK}}),
    events.ToolCallStep(call_id=MARK, tool=MARK, arguments=MARK),
    events.ToolResultStep(call_id=MARK, output=MARK, note=MARK, is_error=True),
    events.CommentStep(text=MARK),
    events.RetryStep(attempt=1, delay_s=1, error_class=MARK, error=MARK),
    events.CompactionStep(summary=MARK, files_read=(MARK,), files_changed=(MARK,)),
    events.GuardrailStep(call_id=MARK, guardrail=MARK, action="warn", code=MARK, reason=MARK),
    events.DecisionStep(call_id=MARK, approved=True, comment=MARK),
    events.TodoStep(items=(events.TodoItem(text=MARK),)),
    events.VerifyStep(attempt=1, command=MARK, passed=False, output=MARK),
    events.ReviewerStep(model=MARK, findings=(events.Finding(file=MARK, text=MARK),)),
    events.ReviewerStep(model=MARK, problem=MARK),
    events.RememberStep(text=MARK, why=MARK),
    events.ChildStep(call_id=MARK, step={"kind": "comment", "text": MARK}),
    events.ChildStep(call_id=MARK, step={"kind": MARK, "text": MARK}),
    events.CheckpointStep(left_out=(MARK,)),
    events.ErrorStep(code=MARK, what=MARK, detail=MARK),
]
WAITS = events.ApprovalStep(call_id=MARK, tool=MARK, why=MARK, command=MARK)
PLAN = AgentPlan(title=MARK, summary=MARK, points=(PlanPoint(text=MARK, files=(MARK,), verify=MARK),))


def fill_with(api: Api, text: str) -> Filled:
    """Add one of everything, and runs that did everything, with this text wherever a text is stored.

    Without control characters; the database itself is written to, so no check of names and texts is asked.
    """
    filled = fill(api, system_caller(api.core), MARK)
    _play(api, text)
    with api.core.database.write() as db:
        for table in METADATA.sorted_tables:
            _rewrite(db, table, text)
    return replace(filled, names={kind: quote(name.replace(MARK, text)) for kind, name in filled.names.items()})


def _play(api: Api, text: str) -> None:
    """Runs on a drone with marks: one that did everything and ended, and others that wait for a person."""
    drone = api.add_drone(f"{MARK}-played", host=MARK, version=MARK, sandbox="none")
    done, waiting = (drone.take(api.submit(MARK, project=f"{MARK}-project")) for _ in range(2))
    for step in STEPS:
        done.step(step)
    _deliver(api, done, text)
    done.ends(exit_status=MARK, reason=MARK, response=MARK)
    waiting.step(WAITS)
    presented, approved = (drone.take(api.submit(MARK, project=f"{MARK}-project", plan_first=True)) for _ in range(2))
    for run in (presented, approved):
        run.presents(PLAN)
    approved.decides_plan(PLAN, who=MARK)
    approved.step(events.PointReportStep(report=PointReport(point=1, result="skipped", text=MARK)))
    session = api.client.call(orders.SHOW, order_id=done.order_id)["session"]
    api.client.call(sessions.EDIT, SessionEdit(name=MARK), session_id=session)
    api.client.call(sessions.LABEL, LabelRequest(entry=done.order_id, text=MARK), session_id=session)
    api.client.call(sessions.COMPACT, CompactRequest(instructions=MARK), session_id=session)


def _deliver(api: Api, run: PlayedRun, text: str) -> None:
    patch = PATCH.replace(MARK, text).encode()
    name = api.store_blob(run, patch)
    work = {"branch": names.branch(run.order_id), "late_ref": names.late_branch(run.order_id, 1)}
    run.step(events.Delivered(**work, patch_sha256=name, patch_bytes=len(patch), push_error=MARK))


def _rewrite(db: Session, table: Table, text: str) -> None:
    texts = [column for column in table.columns if isinstance(column.type, String | JSON)]
    keys = list(table.primary_key.columns)
    for row in db.execute(select(table)).mappings().all():
        marked = {column: row[column] for column in texts if MARKED.search(json.dumps(row[column]))}
        if marked:
            place = [key == row[key] for key in keys]
            values = {each.name: _with_text(value, text) for each, value in marked.items()}
            db.execute(update(table).where(*place).values(values))


def _with_text(value: str | Doc, text: str) -> str | Doc:
    inside = json.dumps(text)[1:-1]
    return json.loads(MARKED.sub(lambda _: inside, json.dumps(value)))


def pages_of(api: Api) -> Iterator[str]:
    """Every page, with the id of each order that was played and of its session."""
    newest = api.client.call(orders.LIST)[:4]
    ids = {
        "orders": [each["id"] for each in newest],
        "sessions": [each["session"] for each in newest],
        "tasks": [each["id"] for each in api.client.call(tasks.LIST)],
        "batches": [each["id"] for each in api.client.call(batches.LIST)],
        "agents": [each["name"] for each in api.client.call(agents.LIST)],
    }
    for path in addresses_of_pages(api):
        noun = path.split("/")[1]
        yield from (path.replace(NOBODY, each) for each in ids.get(noun, ())) if NOBODY in path else (path,)
