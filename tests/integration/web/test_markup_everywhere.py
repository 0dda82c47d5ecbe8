"""Every page: with markup in every name and text, for a viewer, and for another organization."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser

import httpx
from pydantic import BaseModel
from sqlalchemy import JSON, String, Table, select, update
from sqlalchemy.orm import Session

from control_plane.db.metadata import METADATA
from control_plane.declarations import agents, batches, orders, sessions, tasks
from control_plane.declarations.sessions import CompactRequest, LabelRequest, SessionEdit
from control_plane.lookups.organizations import system_caller
from shared import events, names
from shared.messages import ToolCall
from shared.plans import AgentPlan, PlanPoint, PointReport
from tests.support.filled import fill
from tests.support.fleet import Api, Doc, PlayedRun
from tests.support.organizations import add_organization
from tests.support.routes import NOBODY, addresses_of_pages, named

MARK = "zqmarkqz"
"""What the texts contain when they are written; names must begin and end with a letter."""
MARKED = re.compile(rf"{MARK}|fleet/[0-9a-f]{{12}}")
"""Branches belong to their order, so they cannot be written with the mark."""
MARKUP = "'\"><xss onx='1' onx=\"1\">"
ESCAPED = "&lt;xss"
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


class Markup(HTMLParser):
    """Finds elements and attributes that only our text can have brought."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "xss" or any(name.startswith(("onx", "xss")) for name, _ in attrs):
            self.found.append(str(self.get_starttag_text()))


def test_markup_in_any_name_or_text_stays_text_on_every_page(api: Api) -> None:
    fill(api, system_caller(api.core), MARK)
    played(api)
    put_markup_everywhere(api)
    form = dict.fromkeys(("prompt", "project", "provider", "drone", "labels"), MARKUP)
    with api.browser() as browser:
        pages = {path: each.text for path, each in read(browser, pages_of(api)).items()}
        steps = [f"{path}?step={number}" for path in pages if path.endswith("/sent") for number in range(1, 9)]
        sent = {path: each.text for path, each in read(browser, steps).items()}
        others = {path: each.text for path, each in read(browser, [path + MARKUP for path in IN_ADDRESS]).items()}
        refused = browser.post("/actions/submit", data=form, headers=HTML).text
    every = {**pages, **sent, **others, "refused form": refused}
    assert {path: found for path, page in every.items() if (found := Markup(page).found)} == {}
    assert all("<html" in page for page in others.values())
    assert any(ESCAPED in page for page in sent.values())
    assert sum(path.endswith("/plan") and ESCAPED in page for path, page in pages.items()) == 2
    without = {path for path, page in pages.items() if ESCAPED not in page and not path.endswith(PARTS)}
    assert without <= WITHOUT_TEXTS
    assert sum(page.count(ESCAPED) for page in every.values()) > 100


HTML = {"Accept": "text/html"}
IN_ADDRESS = ("/", "/orders/", "/sessions/", "/login?next=", "/login?token=", "/?project=")
PARTS = ("/earlier", "/children", "/steps", "/checks", "/plan", "/sent")
"""Parts of pages, which have no text of some orders, or of some steps."""
WITHOUT_TEXTS = {"/login", "/orders", "/side", "/fleet/joined", "/settings", "/settings/attention"}


def played(api: Api) -> None:
    """Runs on a drone with marks: one that did everything and ended, and others that wait for a person."""
    drone = api.add_drone(f"{MARK}-played", host=MARK, version=MARK, sandbox="none")
    done, waiting = (drone.take(api.submit(MARK, project=f"{MARK}-project")) for _ in range(2))
    for step in STEPS:
        done.step(step)
    deliver(api, done)
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


def deliver(api: Api, run: PlayedRun) -> None:
    patch = PATCH.replace(MARK, MARKUP).encode()
    name = api.store_blob(run, patch)
    work = {"branch": names.branch(run.order_id), "late_ref": names.late_branch(run.order_id, 1)}
    run.step(events.Delivered(**work, patch_sha256=name, patch_bytes=len(patch), push_error=MARK))


def put_markup_everywhere(api: Api) -> None:
    """Replace the mark in the database itself: no check of names and texts is asked."""
    with api.core.database.write() as db:
        for table in METADATA.sorted_tables:
            rewrite(db, table)


def rewrite(db: Session, table: Table) -> None:
    texts = [column for column in table.columns if isinstance(column.type, String | JSON)]
    keys = list(table.primary_key.columns)
    for row in db.execute(select(table)).mappings().all():
        marked = {column: row[column] for column in texts if MARKED.search(json.dumps(row[column]))}
        if marked:
            place = [key == row[key] for key in keys]
            db.execute(update(table).where(*place).values({each.name: with_markup(v) for each, v in marked.items()}))


def with_markup(value: str | Doc) -> str | Doc:
    inside = json.dumps(MARKUP)[1:-1]
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


NOT_FOR_VIEWERS = {"/orders/new", "/settings/audit", "/settings/health"}
OWN = {"/settings/access", "/settings/attention"}
"""Where everyone changes what is their own: log-ins of their browsers, and how they are told."""
ACTS = re.compile(r'(?:action|href)="/actions/|<textarea')


def read(browser: httpx.Client, paths: Iterable[str]) -> dict[str, httpx.Response]:
    return {path: browser.get(path, headers=HTML, follow_redirects=True) for path in paths}


def test_a_viewer_is_offered_no_action_on_any_page_and_another_organization_sees_nothing(api: Api) -> None:
    admin = system_caller(api.core)
    filled, paths = fill(api, admin, MARK), addresses_of_pages(api)
    add_organization(api.core, admin, "payments")
    plain, things = [path for path in paths if NOBODY not in path], named(paths, filled)
    with api.browser(token=api.token_for("viewer")) as viewer:
        answers = read(viewer, [*plain, *things])
    assert {path for path, each in answers.items() if each.status_code == 403} == NOT_FOR_VIEWERS
    refused = {path for path, each in answers.items() if each.status_code not in {200, 403}}
    # There is no plan and no answer of the model, and the other one asks for a join token.
    assert {path.rpartition("/")[2] for path in refused} == {"plan", "sent?step=1", "joined"}
    assert {path for path, each in answers.items() if ACTS.search(each.text)} <= OWN
    assert sum(MARK in each.text for each in answers.values()) > 20

    with api.browser() as browser:
        browser.post("/organization", data={"organization": "payments"})
        found, others = read(browser, things), read(browser, plain)
    assert (len(found) > 15, {path for path, each in found.items() if each.status_code != 404}) == (True, set())
    assert {path for path, each in others.items() if f"{MARK}-" in each.text} == set()
