"""Every operation that has a form and a command, with what is typed into the form, and a fleet to try both on."""

from __future__ import annotations

import html
import json
import re
import shlex
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx
from sqlalchemy import select, update

from control_plane.contract.declarations import memory, orders, projects
from control_plane.contract.declarations.code_hosts import HostUserRequest
from control_plane.contract.declarations.memory import MemoryRequest
from control_plane.contract.declarations.operation import NoDoor, Operation, every_operation
from control_plane.contract.declarations.organizations import OrganizationEdit
from control_plane.contract.declarations.projects import ProjectEdit
from control_plane.contract.declarations.providers import ProviderRequest
from control_plane.contract.declarations.tokens import ApiTokenRequest
from control_plane.contract.declarations.users import UserRequest
from control_plane.core import Caller
from control_plane.core.lookups.organizations import system_caller
from control_plane.db.drones import Drone
from control_plane.db.metadata import METADATA
from control_plane.db.orders import Order
from control_plane.db.teams import Agent, Task
from control_plane.operations import organizations, providers
from control_plane.operations.access import tokens, users
from control_plane.operations.code_hosts import connections as code_hosts
from control_plane.orders.ending import Ending, finish
from control_plane.web.forms.fields import FormField, form_fields
from shared.events import ABILITIES, ApprovalStep
from shared.plans import AgentPlan, PlanPoint
from shared.reasons import RunEnd
from shared.states import OrderStatus
from tests.support.command_lines import Done
from tests.support.filled import fill, resource_of
from tests.support.fleet import Api
from tests.support.made import make_project
from tests.support.organizations import add_organization
from tests.support.push_services import SubscribedBrowser
from tests.support.reviews import reviewed, with_patch
from tests.support.team_rows import add_agent, add_task, begin, order_of
from tests.support.team_rows import end as end_of_turn
from tests.support.turns import end, said
from tests.support.waiting import ENDS

_Attributes = list[tuple[str, str | None]]


@dataclass
class PageForm:
    """A form of a page, with the values that a browser would send."""

    attributes: Mapping[str, str]
    values: dict[str, str] = field(default_factory=dict)
    visible: set[str] = field(default_factory=set)
    """The fields that a user fills in."""

    @property
    def operation(self) -> str:
        """What it does; empty for forms that do something else."""
        return self.attributes.get("action", "").partition("/actions/")[2]


class PageForms(HTMLParser):
    """The forms of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.forms: list[PageForm] = []
        self._inside = self._in_template = False
        self._name = ""
        self._text: str | None = None
        self._options: list[tuple[str | None, bool]] = []
        self._others: list[PageForm] = []
        """What other buttons of the same form do."""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: _Attributes) -> None:
        given = {name: value or "" for name, value in attrs}
        self._in_template = self._in_template or tag == "template"
        if tag == "form" and not self._in_template:
            self.forms.append(PageForm(given))
            self._inside = True
        if not self._inside:
            return
        name, form = given.get("name", ""), self.forms[-1]
        if tag == "button" and "formaction" in given:
            other = {name: given.get("value", "")} if name else {}
            self._others.append(PageForm({**form.attributes, "action": given["formaction"]}, other))
        if tag in {"input", "textarea", "select"} and given.get("type") != "hidden":
            form.visible.add(name)
        if tag == "input" and name and (given.get("type") not in {"checkbox", "radio"} or "checked" in given):
            form.values[name] = given.get("value", "")
        elif tag in {"textarea", "select"}:
            self._name, self._text, self._options = name, "" if tag == "textarea" else None, []
        elif tag == "option" and self._name:
            self._options.append((given.get("value"), "selected" in given))

    def handle_data(self, data: str) -> None:
        if self._text is not None:
            self._text += data
        elif self._options and self._options[-1][0] is None:
            # The text of an option without a value is its value.
            self._options[-1] = data, self._options[-1][1]

    def handle_endtag(self, tag: str) -> None:
        self._in_template = self._in_template and tag != "template"
        if not self._inside:
            return
        if tag == "textarea" and self._text is not None:
            # A browser leaves out the line feed after the tag.
            self.forms[-1].values[self._name] = self._text.removeprefix("\n")
            self._text, self._name = None, ""
        elif tag == "select":
            chosen = [value for value, selected in self._options if selected]
            self.forms[-1].values[self._name] = (chosen or [value for value, _ in self._options])[0] or ""
            self._name = ""
        elif tag == "form":
            self._inside, form = False, self.forms[-1]
            self.forms += [PageForm(each.attributes, form.values | each.values, form.visible) for each in self._others]
            self._others = []


def form_values(page: str, operation: str) -> dict[str, str]:
    """The values of the first form of an operation on a page or in a dialog."""
    return next(form.values for form in PageForms(page).forms if form.operation == operation)


MARK = "mark"
USER = "alice@example.org"
WEBHOOK_SECRET = "whsec_" + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
IGNORED_TABLES = ("audit", "web_sessions", "login_links")
"""Who did it, through which door."""
COMPARED = [table for table in METADATA.sorted_tables if not table.name.startswith(IGNORED_TABLES)]
SECRET = re.compile(r"^idempotency_key$|hash|secret|sealed|signature|^number$|^seq$|^key$|public_key|^last_used_at$")
ID = re.compile(r"(?<![0-9a-f])[0-9a-f]{12,}(?![0-9a-f])")
TIME = re.compile(r"\d{4}-\d\d-\d\d[T ][\d:.]+(Z|\+00:00)?")
CHANGING = {each.name: each for each in every_operation() if each.method != "GET" and not each.route_by_hand}


@dataclass(frozen=True)
class Sent:
    """What is typed into the form of an operation; `{orders}` stands for the id or name of a thing that exists."""

    names: Mapping[str, str] = field(default_factory=dict)
    typed: Mapping[str, str | None] = field(default_factory=dict)
    stdin: str = ""
    invisible: bool = False
    """It changes nothing that is compared: it only has to succeed through both doors."""


ORDER, FAILED, WAITS = ({"order_id": each} for each in ("{queued}", "{failed}", "{waiting}"))
DRONE, PROJECT = {"name": "{drones}"}, {"slug": "{projects}"}
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
CASES: Mapping[str, Sent] = {
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
            "ticket": "https://tickets.example/PAYM-12?x=1&y=2",
            "verify": "pytest -q\nmake 'it'",
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
    "edit_project": Sent(PROJECT, {"branch": "next", "setup": "make all", "budget_usd_day": "5", "check": ""}),
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
    "create_schedule": Sent(
        typed={"name": "weekly", "cron": "0 6 * * 1", "timezone": "Europe/Berlin", "missed": "skip", **NESTED}
    ),
    "edit_schedule": Sent({"name": "{schedules}"}, {"cron": "30 2 * * *", "task.priority": "5", "enabled": ""}),
    "create_task": Sent(
        typed={"title": "-Add it's currency", "description": "To\nprices", "project": "{projects}", "priority": "-3"}
    ),
    "comment_task": Sent({"task_id": "{open_task}"}, {"text": "- what about\nthis?"}),
    "dismiss_item": Sent({"item_id": "race:{races}"}),
    "restore_item": Sent({"item_id": "memory:{kept_note}"}),
    "label_entry": Sent({"session_id": "{failed_session}"}, {"entry": "{failed}", "text": "it's good"}),
    "create_join_token": Sent(typed={"expires_s": "7200", "uses": "3", "labels": "gpu=yes", "serves": "*"}),
    "add_pool": Sent(typed={"name": "burst", "labels": "gpu=yes", "max_drones": "20", "expires_s": "7200"}),
    "rotate_pool": Sent({"name": "{pools}"}, {"expires_s": "7200"}),
    "create_api_token": Sent(typed={"role": "viewer", "name": "it's ci", "expires_s": "90", "user": "{users}"}),
    "create_trigger": Sent(
        typed={"name": "issues", "kind": "gitlab", "secret": "s3cret-s3cret-s3cret", "events": "push", **NESTED},
        stdin="s3cret-s3cret-s3cret",
    ),
    "edit_trigger": Sent({"name": "{triggers}"}, {"events": "push\nissues.opened", "task.title": "A new title"}),
}
"""Operations whose forms are filled in by hand: their commands are by hand, or a text is special."""
SPARE_AGENT = {"name": "spare_agent"}
GIVEN: Mapping[str, Sent] = {
    "create_agent": Sent(typed={"name": "its_name", "instructions": None}),
    "edit_agent": Sent(SPARE_AGENT, {"instructions_path": None}),
    "remove_agent": Sent(SPARE_AGENT),
    "unsubscribe_browser": Sent({"browser": "{browser}"}),
    "prune_audit_log": Sent(invisible=True),
    "add_code_host": Sent(typed={"repository": "acme/shop", "mention": "@fleet"}),
    "edit_code_host": Sent(typed={"mention": "@fleet"}),
    "map_host_user": Sent({"login": "hubot"}, {"user": USER}),
    "unmap_host_user": Sent({"login": "octocat"}),
    "sync_code_host": Sent(invisible=True),
    "edit_drone": Sent(typed={"new_name": "its-name"}),
    "resume_drone": Sent({"name": "racing"}),
    "take_order": Sent({"race_id": "{open_race}"}, {"order": "{raced}"}),
    "cancel_race": Sent({"race_id": "{open_race}"}),
    "cancel_batch": Sent({"batch_id": "{open_batch}"}),
    "clear_queue": Sent(WAITS, {"message": "{message}"}),
    "send_back_plan": Sent({"order_id": "{plans}"}, {"revision": None, "round": None}),
    "add_review_comment": Sent(
        {"order_id": "{reviewed}"},
        {"path": "calc.py", "start_line": "3", "end_line": "4", "parent": None, "patch": None},
    ),
    "edit_review_comment": Sent({"order_id": "{reviewed}", "comment_id": "{comment}"}),
    "remove_review_comment": Sent({"order_id": "{reviewed}", "comment_id": "{comment}"}),
    "send_review": Sent({"order_id": "{reviewed}"}),
    "create_organization": Sent(typed={"name": "its_name"}),
    "remove_organization": Sent({"name": "paused"}),
    "resume_organization": Sent({"name": "paused"}),
    "remove_project": Sent({"slug": "spare-project"}),
    "edit_provider": Sent(typed={"fallbacks": "spare-provider"}),
    "remove_provider": Sent({"name": "spare-provider"}),
    "remove_budgets": Sent(typed={"per": "month"}),
    "set_mode": Sent(typed={"tools": "shell\ngrep"}),
    "remove_mode": Sent(typed={"project": None}),
    "done_task": Sent({"task_id": "{given_task}"}),
    "reopen_task": Sent({"task_id": "{done_task}"}),
    "retry_task": Sent({"task_id": "{failed_task}"}),
    "assign_task": Sent({"task_id": "{open_task}"}),
    "run_retention": Sent(typed={"dry_run": ""}, invisible=True),
    "switch_session": Sent({"session_id": "{reviewed_session}"}, {"entry": "{reviewed}"}),
    "fork_session": Sent({"session_id": "{reviewed_session}"}, {"at": "{reviewed}"}),
    "end_login_session": Sent(invisible=True),
    "create_webhook": Sent(typed=(HOOK := {"secret": WEBHOOK_SECRET, "events": "order.failed"}), stdin=WEBHOOK_SECRET),
    "edit_webhook": Sent(typed=HOOK, stdin=WEBHOOK_SECRET),
    "edit_attention": Sent(typed={"webhook_secret": WEBHOOK_SECRET}, stdin=WEBHOOK_SECRET),
}
"""What the derived case of an operation has otherwise: a thing in the state that it needs, a text that is valid."""
VALID: Mapping[str, str | None] = {
    "name": "its-name",
    "email": "kim@example.org",
    "api_base": "https://llm.example/v1",
    "url": "https://hooks.example/y",
    "webhook_url": "https://hooks.example/z",
    "git_url": "https://git.example/y.git",
    "slug": "its-slug",
    "model": "openai/y",
    "branch": "next",
    "timezone": "Europe/Berlin",
    "zone": "Europe/Berlin",
    "before": "2020-01-01T00:00:00Z",
    "limits": "max_retries=5",
    "params": "temperature=0.5",
    "instructions_path": "AGENTS.md",
    "check": "",
    "key_variable": None,
    "no_key": None,
}
"""Valid texts for fields of these names, in place of those for their shape; None: as the form has it."""
SECRET_TEXT = "s3cret-s3cret-s3cret"


def case_of(operation: Operation) -> Sent:
    """What is typed into the operation's form: something into each field."""
    if operation.name in CASES:
        return CASES[operation.name]
    given = GIVEN.get(operation.name, Sent())
    names = {name: given.names.get(name) or f"{{{resource_of(operation.path, name)}}}" for name in operation.names}
    typed = {each.name: typed_into(each) for each in form_fields(operation)} | dict(given.typed)
    return replace(given, names=names, typed=typed, stdin=given.stdin or SECRET_TEXT)


def typed_into(field: FormField) -> str | None:
    """A text for a field, unlike its default; None: as the form has it."""
    if field.name in VALID:
        return VALID[field.name]
    if field.source:
        return f"{{{field.source.partition(':')[0].replace('_', '-')}}}"
    if field.shape == "choice":
        return next(each for each in reversed(field.choices) if each != field.default)
    texts: Mapping[str, str | None] = {
        "text": "it's-a text",
        "long": '- it\'s\n  "text"',
        "number": "7",
        "switch": "" if field.default else "true",
        "lines": "\n".join(field.choices[:2]) or "one it's\ntwo",
        "pairs": "gpu=yes",
        "secret": SECRET_TEXT,
        "json": None,
        "hidden": None,
    }
    return texts[field.shape]


IN_BROKER = {"set_priority", "move_order"}
"""What they change of an order that was assigned is also in the broker, which is not put back."""
OUT_OF_REACH = {
    "test_project": "a drone tests the address",
    "test_provider": "a drone tests the connection",
    "test_webhook": "it waits for the answer of a receiver",
    "test_attention": "it waits for the answers of receivers",
    "open_pull_request": "a code host opens it",
    "open_task_pull_request": "a code host opens it",
    "create_login_link": "the command opens a browser",
}
"""Operations with both doors that are not tried, and what there is not here."""
TRIED = [each for each in CHANGING.values() if not isinstance(each.command, NoDoor) and each.name not in OUT_OF_REACH]


@dataclass
class Prepared:
    """A fleet with one of everything, which can be put back as it was."""

    api: Api
    names: dict[str, str]
    snapshot: Path
    browser: httpx.Client
    fleet: Callable[..., Done]
    """`fleet`, as the user of the browser."""
    _read: dict[str, tuple[list[Any], list[str]]] = field(default_factory=dict)
    """The newest rows of each table, as they are and as they are compared: most operations change few tables."""

    def restore(self) -> None:
        copy_database(self.snapshot, database_of(self.api))
        # The drones beat now: otherwise one may fall silent between a form and its command, and takes no order then.
        with self.api.core.database.write() as db:
            db.execute(update(Drone).values(last_seen_at=self.api.core.clock.now()))

    def named(self, texts: Mapping[str, str | None]) -> dict[str, str]:
        """The texts, with the id or name of a thing for each `{orders}`."""
        return {
            key: re.sub(r"\{([\w-]+)\}(?!\})", lambda found: self.names.get(found[1], found[0]), text)
            for key, text in texts.items()
            if text is not None
        }

    def rows(self) -> dict[str, list[str]]:
        """All rows without what differs between two runs of the same: new ids, times and secrets."""
        found = {}
        with closing(sqlite3.connect(database_of(self.api))) as database:
            for table in COMPARED:
                columns = ", ".join(f'"{each.name}"' for each in table.columns if not SECRET.search(each.name))
                rows = database.execute(f'SELECT {columns} FROM "{table.name}"').fetchall()
                if table.name not in self._read or self._read[table.name][0] != rows:
                    self._read[table.name] = rows, sorted(map(self._compared, rows))
                found[table.name] = self._read[table.name][1]
        return found

    @cached_property
    def before(self) -> dict[str, list[str]]:
        """The rows that the fleet began with."""
        return self.rows()

    def _compared(self, row: Sequence[Any]) -> str:
        text = TIME.sub("a time", json.dumps(row, default=str))
        return ID.sub(lambda id: id[0] if id[0] in self.known else "new", text)

    @cached_property
    def known(self) -> frozenset[str]:
        """The ids that the fleet began with."""
        with closing(sqlite3.connect(self.snapshot)) as database:
            return frozenset(ID.findall("\n".join(database.iterdump())))


def database_of(api: Api) -> Path:
    return api.core.blobs.root.parent / "fleet.db"


def copy_database(original: Path, copy: Path) -> None:
    with closing(sqlite3.connect(original)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)


@contextmanager
def prepared_fleet(api: Api, fleet: Callable[..., Done], snapshot: Path) -> Iterator[Prepared]:
    """One of everything, in the states that the operations need, and an admin who is a user."""
    core, admin = api.core, system_caller(api.core)
    names = {**fill(api, admin, MARK).names, "played": "played", "racing": "racing"}
    users.add(core, admin, UserRequest(email=USER, name="Alice", role="admin"))
    granted = ApiTokenRequest(role="admin", name="alice", everywhere=True, user=USER)
    token = str(tokens.create_api_token(core, admin, granted).token)
    with api.browser(token=token) as browser, api.http(token) as http:
        _orders(api, names)
        _tasks(api, admin, names)
        _spare(api, admin, names, http)
        found = Prepared(
            api, names, snapshot, browser, lambda *words, **how: fleet(*words, FLEET_API_TOKEN=token, **how)
        )
        copy_database(database_of(api), snapshot)
        yield found


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
    failed, waiting, asks = (played.take(api.submit(f"order {n}", project=project)) for n in range(3))
    asks.step(ApprovalStep(call_id="call-2", tool="ask_user", why="", about="question", text="How much?"))
    waiting.step(ApprovalStep(call_id="call-1", tool="shell", why="it pushes", command="git push"))
    with api.core.database.write() as db:
        order = db.get_one(Order, failed.order_id)
        finish(db, api.core, order, OrderStatus.FAILED, Ending("stopped", RunEnd(), "done"))
    played.take(api.submit("order 3", project=project)).ends(**ENDS["reply"])
    names |= {"failed": failed.order_id, "waiting": waiting.order_id, "asks": asks.order_id}
    names["failed_session"] = api.client.call(orders.SHOW, order_id=failed.order_id)["session"]
    names["kept_note"] = api.client.call(memory.ADD, MemoryRequest(text="Run make test"))["id"]
    names["plans"] = api.submit("plans", project=project, plan_first=True)["id"]
    points = (PlanPoint(text="a"), PlanPoint(text="b"))
    played.take({"id": names["plans"]}).presents(AgentPlan(title="Tidy", points=points))
    names["queued"] = api.submit("waits", project=project, labels={"nowhere": "yes"})["id"]


def _tasks(api: Api, admin: Caller, names: dict[str, str]) -> None:
    """Tasks in each state; those of users are `given_task` and `done_task`."""
    with api.core.database.write() as db:
        agent = db.scalars(select(Agent.id).where(Agent.name == names["agents"])).one()
    for name, status in {"open": "open", "given": "open", "done": "done"}.items():
        assignee = agent if name == "open" else None
        names[f"{name}_task"] = add_task(api.core, admin, assignee, title=name, description=name)
        with api.core.database.write() as db:
            db.get_one(Task, names[f"{name}_task"]).status = status
    names["failed_task"] = add_task(api.core, admin, add_agent(api.core, admin, "failing"), title="f", description="f")
    order_id = order_of(api.core, names["failed_task"]).id
    begin(api.core, order_id)
    end_of_turn(api.core, order_id, "failed")


def _spare(api: Api, admin: Caller, names: dict[str, str], http: httpx.Client) -> None:
    """Things that nothing else needs, so that they can be removed, and those in a state of their own."""
    core = api.core
    add_agent(core, admin, "spare_agent")
    make_project(core, admin, "spare-project")
    providers.add(core, admin, ProviderRequest(name="spare-provider", model="openai/scripted"))
    api.client.call(projects.EDIT, ProjectEdit(provider=names["providers"]), slug=names["projects"])
    organizations.edit(core, admin, admin.organization, OrganizationEdit(project=names["projects"]))
    add_organization(core, admin, "paused")
    organizations.pause(core, admin, "paused")
    code_hosts.map_user(core, admin, names["code-hosts"], "octocat", HostUserRequest(user=USER))
    row = {"id": "one", "project": names["projects"], "provider": names["providers"], "prompt": "one"}
    names["open_batch"] = _made(http, "batches", name="open", rows=[row], more=True)["id"]
    names["reviewed"] = reviewed(core, admin, fields={"project": names["projects"]})
    names["reviewed_session"] = api.client.call(orders.SHOW, order_id=names["reviewed"])["session"]
    names["comment"] = _made(http, f"orders/{names['reviewed']}/review", text="why?", path="calc.py")["id"]
    _made(http, f"orders/{names['waiting']}/say", text="hurry")
    names["message"] = api.client.call(orders.SHOW, order_id=names["waiting"])["unheard"][0]["id"]
    subscription = SubscribedBrowser("https://push.example/1").request
    names["browser"] = _made(http, "attention/browsers", name="b", **subscription)["id"]
    race = {"prompt": "race", "project": names["projects"], "count": 2, "pick": "person"}
    made = _made(http, "races", **race)
    names["open_race"], names["raced"] = made["race"]["id"], made["orders"][0]["id"]
    with_patch(core, end(core, names["raced"], steps=said("race")))


def _made(http: httpx.Client, resource: str, **request: Any) -> dict[str, Any]:
    answer = http.post(f"/api/v1/{resource}", json=request)
    assert answer.is_success, answer.text
    return dict(answer.json())


def difference(prepared: Prepared, operation: Operation, shown: PageForm | None = None) -> str:
    """What the form of an operation, by default the one that its address opens, and its command do differently."""
    case, name, browser = case_of(operation), operation.name, prepared.browser
    prepared.restore()
    before, names, typed = prepared.before, prepared.named(case.names), prepared.named(case.typed)
    if shown is None:
        form = {**opened(browser, operation, names), **typed, **names}
    else:
        form = {**shown.values, **{each: typed[each] for each in shown.visible & typed.keys()}}
    told = browser.post(f"/actions/{name}/command", data=form, headers=PART).text
    line = command_in(told)
    answer = browser.post(f"/actions/{name}", data=form, headers=PART)
    by_page = prepared.rows()
    if answer.status_code not in {200, 201, 303}:
        return answer.text
    prepared.restore()
    # As a shell reads the line, with what is piped to it.
    words = shlex.split(line)
    at = words.index("fleet")
    command = prepared.fleet(*words[at + 1 :], stdin=words[2] if at else f"{case.stdin}\n")
    if command.returncode:
        return f"{line}: {command.stderr}"
    by_command = prepared.rows()
    differing = {table: set(rows) ^ set(by_command[table]) for table, rows in by_page.items()}
    if changed := {table: sorted(rows) for table, rows in differing.items() if rows}:
        return f"{line}: {changed}"
    visible = shown is None and not case.invisible
    return f"{line}: before and after are alike" if visible and by_page == before else ""


def command_in(form: str) -> str:
    """The command that a form offers."""
    (line,) = re.findall(r"<code>((?:fleet|printf) .*?)</code>", form, re.DOTALL)
    return html.unescape(line)


def opened(browser: httpx.Client, operation: Operation, names: Mapping[str, str]) -> dict[str, str]:
    """What a browser has in the form before anything is typed."""
    page = browser.get(f"/actions/{operation.name}", params=dict(names), headers=PAGE)
    assert page.status_code == 200, page.text
    return form_values(page.text, operation.name)


PAGE = {"Accept": "text/html"}
PART = {"Accept": "text/x-part"}
