"""The inbox over HTTP: each kind of item is handled in its row, by a form that says the same as the command."""

from __future__ import annotations

import html
import re
import shlex
from itertools import takewhile
from pathlib import Path
from typing import get_args

import httpx
import pytest
from sqlalchemy import update

from control_plane.contract.declarations import inbox, orders, tasks
from control_plane.contract.declarations.inbox import InboxKind
from control_plane.contract.declarations.operation import every_operation
from control_plane.contract.declarations.task_documents import TaskRequest
from control_plane.db.teams import Task
from control_plane.web.forms.commands import command_for
from tests.support.fleet import Api
from tests.support.page_actions import (
    PAGE,
    PART,
    PageForm,
    PageForms,
    command_in,
    copy_database,
    database_of,
)
from tests.support.waiting import COMMAND, FAILED, Waiting, everything_waits

JSON = {"Accept": "application/json"}
ACTS: list[tuple[InboxKind, str, dict[str, str], str]] = [
    ("approval", "approve", {"comment": "it's fine"}, 'approve {order} --call {call} --comment "it\'s fine"'),
    ("approval", "deny", {"comment": "-no"}, "deny {order} --call {call} --comment -no"),
    ("approval", "approve", {"always": "true"}, "approve {order} --call {call} --always"),
    ("question", "answer_order", {"text": "Half up"}, "answer {order} 'Half up' --call {call}"),
    ("limit", "approve", {"raise_usd": "2.5"}, "approve {order} --call {call} --raise 2.5"),
    ("limit", "deny", {"finish": "true"}, "deny {order} --call {call} --finish"),
    ("budget", "approve", {}, "approve {order} --call {call}"),
    ("secret", "approve", {}, "approve {order} --call {call}"),
    ("branch", "deny", {}, "deny {order} --call {call}"),
    ("reply", "submit", {"prompt": "Both\nof them"}, "submit 'Both\nof them' --session {session} --project demo"),
    ("checks", "resume", {"say": "Look at the paths"}, "resume {order} --say 'Look at the paths'"),
    ("spent", "resume", {"cost_limit": "3"}, "resume {order} --cost-limit 3"),
    ("task", "comment_task", {"text": "@tester fix them"}, "task comment {task} '@tester fix them'"),
    ("task", "done_task", {}, "task done {task}"),
    ("race", "take_order", {}, "race take {race} {taken}"),
    ("drone", "drain_drone", {}, "drone drain {drone}"),
    ("memory", "accept_memory", {}, "memory accept {memory}"),
    ("memory", "refuse_memory", {}, "memory refuse {memory}"),
    ("reply", "dismiss_item", {}, "dismiss reply:{order}"),
    ("race", "dismiss_item", {}, "dismiss race:{race}"),
]
"""Kind, operation, what is typed or on the button, and the command."""
TESTED = {"provider": "test_provider", "project": "test_project"}
"""These wait for a drone."""


@pytest.fixture
def waiting(api: Api) -> Waiting:
    return everything_waits(api)


def rows(browser: httpx.Client) -> dict[str, str]:
    """The rows of the inbox by kind."""
    text = browser.get("/", headers=PAGE).text
    return dict(re.findall(r'<li class="waits[^>]* id="ask-(\w+)-(.*?)(?=<li class="waits|</section>)', text, re.S))


def form_of(row: str, operation: str) -> PageForm | None:
    return next((form for form in PageForms(row).forms if form.operation == operation), None)


def test_each_kind_is_handled_in_its_row_by_a_form_that_says_the_same_as_its_command(
    api: Api, waiting: Waiting, tmp_path: Path
) -> None:
    """What was changed is put back before the next act."""
    assert api.client.call(inbox.COUNT)["kinds"] == dict.fromkeys(get_args(InboxKind), 1)
    sessions = {each["id"]: each["session"] for each in api.client.call(orders.LIST)}
    wrong = {}
    with api.browser() as browser:
        database, kept, shown = database_of(api), tmp_path / "kept.db", rows(browser)
        copy_database(database, kept)
        for kind, operation, typed, command in ACTS:
            order = waiting.runs[kind].order_id if kind in waiting.runs else ""
            form = form_of(shown[kind], operation)
            assert form is not None, (kind, operation)
            assert [name for name in typed if f'name="{name}"' not in shown[kind]] == []
            sent = {**form.values, **typed}
            ids = {"order": order, "session": sessions.get(order, ""), **waiting.ids}
            ids |= {"call": sent.get("call", ""), "taken": sent.get("order", "")}
            told = browser.post(f"/actions/{operation}/command", data=sent, headers=PART).text
            status = browser.post(f"/actions/{operation}", data=sent, headers=JSON).status_code
            copy_database(kept, database)
            found = shlex.split(command_in(told))
            if (found, status) != (["fleet", *shlex.split(command.format(**ids))], 303):
                wrong[kind, operation] = found, status
    assert wrong == {}
    assert {kind for kind, *_ in ACTS} | TESTED.keys() | {"plan"} == set(get_args(InboxKind))
    assert all(form_of(shown[kind], operation) for kind, operation in TESTED.items())
    assert f'action="/orders/{waiting.runs["plan"].order_id}/plan"' in shown["plan"]


def test_a_failed_task_is_retried_in_its_row_and_one_that_is_open_is_not(api: Api) -> None:
    api.add_work()
    api.client.call(tasks.ADD, TaskRequest(title="Windows paths", assignee="user"))
    with api.browser() as browser:
        assert form_of(rows(browser)["task"], "retry_task") is None
        with api.core.database.write() as db:
            db.execute(update(Task).values(status="failed"))
        form = form_of(rows(browser)["task"], "retry_task")
        assert form is not None
        # No agent has worked on it.
        assert browser.post("/actions/retry_task", data=form.values, headers=JSON).status_code == 412


def uncopied(page: str) -> set[str]:
    """The operations that forms of the page call, and whose command the page does not offer."""
    called = {each.name: each for each in every_operation() if f'action="/actions/{each.name}"' in page}
    commands = {name: command_for(name, dict.fromkeys(each.names, ""), {}) or "" for name, each in called.items()}
    words = {name: " ".join(takewhile(str.isidentifier, command.split())) for name, command in commands.items()}
    # The same command has a shorter name, too.
    words = {name: each.replace("fleet task comment", "fleet comment") for name, each in words.items()}
    return {name for name, each in words.items() if each and f'value="{each} ' not in page}


def test_each_act_of_a_page_can_be_copied_as_its_command(api: Api, waiting: Waiting) -> None:
    running = waiting.runs["question"].drone.take(api.submit("It runs"))
    paths = ["/", "/fleet", "/fleet/mila", f"/orders/{running.order_id}"]
    paths += [f"/orders/{waiting.runs[kind].order_id}" for kind in ("approval", "question", "checks", "reply")]
    with api.browser() as browser:
        pages = {path: browser.get(path, headers=PAGE).text for path in paths}
    assert {path: names for path, page in pages.items() if (names := uncopied(page))} == {}
    # What is decided about is shown whole.
    assert html.escape(COMMAND) in pages["/"]
    assert f"<title>({len(get_args(InboxKind))}) Inbox" in pages["/"]


def test_the_inbox_shows_what_ended_since_the_last_visit(api: Api) -> None:
    api.add_work()
    run, now = api.add_drone().take(api.submit()), int(api.core.clock.now().timestamp())
    run.ends(FAILED, exit_status="verification_failed")
    for _ in range(41):
        api.submit(drone="mila")
    cookies = {"day away": f"0.{now - 86_400}", "just here": f"{now + 60}.{now}", "nonsense": "x.y", "long": "9" * 80}
    pages = {}
    for name, cookie in cookies.items():
        with api.browser() as browser:
            browser.cookies.set("fleet-visit", cookie)
            pages[name] = browser.get("/", headers=PAGE).text
            of_drone = browser.get("/fleet/mila", headers=PAGE).text
    assert f'href="/orders/{run.order_id}"' in of_drone
    # The order waits, too.
    assert {name: each.count(f'/orders/{run.order_id}" data-title') for name, each in pages.items()} == {
        **dict.fromkeys(("day away", "nonsense", "long"), 2),
        "just here": 1,
    }
    assert ["While you were away" in each for each in pages.values()] == [True, False, False, False]
