""" "Copy as command" for every operation: the action of a page and the printed command change the same rows.

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

from control_plane.core import Caller, Core
from control_plane.db.drones import Drone
from control_plane.db.metadata import METADATA
from control_plane.db.orders import Order
from control_plane.db.teams import Agent, Task
from control_plane.declarations.attention import PushRequest
from control_plane.declarations.operation import NoDoor, Operation, every_operation
from control_plane.declarations.tokens import ApiTokenRequest
from control_plane.lookups.organizations import system_caller
from control_plane.operations.access import tokens
from control_plane.operations.attention import browsers
from control_plane.orders.ending import Ending, finish
from shared.events import ABILITIES, ApprovalStep
from shared.plans import AgentPlan, PlanPoint
from shared.reasons import RunEnd
from shared.states import OrderStatus
from tests.integration.web.test_derived_commands import fleet
from tests.support.filled import fill
from tests.support.fleet import Api
from tests.support.forms import FormValues
from tests.support.patches import deliver
from tests.support.push_services import SubscribedBrowser
from tests.support.team_rows import add_task

MARK = "mark"
LATER = "2026-01-01T00:00:00+00:00"
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
    same: bool = False
    """It changes no row, or only secret ones."""
    refused: bool = False
    user: bool = False
    """By a user; else by a token without one."""


ORDER, FAILED, WAITS, DONE = ({"order_id": each} for each in ("{queued}", "{failed}", "{waiting}", "{pushed}"))
TASK = {"task_id": "{tasks}"}
ENDED = {"task_id": "{ended_task}"}
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
    "task.assignee": "user",
    "task.mode": "plan",
    "task.priority": "7",
    "task.max_iterations": "9",
    "task.cost_limit": "1.5",
    "task.max_run_seconds": "60",
}
REVIEWED = {"order_id": "{reviewed}"}
COMMENT = {**REVIEWED, "comment_id": "{comment}"}
CASES: Mapping[str, Sent] = {
    "edit_attention": Sent(typed={"webhook_url": "https://chat.example/x", "about": "all"}, user=True),
    "test_attention": Sent(user=True),
    "unsubscribe_browser": Sent({"browser": "{browser}"}, user=True),
    "add_review_comment": Sent(
        REVIEWED, {"path": "src/refund.py", "side": "new", "start_line": "41", "text": "Use a constant;\nit's 2"}
    ),
    "edit_review_comment": Sent(COMMENT, {"text": 'Use "sum"'}),
    "remove_review_comment": Sent(COMMENT),
    "send_review": Sent(REVIEWED, {"text": "Nearly there"}),
    "create_agent": Sent(
        typed={
            "name": "new_one",
            "instructions": "You are 'new'.\nDo it.",
            "labels": "gpu=yes\nos=linux",
            "model": "x/y",
        }
    ),
    "edit_agent": Sent(
        {"name": "{spare_agent}"},
        {
            "cost_limit": "2.5",
            "provider": "{providers}",
            "concurrency": "2",
            "limits": "command_timeout=9.5",
            "thinking": "low",
        },
    ),
    "remove_agent": Sent({"name": "{spare_agent}"}),
    "run_retention": Sent(same=True),
    "prune_audit_log": Sent(typed={"before": "2020-01-01T00:00:00Z"}, same=True),
    "edit_drone": Sent(DRONE, {"owner": "{users}"}),
    "remove_drone": Sent(DRONE),
    "drain_drone": Sent(DRONE),
    "resume_drone": Sent({"name": "{drained}"}),
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
            "thinking": "xhigh",
            "profile": "{profiles}",
            "reviewer": "{providers}",
            "keep_raw": "true",
            "verify": "pytest -q\nmake 'it'",
            "verify_attempts": "2",
            "approval_timeout": "5400",
            "progress_timeout": "30",
            "max_attempts": "2",
            "approve": "risky",
            "limits": "max_retries=5\nretry_enabled=false",
            "allow": "git status*\ngit diff *",
        }
    ),
    "submit_graph": Sent(
        typed={"name": "it's two", "project": "{projects}", "provider": "{providers}", "orders": GRAPH}
    ),
    "cancel_graph": Sent({"graph_id": "{graph}"}),
    "submit_batch": Sent(typed={"name": "it's night", "parallel": "2", "rows": ROWS}),
    "cancel_batch": Sent({"batch_id": "{batch}"}, {"reason": "it's late"}),
    "retry_batch": Sent({"batch_id": "{canceled_batch}"}, {"which": "canceled"}),
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
    "take_order": Sent({"race_id": "{race}"}, {"order": "B"}),
    "cancel_race": Sent({"race_id": "{open_race}"}, {"reason": "it's over"}),
    "cancel_order": Sent(ORDER, {"reason": "no longer needed; it's done"}),
    "move_order": Sent(ORDER, {"drone": "{drones}"}),
    "set_priority": Sent(ORDER, {"priority": "-7"}),
    "retry": Sent(FAILED),
    "resume": Sent(
        FAILED, {"max_iterations": "100", "limits": "max_retries=5", "max_run_seconds": "60", "say": "-mind it"}
    ),
    "say": Sent(WAITS, {"text": "Use pytest, it's better", "after": "true", "alone": "true"}),
    "clear_queue": Sent(WAITS, same=True),
    "approve": Sent(WAITS, {"call": "call-1", "comment": "-fine"}),
    "deny": Sent(WAITS, {"call": "call-1", "comment": "not on main"}),
    "edit_plan": Sent({"order_id": "{plans}"}, {"text": "# Tidy\n\n1. [x] It's\n   two lines\n2. [ ] No"}),
    "approve_plan": Sent({"order_id": "{plans}"}, {"points": "2\n1", "comment": "it's fine"}),
    "send_back_plan": Sent({"order_id": "{plans}"}, {"text": "Not on main,\nit's shared"}),
    "answer_order": Sent({"order_id": "{asks}"}, {"text": "-5 it's", "call": "call-2"}),
    "create_organization": Sent(typed={"name": "other_team", "description": "Builds things", "concurrency": "2"}),
    "edit_organization": Sent(
        {"name": "{organizations}"},
        {
            "description": "-x",
            "project": "{projects}",
            "max_hand_offs": "3",
            "limits": "token_limit=100",
            "thinking": "high",
        },
    ),
    "remove_organization": Sent({"name": "spare_team"}),
    "pause_organization": Sent({"name": "{organizations}"}),
    "resume_organization": Sent({"name": "paused_team"}),
    "add_project": Sent(
        typed={
            "slug": "shop",
            "git_url": "https://git.example/s.git",
            "name": "The Shop",
            "description": "Sells\nthings",
            "branch": "main",
            "setup": "make\nmake deps",
            "verify": "make 'test it'",
            "provider": "{providers}",
            "budget_usd_day": "2.5",
            "pull_requests": "ready",
            "trailers": "Assisted-by",
            "check": "true",
        }
    ),
    "edit_project": Sent(
        PROJECT,
        {
            "branch": "next",
            "setup": "make all",
            "budget_usd_day": "5",
            "limits": "base_delay=1.5",
            "thinking": "off",
            "check": "",
        },
    ),
    "test_project": Sent(PROJECT),
    "remove_project": Sent({"slug": "spare-project"}),
    "add_provider": Sent(
        typed={
            "name": "main",
            "model": "openai/x",
            "api_base": "https://models.example/v1",
            "context_window": "1000",
            "protocol": "text",
            "thinking": "low",
            "params": 'temperature=0.5\nuser="7"\nstop=now',
            "fallbacks": "{providers}",
            "rotation": "random",
            "rpm": "5",
            "api_key": "sk-secret",
            "check": "",
        },
        stdin="sk-secret",
    ),
    "edit_provider": Sent(
        PROVIDER, {"api_base": "https://x.example/v1", "params": "temperature=1", "thinking": "auto"}
    ),
    "test_provider": Sent(PROVIDER),
    "remove_provider": Sent({"name": "spare-provider"}),
    "set_budget": Sent({"kind": "project", "name": "{projects}"}, {"usd": "20", "per": "day", "zone": "Europe/Berlin"}),
    "remove_budgets": Sent({"kind": "project", "name": "{projects}"}, {"per": "month"}),
    "set_price": Sent({"model": "openai/x"}, {"input_usd": "2.5", "output_usd": "10", "discount_percent": "5"}),
    "set_mode": Sent(
        {"name": "docs"},
        {
            "project": "{projects}",
            "text": "Write it's docs.\nNo code.",
            "tools": "file_read\neditor",
            "read_only": "true",
            "thinking": "low",
        },
    ),
    "remove_mode": Sent({"name": "{modes}"}),
    "remove_price": Sent({"model": "{prices}"}),
    "open_pull_request": Sent(DONE, {"title": "Fix it's bug", "draft": "true"}, refused=True),
    "open_task_pull_request": Sent(TASK, {"draft": "true"}, refused=True),
    "create_schedule": Sent(
        typed={"name": "weekly", "cron": "0 6 * * 1", "timezone": "Europe/Berlin", "missed": "skip", **NESTED}
    ),
    "edit_schedule": Sent({"name": "{schedules}"}, {"cron": "30 2 * * *", "task.priority": "5", "enabled": ""}),
    "run_schedule": Sent({"name": "nightly"}),
    "remove_schedule": Sent({"name": "{schedules}"}),
    "create_task": Sent(
        typed={
            "title": "-Add it's currency",
            "description": "To\nprices",
            "project": "{projects}",
            "assignee": "user",
            "mode": "plan",
            "priority": "-3",
            "cost_limit": "2",
        }
    ),
    "comment_task": Sent({"task_id": "{open_task}"}, {"text": "- what about\nthis?"}),
    "preempt_task": Sent(TASK),
    "done_task": Sent({"task_id": "{user_task}"}),
    "reopen_task": Sent(ENDED),
    "retry_task": Sent(ENDED, {"assignee": "{agents}"}),
    "cancel_task": Sent(TASK, {"reason": "no longer needed"}),
    "assign_task": Sent({"task_id": "{open_task}"}, {"assignee": "{agents}"}),
    "add_profile": Sent(
        typed={
            "name": "careful",
            "description": "It's -- careful",
            "provider": "{providers}",
            "reviewer": "{providers}",
            "mode": "plan",
            "thinking": "high",
            "approve": "risky",
            "max_iterations": "7",
            "cost_limit": "0",
            "max_run_seconds": "90.5",
            "on_limit": "ask",
            "verify_attempts": "2",
            "labels": "gpu=yes",
        }
    ),
    "edit_profile": Sent({"name": "{profiles}"}, {"mode": "test", "labels": "", "description": "-other"}),
    "remove_profile": Sent({"name": "{profiles}"}),
    "add_memory": Sent(typed={"text": "It's -- a note", "why": "because", "project": "{projects}"}),
    "accept_memory": Sent({"note_id": "{memory}"}),
    "refuse_memory": Sent({"note_id": "{memory}"}),
    "edit_memory": Sent({"note_id": "{memory}"}, {"text": "-another note", "why": ""}),
    "remove_memory": Sent({"note_id": "{memory}"}),
    "create_session": Sent(typed={"project": "{projects}", "name": "It's mine", "approve": "all", "allow": "ls *"}),
    "edit_session": Sent(
        {"session_id": "{sessions}"},
        {"name": "-other", "mode": "plan", "thinking": "high", "allow": "ls", "limits": "max_retries=0"},
    ),
    "switch_session": Sent({"session_id": "{free_session}"}, {"entry": "root", "summarize": "true"}),
    "fork_session": Sent({"session_id": "{free_session}"}, {"at": "root", "name": "a fork"}),
    "label_entry": Sent({"session_id": "{failed_session}"}, {"entry": "{failed}", "text": "it's good"}),
    "compact_session": Sent({"session_id": "{free_session}"}, {"instructions": "Keep it's rules"}),
    "create_join_token": Sent(typed={"expires_s": "7200", "uses": "3", "labels": "gpu=yes", "serves": "*"}),
    "revoke_join_token": Sent({"token_id": "{join-tokens}"}),
    "add_pool": Sent(typed={"name": "burst", "labels": "gpu=yes", "max_drones": "20", "expires_s": "7200"}),
    "edit_pool": Sent({"name": "{pools}"}, {"labels": "", "max_drones": "3"}),
    "rotate_pool": Sent({"name": "{pools}"}, {"expires_s": "7200"}),
    "remove_pool": Sent({"name": "{pools}"}),
    "create_api_token": Sent(typed={"role": "viewer", "name": "it's ci", "expires_s": "90", "user": "{users}"}),
    "revoke_api_token": Sent({"token_id": "{api-tokens}"}),
    "create_login_link": Sent(same=True),
    "end_login_session": Sent({"login_session_id": "{login-sessions}"}, same=True),
    "create_trigger": Sent(
        typed={"name": "issues", "kind": "gitlab", "secret": "s3cret-s3cret-s3cret", "events": "push", **NESTED},
        stdin="s3cret-s3cret-s3cret",
    ),
    "edit_trigger": Sent({"name": "{triggers}"}, {"events": "push\nissues.opened", "task.title": "A new title"}),
    "remove_trigger": Sent({"name": "{triggers}"}),
    "add_code_host": Sent(
        typed={
            "name": "shop",
            "kind": "gitlab",
            "project": "{projects}",
            "repository": "it/shop",
            "secret": "s3cret-s3cret-s3cret",
            "mention": "@robot",
            "poll_seconds": "60",
            "strangers": "reply",
            "max_follow_ups": "1",
            "drone": "{drones}",
        },
        stdin="s3cret-s3cret-s3cret",
    ),
    "edit_code_host": Sent({"name": "{code-hosts}"}, {"strangers": "reply", "poll_seconds": "0", "enabled": ""}),
    "remove_code_host": Sent({"name": "{code-hosts}"}),
    "map_host_user": Sent({"name": "{code-hosts}"}, {"login": "alice", "user": "worker@example.org"}),
    "unmap_host_user": Sent({"name": "{code-hosts}", "login": "mapped"}),
    "sync_code_host": Sent({"name": "{code-hosts}"}, same=True),
    "add_user": Sent(typed={"email": "kim@example.org", "name": "Kim O'Hara", "role": "operator"}),
    "edit_user": Sent({"user": "{users}"}, {"name": "Another Name", "role": "operator", "disabled": "true"}),
    "remove_user": Sent({"user": "{users}"}),
    "create_webhook": Sent(typed={"name": "chat", "url": "https://chat.example/x?a=1&b=2", "events": "order.failed"}),
    "edit_webhook": Sent(
        {"name": "{webhooks}"}, {"url": "https://chat.example/y", "events": "task.done", "enabled": ""}
    ),
    "test_webhook": Sent({"name": "{webhooks}"}),
    "resend_delivery": Sent({"name": "{webhooks}", "message": "{deliveries}"}),
    "remove_webhook": Sent({"name": "{webhooks}"}),
}


@dataclass
class Prepared:
    """A fleet with one of everything, which can be put back as it was."""

    api: Api
    names: dict[str, str]
    snapshot: Path

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


READY: dict[str, Prepared] = {}
"""Prepared fleets by their server's database: what one test prepared, the next ones start from."""


@pytest.fixture
def prepared(api: Api, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """One of everything, in the states that the operations need."""
    place = str(api.core.blobs.root)
    if place not in READY:
        READY[place] = _prepare(api, tmp_path_factory.mktemp("prepared"))
    found = Prepared(api, READY[place].names, READY[place].snapshot)
    found.restore()
    return found


def _prepare(api: Api, tmp_path: Path) -> Prepared:
    core, admin = api.core, system_caller(api.core)
    names = {**fill(api, admin, MARK).names, "played": "played", "drained": "drained"}
    _more_orders(api, names)
    _more_tasks(core, names)
    for path, body in (
        ("/organizations", {"name": "spare_team"}),
        ("/organizations", {"name": "paused_team"}),
        ("/users", {"email": "worker@example.org", "name": "Worker", "role": "operator"}),
        ("/organizations/paused_team/pause", None),
        ("/providers", {"name": "spare-provider", "model": "openai/x"}),
        (
            "/projects",
            {"slug": "spare-project", "git_url": "https://git.example/x.git", "provider": names["providers"]},
        ),
        ("/organizations/default/agents", {"name": "spare_agent", "instructions": "You are spare."}),
        ("/drones/drained/drain", None),
        (
            "/schedules",
            {"name": "nightly", "cron": "0 2 * * *", "task": {"title": "Tidy", "project": names["projects"]}},
        ),
    ):
        with api.http() as http:
            answer = http.post(f"/api/v1{path}", json=body)
            assert answer.is_success, answer.text
    with api.http() as http:
        mapped = http.put(f"/api/v1/code-hosts/{names['code-hosts']}/users/mapped", json={"user": "worker@example.org"})
        assert mapped.is_success, mapped.text
    names["spare_agent"] = "spare_agent"
    _user(core, admin, names)
    found = Prepared(api, names, tmp_path / "snapshot.db")
    with closing(sqlite3.connect(found.database)) as source, closing(sqlite3.connect(found.snapshot)) as snapshot:
        source.backup(snapshot)
    shutil.copytree(core.blobs.root, tmp_path / "blobs")
    return found


def _more_orders(api: Api, names: dict[str, str]) -> None:
    api.add_drone("drained")
    played = api.add_drone("played")
    with api.core.database.write() as db:
        db.get_one(Drone, played.id).beat = {"abilities": list(ABILITIES)}
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
    names["plans"] = api.submit("plans", project=project, plan_first=True)["id"]
    played.take({"id": names["plans"]}).presents(
        AgentPlan(title="Tidy", points=(PlanPoint(text="a"), PlanPoint(text="b")))
    )
    _groups(api, names, project)
    names["queued"] = api.submit("waits", project=project, labels={"nowhere": "yes"})["id"]
    with api.http() as http:
        about = {"path": "docs/guide.md", "side": "new", "start_line": 3, "text": "Which contract?"}
        names["comment"] = http.post(f"/api/v1/orders/{reviewed.order_id}/review", json=about).json()["id"]
        made = http.post("/api/v1/sessions", json={"project": project, "name": "free"})
        names["free_session"] = made.json()["id"]
        made = http.post("/api/v1/tasks", json={"title": "Mine", "assignee": "user", "project": project})
        names["user_task"] = made.json()["id"]
        names["failed_session"] = http.get(f"/api/v1/orders/{failed.order_id}").json()["session"]


def _groups(api: Api, names: dict[str, str], project: str) -> None:
    """A graph that waits, a race in which one may be taken, and one that runs."""
    racing = api.add_drone("racing", labels={"race": "yes"})
    with api.core.database.write() as db:
        drone = db.get_one(Drone, racing.id)
        drone.beat, drone.concurrency = {"abilities": list(ABILITIES)}, 9
    work = {"project": project, "provider": names["providers"]}
    race = {**work, "prompt": "race", "count": 2, "pick": "person", "labels": {"race": "yes"}}
    with api.http() as http:
        taken = http.post("/api/v1/races", json=race).json()
        with api.core.database.write() as db:
            # Those of the other one stay in the queue, which is part of the database.
            db.get_one(Drone, racing.id).draining = True
        graph = http.post("/api/v1/graphs", json={**work, "orders": json.loads(GRAPH)}).json()
        open_one = http.post("/api/v1/races", json=race).json()
        rows = json.loads(ROWS.replace("{projects}", project).replace("{providers}", names["providers"]))
        batches = [http.post("/api/v1/batches", json={"name": name, "rows": rows}).json() for name in ("one", "two")]
        http.post(f"/api/v1/batches/{batches[1]['id']}/cancel")
    names |= {"batch": batches[0]["id"], "canceled_batch": batches[1]["id"]}
    for order in taken["orders"]:
        run = racing.take(order)
        with api.core.database.write() as db:
            row = db.get_one(Order, run.order_id)
            row.head_commit, row.branch = "c" * 40, f"fleet/{row.id}"
            finish(db, api.core, row, OrderStatus.SUCCEEDED, Ending("stopped", RunEnd(), "done"))
    names |= {"graph": graph["id"], "race": taken["race"]["id"], "open_race": open_one["race"]["id"]}


def _user(core: Core, admin: Caller, names: dict[str, str]) -> None:
    """A user who is notified in a browser."""
    made = tokens.create_api_token(core, admin, ApiTokenRequest(role="viewer", user=names["users"]))
    names["user_token"] = str(made.token)
    request = PushRequest(name="laptop", **SubscribedBrowser("https://push.example/a").request)
    names["browser"] = browsers.subscribe(core, tokens.authenticate(core, names["user_token"]), request).id


def _more_tasks(core: Core, names: dict[str, str]) -> None:
    admin = system_caller(core)
    with core.database.read() as db:
        agent = db.scalars(select(Agent.id).where(Agent.name == names["agents"])).one()
    for name, status in (("open_task", "open"), ("ended_task", "done")):
        names[name] = add_task(core, admin, agent, title=name, description=name)
        with core.database.write() as db:
            task = db.get_one(Task, names[name])
            task.status = status


def filled_in(texts: Mapping[str, str], names: Mapping[str, str]) -> dict[str, str]:
    """The texts with the ids and names of the fleet's things."""
    return {
        key: re.sub(r"\{([\w-]+)\}(?!\})", lambda found: names.get(found[1], found[0]), text)
        for key, text in texts.items()
    }


def test_every_operation_that_has_a_command_is_tried() -> None:
    assert set(CASES) == {name for name, each in CHANGING.items() if not isinstance(each.command, NoDoor)}


@pytest.mark.parametrize("name", CASES)
def test_a_page_and_its_command_do_the_same(prepared: Prepared, name: str) -> None:
    case, api = CASES[name], prepared.api
    names = filled_in(case.names, prepared.names)
    token = prepared.names["user_token"] if case.user else api.token
    with api.browser(token=token) as browser:
        form = {**opened(browser, CHANGING[name], names), **filled_in(case.typed, prepared.names), **names}
        line = printed(browser.post(f"/actions/{name}/command", data=form, headers={"Accept": "text/x-part"}).text)
        before = prepared.rows()
        answer = browser.post(f"/actions/{name}", data=form, headers={"Accept": "text/x-part"})
        by_page = prepared.rows()
    assert answer.status_code in ({409, 412} if case.refused else {200, 201, 303}), answer.text
    prepared.restore()

    words, stdin = words_of(line)
    command = fleet(api, *words, stdin=stdin or f"{case.stdin}\n", FLEET_API_TOKEN=token)
    assert (command.returncode not in {0, 1}) is case.refused, (line, command.stderr)
    by_command = prepared.rows()
    differences = {table: changed for table in by_page if (changed := differing(by_page[table], by_command[table]))}
    assert differences == {}, line
    assert (by_page == before) is (case.same or case.refused)


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


def differing(one: list[str], other: list[str]) -> Iterator[str] | list[str]:
    return sorted(set(one) ^ set(other))
