"""The inbox over HTTP: each kind of item is handled in its row, with the same rows in the database as its command."""

from __future__ import annotations

import re
import shlex
import sqlite3
from contextlib import closing
from html.parser import HTMLParser
from itertools import takewhile
from pathlib import Path
from typing import get_args

import httpx
import pytest
from sqlalchemy import update

from control_plane.contract.declarations import inbox, orders
from control_plane.contract.declarations.inbox import InboxKind
from control_plane.contract.declarations.operation import every_operation
from control_plane.db.teams import Task
from control_plane.web.forms.commands import command_for
from tests.integration.web.conftest import Fleet
from tests.support.fleet import Api
from tests.support.page_actions import Prepared
from tests.support.waiting import Waiting, everything_waits

Pressed = tuple[str, dict[str, list[str]]]
"""The address that a button sends to, and what its form sends with it."""


class Row(HTMLParser):
    """The buttons of one item's row, by what is on them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.buttons: dict[str, Pressed] = {}
        self._form: Pressed = ("", {})
        self._sends: list[tuple[str, Pressed]] = []
        self._text: list[str] | None = None
        self._area = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        action, values = self._form
        if tag == "form":
            self._form = given["action"], {}
        elif tag == "input" and "name" in given and (given.get("type") != "checkbox" or "checked" in given):
            values.setdefault(given["name"], []).append(given.get("value", ""))
        elif tag == "textarea":
            self._area, self._text = given["name"], []
        elif tag == "button":
            own = {given["name"]: [given["value"]]} if "name" in given else {}
            self._sends.append(("", (given.get("formaction", action), own)))
            self._text = []

    def handle_data(self, data: str) -> None:
        if self._text is not None:
            self._text.append(data)

    def handle_endtag(self, tag: str) -> None:
        text = "".join(self._text or ()).strip()
        if tag == "textarea":
            self._form[1].setdefault(self._area, []).append(text)
            self._text = None
        elif tag == "button":
            self._sends[-1] = text, self._sends[-1][1]
            self._text = None
        elif tag == "form":
            for label, (action, own) in self._sends:
                self.buttons[label] = action, {**self._form[1], **own}
            self._sends, self._form = [], ("", {})


ACTS: list[tuple[InboxKind, str, dict[str, str], str]] = [
    ("approval", "Approve", {"comment": "it's fine"}, 'approve {order} --comment "it\'s fine"'),
    ("approval", "Deny", {"comment": "-no"}, "deny {order} --comment=-no"),
    ("approval", "Always allow in this session", {}, "approve {order} --always"),
    ("question", "Half up", {}, "answer {order} 2"),
    ("question", "Answer", {"text": "Ask the accountants"}, "answer {order} 'Ask the accountants'"),
    ("plan", "Approve ticked points", {}, "plan approve {order}"),
    ("limit", "Raise and continue", {"raise_usd": "2.5"}, "approve {order} --raise 2.5"),
    ("limit", "Summarize and stop", {}, "deny {order} --finish"),
    ("budget", "Continue", {}, "approve {order}"),
    ("secret", "Approve", {}, "approve {order}"),
    ("branch", "Deny", {}, "deny {order}"),
    ("reply", "Send", {"prompt": "Both\nof them"}, "submit 'Both\nof them' --session {session} --project demo"),
    ("checks", "Resume", {"say": "Look at the paths"}, "resume {order} --say 'Look at the paths'"),
    ("spent", "Resume", {"cost_limit": "3"}, "resume {order} --cost-limit 3"),
    ("task", "Comment", {"text": "@tester fix them"}, "comment {task} '@tester fix them'"),
    ("task", "Mark as done", {}, "task done {task}"),
    ("race", "Take B", {}, "race take {race} B"),
    ("drone", "Drain", {}, "drone drain {drone}"),
    ("memory", "Keep", {}, "memory accept {memory}"),
    ("memory", "Refuse", {}, "memory refuse {memory}"),
    ("reply", "Done", {}, "dismiss reply:{order}"),
    ("checks", "Done", {}, "dismiss checks:{order}"),
    ("spent", "Done", {}, "dismiss spent:{order}"),
    ("race", "Done", {}, "dismiss race:{race}"),
]
"""Kind, button, what is typed, and the command. A test of a provider or a project is compared by its own test: its
command waits for the drone."""
TRIED = {"provider": "/actions/test_provider", "project": "/actions/test_project"}


PAGE, JSON = {"Accept": "text/html"}, {"Accept": "application/json"}


@pytest.fixture
def waiting(api: Api) -> Waiting:
    return everything_waits(api)


def rows(browser: httpx.Client) -> dict[str, Row]:
    """The rows of the inbox by kind."""
    text = browser.get("/", headers=PAGE).text
    found = re.findall(r'<li class="waits[^>]* id="ask-(\w+)-(.*?)(?=<li class="waits|</section>)', text, re.DOTALL)
    # The key that presses a button is no part of its name.
    return {kind: Row(re.sub("<kbd>.*?</kbd>", "", row)) for kind, row in found}


def test_each_kind_is_handled_in_its_row_as_by_its_command(
    api: Api, waiting: Waiting, fleet: Fleet, tmp_path: Path
) -> None:
    """What was changed is put back before the next act."""
    counts = api.client.call(inbox.COUNT)["kinds"]
    assert counts == dict.fromkeys(get_args(InboxKind), 1)
    sessions = {each["id"]: each["session"] for each in api.client.call(orders.LIST)}
    wrong = {}
    with api.browser() as browser:
        prepared = Prepared(api, {}, tmp_path / "snapshot.db", browser, fleet)
        with closing(sqlite3.connect(prepared.database)) as source, closing(sqlite3.connect(prepared.snapshot)) as copy:
            source.backup(copy)
        shown, before = rows(browser), prepared.before
        for kind, button, typed, command in ACTS:
            order = waiting.runs[kind].order_id if kind in waiting.runs else ""
            ids = {"order": order, "session": sessions.get(order, ""), **waiting.ids}
            action, sent = shown[kind].buttons[button]
            assert typed.keys() <= sent.keys(), (kind, button)
            prepared.restore()
            answer = browser.post(action, data={**sent, **typed}, headers=JSON)
            by_page = prepared.rows()
            prepared.restore()
            done = fleet(*shlex.split(command.format(**ids)))
            by_command = prepared.rows()
            differing = {name: found for name, each in by_page.items() if (found := set(each) ^ set(by_command[name]))}
            if (answer.status_code, done.returncode, differing) != (303, 0, {}) or by_page == before:
                wrong[kind, button] = answer.status_code, answer.text, done.returncode, done.stderr, differing
    assert wrong == {}
    assert {kind for kind, *_ in ACTS} | TRIED.keys() == set(get_args(InboxKind))
    assert {kind: shown[kind].buttons["Test"][0] for kind in TRIED} == TRIED


def test_a_failed_task_is_retried_in_its_row_and_one_that_is_open_is_not(api: Api, waiting: Waiting) -> None:
    with api.browser() as browser:
        assert "Retry" not in rows(browser)["task"].buttons
        with api.core.database.write() as db:
            db.execute(update(Task).values(status="failed"))
        action, sent = rows(browser)["task"].buttons["Retry"]
        # No agent has worked on it.
        assert browser.post(action, data=sent, headers=JSON).status_code == 412
        assert (action, sent) == ("/actions/retry_task", {"task_id": [waiting.task]})


def uncopied(page: str) -> set[str]:
    """The operations that forms of the page call, and whose command the page does not offer."""
    called = set(re.findall(r'action="/actions/(\w+)"', page))
    commands = {name: command_for(name, dict.fromkeys(_names(name), ""), {}) or "" for name in called}
    words = {name: " ".join(takewhile(str.isidentifier, command.split())) for name, command in commands.items()}
    # The same command has a shorter name, too.
    words = {name: each.replace("fleet task comment", "fleet comment") for name, each in words.items()}
    return {name for name, each in words.items() if each and f'value="{each} ' not in page}


def _names(operation: str) -> tuple[str, ...]:
    return tuple(next(each for each in every_operation() if each.name == operation).names)


def test_each_act_of_a_page_can_be_copied_as_its_command(api: Api, waiting: Waiting) -> None:
    running = waiting.runs["question"].drone.take(api.submit("It runs"))
    paths = ["/", "/fleet", "/fleet/mila", f"/orders/{running.order_id}"]
    paths += [f"/orders/{waiting.runs[kind].order_id}" for kind in ("approval", "question", "checks", "reply")]
    with api.browser() as browser:
        found = {path: uncopied(browser.get(path, headers=PAGE).text) for path in paths}
    assert {path: names for path, names in found.items() if names} == {}
