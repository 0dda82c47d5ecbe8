"""Forms of operations as a browser sends them, and that the command which a form prints changes the same rows."""

from __future__ import annotations

import html
import json
import re
import shlex
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import select, update

from control_plane.db.drones import Drone
from control_plane.db.metadata import METADATA
from control_plane.db.orders import Order
from control_plane.db.teams import Agent, Task
from control_plane.declarations import orders, projects, providers
from control_plane.declarations.operation import Command, NoDoor, Operation, every_operation
from control_plane.declarations.projects import ProjectEdit
from control_plane.declarations.providers import ProviderRequest
from control_plane.lookups.organizations import system_caller
from control_plane.operations.orders.next_turn import request_again
from control_plane.orders.ending import Ending, finish
from control_plane.web.forms.fields import form_fields
from shared.events import ABILITIES, ApprovalStep
from shared.plans import AgentPlan, PlanPoint
from shared.reasons import RunEnd
from shared.states import OrderStatus
from tests.integration.web.conftest import Fleet
from tests.support.filled import fill
from tests.support.fleet import Api
from tests.support.team_rows import add_task

_Attributes = list[tuple[str, str | None]]


class FormValues(HTMLParser):
    """The values of the first form of an operation on a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.values: dict[str, str] = {}
        self._inside = self._over = False
        self._name = ""
        self._text: str | None = None
        self._options: list[tuple[str, bool]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: _Attributes) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form" and "data-form" in given and not self._over:
            self._inside = True
        if not self._inside:
            return
        name = given.get("name", "")
        if tag == "input" and name and (given.get("type") != "checkbox" or "checked" in given):
            self.values[name] = given.get("value", "")
        elif tag in {"textarea", "select"}:
            self._name, self._text, self._options = name, "" if tag == "textarea" else None, []
        elif tag == "option" and self._name:
            self._options.append((given.get("value", ""), "selected" in given))

    def handle_data(self, data: str) -> None:
        if self._text is not None:
            self._text += data

    def handle_endtag(self, tag: str) -> None:
        if not self._inside:
            return
        if tag == "textarea" and self._text is not None:
            # A browser leaves out the line feed after the tag.
            self.values[self._name] = self._text.removeprefix("\n")
            self._text, self._name = None, ""
        elif tag == "select":
            chosen = [value for value, selected in self._options if selected]
            self.values[self._name] = (chosen or [value for value, _ in self._options])[0]
            self._name = ""
        elif tag == "form":
            self._inside, self._over = False, True


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
OTHERS = {"create_login_link", "test_webhook", *(f"test_{each}" for each in ("project", "provider"))}
OTHERS |= {"open_pull_request", "open_task_pull_request"}
"""Whose commands take a name at most, or wait for what there is not here."""
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


@dataclass
class Prepared:
    """A fleet with one of everything, which can be put back as it was."""

    api: Api
    names: dict[str, str]
    snapshot: Path
    browser: httpx.Client
    fleet: Fleet

    def restore(self) -> None:
        with closing(sqlite3.connect(self.snapshot)) as source, closing(sqlite3.connect(self.database)) as database:
            source.backup(database)
        # The drones beat now: otherwise one may fall silent between a form and its command, and takes no order then.
        with self.api.core.database.write() as db:
            db.execute(update(Drone).values(last_seen_at=self.api.core.clock.now()))

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

    @cached_property
    def before(self) -> dict[str, list[str]]:
        """The rows that the fleet began with."""
        return self.rows()

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
def prepared(api: Api, fleet: Fleet, tmp_path: Path) -> Iterator[Prepared]:
    """One of everything, in the states that the operations need."""
    names = _prepare(api)
    with api.browser() as browser:
        found = Prepared(api, names, tmp_path / "snapshot.db", browser, fleet)
        with closing(sqlite3.connect(found.database)) as source, closing(sqlite3.connect(found.snapshot)) as snapshot:
            source.backup(snapshot)
        yield found


def _prepare(api: Api) -> dict[str, str]:
    core, admin = api.core, system_caller(api.core)
    names = {**fill(api, admin, MARK).names, "played": "played"}
    _orders(api, names)
    with core.database.write() as db:
        agent = db.scalars(select(Agent.id).where(Agent.name == names["agents"])).one()
    names["open_task"] = add_task(core, admin, agent, title="open", description="open")
    with core.database.write() as db:
        db.get_one(Task, names["open_task"]).status = "open"
    return names


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
    names |= {"failed": failed.order_id, "waiting": waiting.order_id, "asks": asks.order_id}
    names["failed_session"] = api.client.call(orders.SHOW, order_id=failed.order_id)["session"]
    names["plans"] = api.submit("plans", project=project, plan_first=True)["id"]
    points = (PlanPoint(text="a"), PlanPoint(text="b"))
    played.take({"id": names["plans"]}).presents(AgentPlan(title="Tidy", points=points))
    names["queued"] = api.submit("waits", project=project, labels={"nowhere": "yes"})["id"]


def test_every_command_that_is_written_by_hand_and_every_shape_of_a_field_is_tried() -> None:
    by_hand = {name for name, each in CHANGING.items() if not isinstance(each.command, Command | NoDoor)}
    assert by_hand - CASES.keys() == OTHERS
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

    def filled_in(texts: Mapping[str, str]) -> dict[str, str]:
        names = prepared.names
        return {
            key: re.sub(r"\{([\w-]+)\}(?!\})", lambda found: names.get(found[1], found[0]), text)
            for key, text in texts.items()
        }

    case, browser = CASES[name], prepared.browser
    prepared.restore()
    before, names = prepared.before, filled_in(case.names)
    form = {**opened(browser, CHANGING[name], names), **filled_in(case.typed), **names}
    told = browser.post(f"/actions/{name}/command", data=form, headers=PART).text
    (line,) = re.findall(r"<code>((?:fleet|printf) .*?)</code>", told, re.DOTALL)
    answer = browser.post(f"/actions/{name}", data=form, headers=PART)
    by_page = prepared.rows()
    if answer.status_code not in {200, 201, 303}:
        return answer.text
    prepared.restore()
    # As a shell reads the line, with what is piped to it.
    words = shlex.split(html.unescape(line))
    at = words.index("fleet")
    command = prepared.fleet(*words[at + 1 :], stdin=words[2] if at else f"{case.stdin}\n")
    if command.returncode:
        return f"{line}: {command.stderr}"
    by_command = prepared.rows()
    differing = {table: set(rows) ^ set(by_command[table]) for table, rows in by_page.items()}
    if changed := {table: sorted(rows) for table, rows in differing.items() if rows}:
        return f"{line}: {changed}"
    return f"{line}: before and after are alike" if by_page == before else ""


def opened(browser: httpx.Client, operation: Operation, names: Mapping[str, str]) -> dict[str, str]:
    """What a browser has in the form before anything is typed."""
    page = browser.get(f"/actions/{operation.name}", params=dict(names), headers=PAGE)
    assert page.status_code == 200, page.text
    return FormValues(page.text).values


PAGE = {"Accept": "text/html"}
PART = {"Accept": "text/x-part"}
API_KEY = "sk-very-secret-key"


def error_of(page: str, field: str) -> str:
    """What is said beside this field."""
    inside = re.search(rf'data-field="{re.escape(field)}">(.*?)</div>', page, re.DOTALL)
    assert inside, field
    found = re.search(r'<p class="error"[^>]*>(.*?)</p>', inside.group(1))
    return html.unescape(found.group(1)) if found else ""


def edit_form(browser: httpx.Client) -> dict[str, str]:
    """The form of the project `demo`."""
    return opened(browser, CHANGING["edit_project"], {"slug": "demo"})


WRONG = [
    ({"name": "", "model": " "}, {"name": "Is required", "model": "Is required"}),
    ({"context_window": "many"}, {"context_window": "Must be a whole number"}),
    ({"context_window": "-1"}, {"context_window": "Must be at least 0"}),
    ({"rpm": "9999999999999"}, {"rpm": "Must be at most 1000000000"}),
    ({"protocol": "smoke"}, {"protocol": "Must be 'auto', 'tools' or 'text'"}),
    ({"params": "temperature"}, {"params": "'temperature' is not of the form key=value"}),
    ({"params": "a=1\na=2"}, {"params": "'a' has two values"}),
]


def test_every_wrong_or_missing_value_is_marked_and_all_texts_but_secrets_come_back(api: Api) -> None:
    with api.browser() as browser:
        for typed, said in WRONG:
            form = {"name": "main", "model": "openai/x", "api_key": API_KEY, **typed}
            answer = browser.post("/actions/add_provider", data=form, headers=PAGE)
            page = answer.text
            assert (answer.status_code, {field: error_of(page, field) for field in said}) == (422, said)
            assert page.count('aria-invalid="true"') == len(said)
            assert [text for text in {**form, "api_key": ""}.values() if html.escape(text) not in page] == []
            assert API_KEY not in page
        long = {"slug": "demo", "git_url": "https://git.example/x.git", "description": "long " * 5000}
        refused = browser.post("/actions/add_project", data=long, headers=PAGE)
        nested = {"name": "nightly", "cron": "0 2 * * *", "task.title": "Tidy", "task.priority": "500"}
        scheduled = browser.post("/actions/create_schedule", data=nested, headers=PAGE).text
    assert (refused.status_code, "long long" in refused.text) == (413, True)
    assert error_of(scheduled, "task.priority") == "Must be at most 100"
    assert api.client.call(providers.LIST) == []


def test_only_what_was_changed_is_sent_and_what_someone_else_changed_is_overwritten_by_the_second_save(
    api: Api,
) -> None:
    api.add_work()
    api.client.call(projects.EDIT, ProjectEdit(branch="next", setup=["make"]), slug="demo")
    with api.browser() as browser:
        form = edit_form(browser)
        assert form["setup"] == "make"
        api.client.call(projects.EDIT, ProjectEdit(description="Changed meanwhile"), slug="demo")
        # An emptied field removes the value.
        assert browser.post("/actions/edit_project", data={**form, "branch": "", "setup": ""}).status_code == 303
        shown = api.client.call(projects.SHOW, slug="demo")
        assert (shown["branch"], shown["setup"], shown["description"]) == (None, [], "Changed meanwhile")

        form = edit_form(browser)
        api.client.call(projects.EDIT, ProjectEdit(branch="theirs"), slug="demo")
        stale = browser.post("/actions/edit_project", data={**form, "branch": "mine"}, headers=PAGE)
        assert stale.status_code == 409
        assert error_of(stale.text, "branch") == "Someone else changed this to: theirs"
        again = FormValues(stale.text).values
        assert again["branch"] == "mine"
        assert browser.post("/actions/edit_project", data=again).status_code == 303
    assert api.client.call(projects.SHOW, slug="demo")["branch"] == "mine"


def test_a_thing_that_vanished_is_a_404_with_the_text_kept(api: Api) -> None:
    api.add_work()
    with api.browser() as browser:
        form = edit_form(browser)
        api.client.call(projects.REMOVE, slug="demo")
        answer = browser.post("/actions/edit_project", data={**form, "description": "my text"}, headers=PART)
        assert (answer.status_code, "my text" in answer.text, "not found" in answer.text) == (404, True, True)
        assert browser.get("/actions/edit_project?slug=demo", headers=PART).status_code == 404


def test_a_form_that_was_sent_leads_on_and_asks_for_names_that_a_link_does_not_give(api: Api) -> None:
    api.add_work()
    with api.browser() as browser:
        form = {"name": "main", "model": "openai/x", "api_key": API_KEY, "check": ""}
        answer = browser.post("/actions/add_provider", data=form, headers=PAGE)
        assert (answer.status_code, answer.headers["location"]) == (303, "/models")
        answer = browser.post("/actions/edit_provider", data={"name": "main", "next": "https://evil.example"})
        assert answer.headers["location"].startswith("/")
        page = browser.get("/actions/set_budget", headers=PAGE).text
        assert ('<select id="f-kind"' in page, 'id="f-name"' in page) == (True, True)
        form = {"asks_names": "yes", "kind": "project", "name": "", "usd": "$5", "per": "day"}
        assert error_of(browser.post("/actions/set_budget", data=form, headers=PAGE).text, "name") == "Is required"
        assert browser.post("/actions/set_budget", data={**form, "name": "demo"}).headers["location"] == "/cost"


def test_a_secret_is_shown_once_as_a_page_and_in_the_dialog(api: Api) -> None:
    with api.browser() as browser:
        page = browser.post("/actions/create_join_token", data={"uses": "1"}, headers=PAGE).text
        part = browser.post("/actions/create_api_token", data={"role": "viewer"}, headers=PART).text
        assert "fj_" not in browser.get("/settings/access", headers=PAGE).text
    assert re.search(r"DRONE_TOKEN=fj_\S+ drone register --url http", page)
    assert (re.search(r"fa_\w+", part) is not None, "<html" in page, "<html" in part) == (True, True, False)


def test_an_order_runs_again_with_its_whole_prompt_and_everything_that_it_says_itself(api: Api) -> None:
    """Through the form, unchanged; what was removed meanwhile is named, and refused."""
    api.add_work()
    api.client.call(providers.ADD, ProviderRequest(name="second", model="openai/second", api_base="http://127.0.0.1:9"))
    api.client.call(projects.EDIT, ProjectEdit(reviewer="second"), slug="demo")
    api.add_drone("mila")
    before = api.submit("Another one")["id"]
    wanted: list[dict[str, Any]] = [
        {},
        {"provider": "second", "mode": "test", "thinking": "high", "approve": "risky", "drone": "mila"},
        {
            "labels": {"gpu": "yes", "os": "linux"},
            "allow": ["git push *", "make [a-z]*"],
            "verify": ["make a", "make b"],
        },
        {"max_iterations": 7, "cost_limit": 0.25, "max_run_seconds": 60, "limits": {"max_retries": 2}, "priority": -3},
        {"plan_first": True, "on_limit": "ask", "keep_raw": True, "max_attempts": 5, "reviewer": "none"},
        {"after": [before], "base": None, "approval_timeout": 90, "progress_timeout": 30, "verify_attempts": 4},
        {"base": "c" * 40, "reviewer": "scripted"},
    ]
    prompts = ("Fix it", "  two\n\nlines \u200b ", "<b>&amp;</b>", "x" * 3001, "line\n" * 5000 + "the end", "ü" * 4000)
    pairs = []
    with api.browser({"Accept": "text/html"}) as browser:
        for number, given in enumerate(wanted):
            first = api.submit(prompts[number % len(prompts)], **given)["id"]
            form = FormValues(browser.get("/orders/new", params={"from": first}).raise_for_status().text).values
            made = browser.post("/actions/submit", data=form)
            pairs.append((first, made.headers.get("location", made.text)))
        gone = {"provider": "gone", "prompt": "x", "project": "demo"}
        form = FormValues(browser.get("/orders/new", params=gone).text).values
        refused = browser.post("/actions/submit", data=form).status_code
        unknown = browser.get("/orders/new", params={"from": "0123456789ab"}).status_code
    caller = system_caller(api.core)
    again = [[request_again(api.core, caller, each.rpartition("/")[2]) for each in pair] for pair in pairs]
    assert [each for each in again if each[0] != each[1]] == []
    assert [each[1].prompt for each in again] == [prompts[number % len(prompts)] for number in range(len(wanted))]
    assert all(getattr(again[n][1], name) == value for n, given in enumerate(wanted) for name, value in given.items())
    assert (form["provider"], refused, unknown) == ("gone", 404, 404)
