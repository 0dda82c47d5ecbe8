""" "Copy as command": the action of a page and the printed command change the same rows.

The action is done in a browser, then the fleet is put back as it was, and the command that the form printed is run by
the real command line.
"""

from __future__ import annotations

import html
import json
import re
import shlex
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import select, update

from control_plane.db.drones import Drone
from control_plane.db.metadata import METADATA
from control_plane.db.orders import Order
from control_plane.db.teams import Agent, Task
from control_plane.declarations import orders
from control_plane.declarations.operation import Command, NoDoor, Operation, every_operation
from control_plane.declarations.tokens import ApiTokenRequest
from control_plane.lookups.organizations import system_caller
from control_plane.operations.access import tokens
from control_plane.orders.ending import Ending, finish
from control_plane.web.forms.fields import form_fields
from shared.events import ABILITIES, ApprovalStep
from shared.plans import AgentPlan, PlanPoint
from shared.reasons import RunEnd
from shared.states import OrderStatus
from tests.integration.web.test_derived_commands import fleet
from tests.support.filled import fill
from tests.support.fleet import Api
from tests.support.forms import FormValues
from tests.support.patches import deliver
from tests.support.team_rows import add_task

MARK = "mark"
IGNORED_TABLES = ("audit", "web_sessions", "login_links")
"""Who did it, through which door."""
SECRET = re.compile(r"^idempotency_key$|hash|secret|sealed|signature|^number$|^seq$|^key$|public_key")
ID = re.compile(r"(?<![0-9a-f])[0-9a-f]{12,}(?![0-9a-f])")
TIME = re.compile(r"\d{4}-\d\d-\d\d[T ][\d:.]+(Z|\+00:00)?")
CHANGING = {each.name: each for each in every_operation() if each.method != "GET" and not each.route_by_hand}


@dataclass(frozen=True)
class Sent:
    """What is typed into the form of an operation; `{orders}` stands for the id or name of a thing that exists."""

    names: Mapping[str, str] = field(default_factory=dict)
    typed: Mapping[str, str] = field(default_factory=dict)
    stdin: str = ""
    more: tuple[str, ...] = ()
    """Further words of the command."""
    same: bool = False
    """It changes no row, or only secret ones."""
    refused: bool = False
    user: bool = False
    """By a user; else by a token without one."""


ORDER, FAILED, WAITS, DONE = ({"order_id": each} for each in ("{queued}", "{failed}", "{waiting}", "{pushed}"))
TASK = {"task_id": "{tasks}"}
DRONE, PROJECT, PROVIDER = {"name": "{drones}"}, {"slug": "{projects}"}, {"name": "{providers}"}
GRAPH = json.dumps(
    [
        {"name": "one", "prompt": "One it's", "labels": {"nowhere": "yes"}},
        {"name": "two", "prompt": "Two", "after": ["one"]},
    ]
)
ROWS = json.dumps(
    [
        {"id": "it's one", "project": "{projects}", "provider": "{providers}", "prompt": "One"},
        {"id": "two", "project": "{projects}", "provider": "{providers}", "prompt": "{{ two }}", "priority": 5},
    ]
)
NESTED = {
    "task.title": "Tidy it's {{date}}",
    "task.description": "Two\nlines",
    "task.project": "{projects}",
    "task.priority": "7",
    "task.cost_limit": "1.5",
}
REVIEWED = {"order_id": "{reviewed}"}
CASES: Mapping[str, Sent] = {
    "edit_attention": Sent(typed={"webhook_url": "https://chat.example/x", "about": "all"}, user=True),
    "add_review_comment": Sent(
        REVIEWED, {"path": "src/refund.py", "side": "new", "start_line": "41", "text": "Use a constant;\nit's 2"}
    ),
    "create_agent": Sent(
        typed={"name": "new_one", "instructions": "You are 'new'.\nDo it.", "labels": "gpu=yes\nos=linux"}
    ),
    "edit_agent": Sent({"name": "{spare_agent}"}, {"cost_limit": "2.5", "limits": "command_timeout=9.5"}),
    "prune_audit_log": Sent(typed={"before": "2020-01-01T00:00:00Z"}, same=True),
    "rotate_drone_keys": Sent({"name": "{played}"}),
    "revoke_drone_keys": Sent(DRONE),
    "submit": Sent(
        typed={
            "prompt": '-fix it\'s\n  "broken" $HOME',
            "project": "{projects}",
            "provider": "{providers}",
            "labels": "gpu=yes",
            "mode": "plan",
            "priority": "-5",
            "max_iterations": "7",
            "cost_limit": "0",
            "max_run_seconds": "90.5",
            "on_limit": "ask",
            "keep_raw": "true",
            "verify": "pytest -q\nmake 'it'",
            "verify_attempts": "2",
            "approval_timeout": "5400",
            "approve": "risky",
            "limits": "max_retries=5\nretry_enabled=false",
            "allow": "git status*\ngit diff *",
        }
    ),
    "submit_graph": Sent(
        typed={"name": "it's two", "project": "{projects}", "provider": "{providers}", "orders": GRAPH}
    ),
    "submit_batch": Sent(typed={"name": "it's night", "parallel": "2", "rows": ROWS}),
    "retry_batch": Sent({"batch_id": "canceled"}, {"which": "canceled"}),
    "submit_race": Sent(
        typed={
            "prompt": "-be first; it's a race",
            "project": "{projects}",
            "provider": "{providers}",
            "count": "2",
            "pick": "judge",
            "rubric": "Short is 'good'",
            "labels": "race=yes",
        }
    ),
    "cancel_order": Sent(ORDER, {"reason": "no longer needed; it's done"}),
    "move_order": Sent(ORDER, {"drone": "{drones}"}),
    "set_priority": Sent(ORDER, {"priority": "-7"}),
    "retry": Sent(FAILED),
    "resume": Sent(
        FAILED, {"max_iterations": "100", "limits": "max_retries=5", "max_run_seconds": "60", "say": "-mind it"}
    ),
    "say": Sent(WAITS, {"text": "Use pytest, it's better", "after": "true", "alone": "true"}),
    "approve": Sent(WAITS, {"call": "call-1", "comment": "-fine"}),
    "deny": Sent(WAITS, {"call": "call-1", "comment": "not on main"}),
    "edit_plan": Sent({"order_id": "{plans}"}, {"text": "# Tidy\n\n1. [x] It's\n   two lines\n2. [ ] No"}),
    "approve_plan": Sent({"order_id": "{plans}"}, {"points": "2\n1", "comment": "it's fine"}),
    "answer_order": Sent({"order_id": "{asks}"}, {"text": "-5 it's", "call": "call-2"}),
    "add_project": Sent(
        typed={
            "slug": "shop",
            "git_url": "https://git.example/s.git",
            "description": "Sells\nthings",
            "setup": "make\nmake deps",
            "budget_usd_day": "2.5",
            "trailers": "Assisted-by",
            "check": "true",
        }
    ),
    "edit_project": Sent(PROJECT, {"branch": "next", "setup": "make all", "budget_usd_day": "5", "check": ""}),
    "test_project": Sent({"slug": "spare-project"}, more=("--timeout", "0")),
    "remove_project": Sent({"slug": "spare-project"}),
    "add_provider": Sent(
        typed={
            "name": "main",
            "model": "openai/x",
            "context_window": "1000",
            "params": 'temperature=0.5\nuser="7"\nstop=now',
            "fallbacks": "{providers}",
            "api_key": "sk-secret",
            "check": "",
        },
        stdin="sk-secret",
    ),
    "edit_provider": Sent(PROVIDER, {"api_base": "https://x.example/v1", "params": "temperature=1"}),
    "test_provider": Sent({"name": "spare-provider"}, more=("--timeout", "0")),
    "set_budget": Sent({"kind": "project", "name": "{projects}"}, {"usd": "20", "per": "day", "zone": "Europe/Berlin"}),
    "open_pull_request": Sent(DONE, {"title": "Fix it's bug", "draft": "true"}, refused=True),
    "open_task_pull_request": Sent(TASK, {"draft": "true"}, refused=True),
    "create_schedule": Sent(
        typed={"name": "weekly", "cron": "0 6 * * 1", "timezone": "Europe/Berlin", "missed": "skip", **NESTED}
    ),
    "edit_schedule": Sent({"name": "{schedules}"}, {"cron": "30 2 * * *", "task.priority": "5", "enabled": ""}),
    "create_task": Sent(
        typed={"title": "-Add it's currency", "description": "To\nprices", "project": "{projects}", "priority": "-3"}
    ),
    "comment_task": Sent({"task_id": "{open_task}"}, {"text": "- what about\nthis?"}),
    "edit_profile": Sent({"name": "{profiles}"}, {"mode": "test", "labels": "", "description": "-other"}),
    "edit_memory": Sent({"note_id": "{memory}"}, {"text": "-another note", "why": ""}),
    "label_entry": Sent({"session_id": "{failed_session}"}, {"entry": "{failed}", "text": "it's good"}),
    "create_join_token": Sent(typed={"expires_s": "7200", "uses": "3", "labels": "gpu=yes", "serves": "*"}),
    "add_pool": Sent(typed={"name": "burst", "labels": "gpu=yes", "max_drones": "20", "expires_s": "7200"}),
    "rotate_pool": Sent({"name": "{pools}"}, {"expires_s": "7200"}),
    "create_api_token": Sent(typed={"role": "viewer", "name": "it's ci", "expires_s": "90", "user": "{users}"}),
    "create_login_link": Sent(same=True),
    "create_trigger": Sent(
        typed={"name": "issues", "kind": "gitlab", "secret": "s3cret-s3cret-s3cret", "events": "push", **NESTED},
        stdin="s3cret-s3cret-s3cret",
    ),
    "edit_trigger": Sent({"name": "{triggers}"}, {"events": "push\nissues.opened", "task.title": "A new title"}),
    "edit_code_host": Sent({"name": "{code-hosts}"}, {"strangers": "reply", "poll_seconds": "0", "enabled": ""}),
    "unmap_host_user": Sent({"name": "{code-hosts}", "login": "mapped"}),
    "edit_webhook": Sent(
        {"name": "{webhooks}"}, {"url": "https://chat.example/y", "events": "task.done", "enabled": ""}
    ),
    "test_webhook": Sent({"name": "{webhooks}"}),
}


@dataclass
class Prepared:
    """A fleet with one of everything, which can be put back as it was."""

    api: Api
    names: dict[str, str]
    snapshot: Path
    admin: httpx.Client
    user: httpx.Client
    """Logged-in browsers."""

    def restore(self) -> None:
        with closing(sqlite3.connect(self.snapshot)) as source, closing(sqlite3.connect(self.database)) as database:
            source.backup(database)
        # The drones beat now: otherwise one may fall silent between a form and its command, and takes no order then.
        with self.api.core.database.write() as db:
            db.execute(update(Drone).values(last_seen_at=self.api.core.clock.now()))
        # The blobs of one test are gone in the next.
        shutil.copytree(self.snapshot.parent / "blobs", self.api.core.blobs.root, dirs_exist_ok=True)

    @property
    def database(self) -> str:
        return str(self.api.core.blobs.root.parent / "fleet.db")

    def rows(self) -> dict[str, list[str]]:
        """All rows without what differs between two runs of the same: new ids, times and secrets."""
        found = {}
        with self.api.core.database.read() as db:
            for table in METADATA.sorted_tables:
                if not table.name.startswith(IGNORED_TABLES):
                    rows = db.execute(select(table)).mappings().all()
                    found[table.name] = sorted(self._compared(dict(row)) for row in rows)
        return found

    def _compared(self, row: dict[str, Any]) -> str:
        kept = {name: value for name, value in row.items() if not SECRET.search(name)}
        text = TIME.sub("a time", json.dumps(kept, default=str, sort_keys=True))
        return ID.sub(lambda id: id[0] if id[0] in self.known else "new", text)

    @cached_property
    def known(self) -> frozenset[str]:
        """The ids that the fleet began with."""
        with closing(sqlite3.connect(self.snapshot)) as database:
            return frozenset(ID.findall("\n".join(database.iterdump())))


@pytest.fixture
def prepared(api: Api, tmp_path: Path) -> Iterator[Prepared]:
    """One of everything, in the states that the operations need."""
    names = _prepare(api)
    with api.browser() as admin, api.browser(token=names["user_token"]) as user:
        found = Prepared(api, names, tmp_path / "snapshot.db", admin, user)
        with closing(sqlite3.connect(found.database)) as source, closing(sqlite3.connect(found.snapshot)) as snapshot:
            source.backup(snapshot)
        shutil.copytree(api.core.blobs.root, tmp_path / "blobs")
        yield found


def _prepare(api: Api) -> dict[str, str]:
    core, admin = api.core, system_caller(api.core)
    names = {**fill(api, admin, MARK).names, "played": "played", "spare_agent": "spare_agent"}
    _orders(api, names)
    with core.database.write() as db:
        agent = db.scalars(select(Agent.id).where(Agent.name == names["agents"])).one()
    names["open_task"] = add_task(core, admin, agent, title="open", description="open")
    with core.database.write() as db:
        db.get_one(Task, names["open_task"]).status = "open"
    rows = json.loads(ROWS.replace("{projects}", names["projects"]).replace("{providers}", names["providers"]))
    spare = {"slug": "spare-project", "git_url": "https://127.0.0.1:9/x.git", "provider": names["providers"]}
    with api.http() as http:
        for path, body in (
            ("/users", {"email": "worker@example.org", "name": "Worker", "role": "operator"}),
            ("/providers", {"name": "spare-provider", "model": "openai/x", "api_base": "http://127.0.0.1:9/v1"}),
            ("/projects", spare),
            ("/organizations/default/agents", {"name": "spare_agent", "instructions": "You are spare."}),
            ("/batches", {"name": "canceled", "rows": rows}),
            ("/batches/canceled/cancel", None),
        ):
            answer = http.post(f"/api/v1{path}", json=body)
            assert answer.is_success, answer.text
        mapped = http.put(f"/api/v1/code-hosts/{names['code-hosts']}/users/mapped", json={"user": "worker@example.org"})
        assert mapped.is_success, mapped.text
    made = tokens.create_api_token(core, admin, ApiTokenRequest(role="viewer", user=names["users"]))
    return {**names, "user_token": str(made.token)}


def _orders(api: Api, names: dict[str, str]) -> None:
    """Orders in the states that the operations need."""
    played, racing = api.add_drone("played"), api.add_drone("racing", labels={"race": "yes"})
    with api.core.database.write() as db:
        for each in (played, racing):
            db.get_one(Drone, each.id).beat = {"abilities": list(ABILITIES)}
        # What it is given stays in the queue, which is part of the database.
        both = db.get_one(Drone, racing.id)
        both.draining, both.concurrency = True, 2
    project = names["projects"]
    failed, waiting, pushed, asks, reviewed = (played.take(api.submit(f"order {n}", project=project)) for n in range(5))
    names["reviewed"] = deliver(api, reviewed)
    asks.step(ApprovalStep(call_id="call-2", tool="ask_user", why="", about="question", text="How much?"))
    waiting.step(ApprovalStep(call_id="call-1", tool="shell", why="it pushes", command="git push"))
    for run, status in ((failed, OrderStatus.FAILED), (pushed, OrderStatus.SUCCEEDED)):
        with api.core.database.write() as db:
            order = db.get_one(Order, run.order_id)
            finish(db, api.core, order, status, Ending("stopped", RunEnd(), "done"))
    names |= {"failed": failed.order_id, "waiting": waiting.order_id, "pushed": pushed.order_id, "asks": asks.order_id}
    names["failed_session"] = api.client.call(orders.SHOW, order_id=failed.order_id)["session"]
    names["plans"] = api.submit("plans", project=project, plan_first=True)["id"]
    points = (PlanPoint(text="a"), PlanPoint(text="b"))
    played.take({"id": names["plans"]}).presents(AgentPlan(title="Tidy", points=points))
    names["queued"] = api.submit("waits", project=project, labels={"nowhere": "yes"})["id"]


def filled_in(texts: Mapping[str, str], names: Mapping[str, str]) -> dict[str, str]:
    """The texts with the ids and names of the fleet's things."""
    return {
        key: re.sub(r"\{([\w-]+)\}(?!\})", lambda found: names.get(found[1], found[0]), text)
        for key, text in texts.items()
    }


def test_every_command_that_is_written_by_hand_and_every_shape_of_a_field_is_tried() -> None:
    by_hand = {name for name, each in CHANGING.items() if not isinstance(each.command, Command | NoDoor)}
    assert by_hand - CASES.keys() == set()
    fields = [(name, field) for name, each in CHANGING.items() for field in form_fields(each)]
    typed = {field.shape for name, field in fields if name in CASES and field.name in CASES[name].typed}
    assert {field.shape for _, field in fields} - typed <= {"hidden"}


@pytest.mark.timeout(900)
def test_a_page_and_its_command_do_the_same(prepared: Prepared) -> None:
    """Each operation by itself: what was changed is put back before the next one."""
    wrong = {name: found for name in CASES if (found := difference(prepared, name))}
    assert wrong == {}


def difference(prepared: Prepared, name: str) -> str:
    """What the page and the command of an operation do differently."""
    case, api = CASES[name], prepared.api
    prepared.restore()
    names = filled_in(case.names, prepared.names)
    browser, token = (prepared.user, prepared.names["user_token"]) if case.user else (prepared.admin, api.token)
    form = {**opened(browser, CHANGING[name], names), **filled_in(case.typed, prepared.names), **names}
    line = printed(browser.post(f"/actions/{name}/command", data=form, headers={"Accept": "text/x-part"}).text)
    before = prepared.rows()
    answer = browser.post(f"/actions/{name}", data=form, headers={"Accept": "text/x-part"})
    by_page = prepared.rows()
    if answer.status_code not in ({409, 412} if case.refused else {200, 201, 303}):
        return answer.text
    prepared.restore()
    words, stdin = words_of(line)
    command = fleet(api, *words, *case.more, stdin=stdin or f"{case.stdin}\n", FLEET_API_TOKEN=token)
    if (command.returncode not in {0, 1}) is not case.refused:
        return f"{line}: {command.stderr}"
    by_command = prepared.rows()
    differing = {table: set(rows) ^ set(by_command[table]) for table, rows in by_page.items()}
    if changed := {table: sorted(rows) for table, rows in differing.items() if rows}:
        return f"{line}: {changed}"
    return "" if (by_page == before) is (case.same or case.refused) else f"{line}: before and after are alike"


def opened(browser: httpx.Client, operation: Operation, names: Mapping[str, str]) -> dict[str, str]:
    """What a browser has in the form before anything is typed."""
    page = browser.get(f"/actions/{operation.name}", params=dict(names), headers={"Accept": "text/html"})
    assert page.status_code == 200, page.text
    return FormValues(page.text).values


def printed(page: str) -> str:
    """The command in a form."""
    (line,) = re.findall(r"<code>((?:fleet|printf) .*?)</code>", page, re.DOTALL)
    return html.unescape(line)


def words_of(line: str) -> tuple[list[str], str]:
    """The words after `fleet`, as a shell reads the line, and what is piped to it."""
    words = shlex.split(line)
    at = words.index("fleet")
    return words[at + 1 :], words[2] if at else ""
