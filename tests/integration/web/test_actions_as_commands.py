"""Forms of operations as a browser sends them, and that the command which a form prints changes the same rows."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import control_plane.web
from control_plane.contract.declarations import projects, providers
from control_plane.contract.declarations.operation import Operation
from control_plane.contract.declarations.projects import ProjectEdit
from control_plane.contract.declarations.providers import ProviderRequest
from control_plane.core.lookups.organizations import system_caller
from control_plane.operations.orders.next_turn import request_again
from control_plane.web.forms.fields import form_fields
from tests.integration.web.conftest import Fleet
from tests.support.fleet import Api
from tests.support.page_actions import (
    CHANGING,
    GIVEN,
    IN_BROKER,
    OUT_OF_REACH,
    PAGE,
    PART,
    TRIED,
    PageForm,
    PageForms,
    Prepared,
    Sent,
    case_of,
    difference,
    form_values,
    opened,
    prepared_fleet,
)
from tests.support.routes import NAMED, NOBODY, addresses_of_pages

STATES = {
    "orders": ("failed", "waiting", "asks", "plans", "queued", "reviewed", "raced"),
    "sessions": ("failed_session", "reviewed_session"),
    "tasks": ("failed_task", "open_task", "given_task", "done_task"),
    "batches": ("open_batch",),
    "drones": ("played", "racing"),
}
"""Further things whose pages offer other actions."""
ROOT = Path(control_plane.web.__file__).parent / "templates"
IN_TEMPLATES = {
    name
    for file in ROOT.rglob("*.html")
    for name in re.findall(r'(?:ui\.act\("|action="/actions/)(\w+)"(?!\s*~)', file.read_text())
}

NOT_SHOWN = {"add_review_comment", "create_join_token"}
"""In a form whose place a script fills in, and on the page of a fleet without drones."""


@pytest.fixture
def prepared(api: Api, fleet: Fleet, tmp_path: Path) -> Iterator[Prepared]:
    with prepared_fleet(api, fleet, tmp_path / "snapshot.db") as found:
        yield found


def test_something_is_typed_into_each_shape_of_a_field() -> None:
    fields = [(each, field) for each in TRIED for field in form_fields(each)]
    typed = {field.shape for each, field in fields if case_of(each).typed.get(field.name) is not None}
    assert {field.shape for _, field in fields} - typed <= {"hidden"}


@pytest.mark.timeout(900)
def test_a_page_and_its_command_do_the_same(prepared: Prepared) -> None:
    """Each operation with both doors by itself: what was changed is put back before the next one."""
    wrong = {each.name: found for each in TRIED if (found := difference(prepared, each))}
    assert wrong == {}


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_button_or_form_within_a_page_and_its_command_do_the_same(prepared: Prepared) -> None:
    shown = forms_within_pages(prepared)
    tried = [each for each in TRIED if each.name in shown.keys() - IN_BROKER]
    assert {each.name: found for each in tried if (found := difference(prepared, each, shown[each.name]))} == {}
    assert IN_TEMPLATES - shown.keys() - OUT_OF_REACH.keys() == NOT_SHOWN


def forms_within_pages(prepared: Prepared) -> dict[str, PageForm]:
    """The first form of each operation on all pages, with one thing of each kind in each of its states."""
    found: dict[str, PageForm] = {}
    for path in pages_of(prepared):
        page = prepared.browser.get(path, headers=PAGE, follow_redirects=True).text
        for form in PageForms(page).forms:
            found.setdefault(form.operation, form)
    return found


def pages_of(prepared: Prepared) -> Iterator[str]:
    yield f"/compare?race={prepared.names['open_race']}"
    for path in addresses_of_pages(prepared.api):
        kinds = [kind for start, kind in NAMED.items() if path.startswith(f"{start}{NOBODY}")]
        if NOBODY not in path:
            yield path
        for kind in kinds:
            yield from (path.replace(NOBODY, prepared.names[each]) for each in (kind, *STATES.get(kind, ())))


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


UNREADABLE = {
    "number": "many",
    "choice": "no-such",
    "json": "{",
    "pairs": "no value",
    "lines": "x" * 10_001,
    "text": "x" * 65_537,
    "long": "x" * 200_001,
}
"""By the shape of a field: a text that no value of it has, and for texts one that is too long."""


@pytest.mark.long
def test_every_field_that_is_missing_too_long_or_of_the_wrong_kind_is_marked_and_no_text_is_lost(
    prepared: Prepared,
) -> None:
    """All at once, and then without those that were marked: the checks behind the form find one at a time."""
    wrong = {}
    for operation in (each for each in CHANGING.values() if form_fields(each)):
        for mistakes in (missing(operation), unreadable(operation)):
            left, found = sent_wrongly(prepared, operation, mistakes)
            if left:
                wrong[operation.name] = left, found
    assert wrong == {}
    assert prepared.rows() == prepared.before


def missing(operation: Operation) -> dict[str, str]:
    fields = [each for each in form_fields(operation) if each.required and not each.may_be_empty]
    return {each.name: "" for each in fields if each.shape != "hidden" and operation.method != "PATCH"}


def unreadable(operation: Operation) -> dict[str, str]:
    """A text for each field that no value of it has."""
    fields = [each for each in form_fields(operation) if each.shape not in {"switch", "hidden", "secret"}]
    if operation.name in {"submit", "submit_race"}:
        # What their names refer to is looked up in turn, each with an error of its own.
        fields = [each for each in fields if not each.source and each.name != "models"]
    left_out = {name for name, text in GIVEN.get(operation.name, Sent()).typed.items() if text is None}
    return {each.name: UNREADABLE[each.shape] for each in fields if each.name not in left_out}


def sent_wrongly(prepared: Prepared, operation: Operation, mistakes: dict[str, str]) -> tuple[set[str], str]:
    """The mistakes that no answer marks, and the last answer's status; each answer has all texts that were typed."""
    case = case_of(operation)
    names = prepared.named(case.names)
    fields = opened(prepared.browser, operation, names)
    required = {
        each.name: case.typed.get(each.name) for each in form_fields(operation) if each.required or each.shape == "long"
    }
    right = {**fields, **prepared.named(required), **names}
    left = {name: text for name, text in mistakes.items() if name in fields}
    while left:
        form = {**right, **left}
        answer = prepared.browser.post(f"/actions/{operation.name}", data=form, headers=PAGE)
        marked = {name for name in left if f'id="f-{name.replace(".", "-")}-error"' in answer.text}
        if answer.status_code not in {404, 413, 422} or not marked:
            return set(left), f"{answer.status_code} {re.findall(r'E-[A-Z0-9-]+', answer.text)[:1]}"
        shown = form_values(answer.text, operation.name)
        if lost := {name for name, text in left.items() if shown.get(name) != text}:
            return lost, "lost"
        left = {name: text for name, text in left.items() if name not in marked}
    return set(), ""


UNREADABLE_OR_REFUSED = [
    {"params": "a=1\na=2"},
    {"name": "", "context_window": "many", "rpm": "9999999999999", "tpm": "-1", "protocol": "smoke"},
]


def test_every_wrong_or_missing_value_is_marked_and_all_texts_but_secrets_come_back(api: Api) -> None:
    with api.browser() as browser:
        for wrong in UNREADABLE_OR_REFUSED:
            typed = {"name": "main", "model": "openai/x", **wrong}
            answer = browser.post("/actions/add_provider", data={**typed, "api_key": API_KEY}, headers=PAGE)
            assert (answer.status_code, {name for name in typed if error_of(answer.text, name)}) == (422, {*wrong})
            assert answer.text.count('aria-invalid="true"') == len(wrong)
            shown = form_values(answer.text, "add_provider")
            assert {name: shown[name] for name in (*typed, "api_key")} == {**typed, "api_key": ""}
            assert API_KEY not in answer.text
        long = {"slug": "demo", "git_url": "https://git.example/x.git", "description": "long " * 5000}
        refused = browser.post("/actions/add_project", data=long, headers=PAGE)
        nested = {"name": "nightly", "cron": "0 2 * * *", "task.title": "Tidy", "task.priority": "500"}
        scheduled = browser.post("/actions/create_schedule", data=nested, headers=PAGE).text
    assert (refused.status_code, "long long" in refused.text) == (413, True)
    assert error_of(scheduled, "task.priority")
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
        again = form_values(stale.text, "edit_project")
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
    topics = json.loads(html.unescape(re.findall(r'data-topics="([^"]+)"', page)[0]))
    assert ('data-live="fleet"' in page, "fleet" in topics) == (True, True)
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
            **{"max_iterations": 7, "cost_limit": 0.25, "max_run_seconds": 60, "limits": {"max_retries": 2}},
            **{"plan_first": True, "on_limit": "ask", "keep_raw": True, "ticket": "PAYM-12", "priority": -3},
            **{"after": [before], "base": None, "reviewer": "none", "max_attempts": 5, "verify_attempts": 4},
            **{"approval_timeout": 90, "progress_timeout": 30},
        },
        {"base": "c" * 40, "reviewer": "scripted"},
    ]
    prompts = ("Fix it", "  two\n\nlines \u200b ", "<b>&amp;</b>", "ü\n" * 5000 + "the end")
    pairs = []
    with api.browser({"Accept": "text/html"}) as browser:
        for prompt, given in zip(prompts, wanted, strict=True):
            first = api.submit(prompt, **given)["id"]
            form = form_values(browser.get("/orders/new", params={"from": first}).raise_for_status().text, "submit")
            made = browser.post("/actions/submit", data=form)
            pairs.append((first, made.headers.get("location", made.text)))
        gone = {"provider": "gone", "prompt": "x", "project": "demo"}
        form = form_values(browser.get("/orders/new", params=gone).text, "submit")
        refused = browser.post("/actions/submit", data=form).status_code
        unknown = browser.get("/orders/new", params={"from": "0123456789ab"}).status_code
    caller = system_caller(api.core)
    again = [[request_again(api.core, caller, each.rpartition("/")[2]) for each in pair] for pair in pairs]
    assert [each for each in again if each[0] != each[1]] == []
    assert tuple(each[1].prompt for each in again) == prompts
    assert all(getattr(again[n][1], name) == value for n, given in enumerate(wanted) for name, value in given.items())
    assert (form["provider"], refused, unknown) == ("gone", 404, 404)
