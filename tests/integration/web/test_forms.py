"""Forms of operations over HTTP, as a browser without scripts sends them, and as the pages' scripts do."""

from __future__ import annotations

import html
import re

import httpx

from control_plane.declarations import projects, providers, schedules
from control_plane.declarations.operation import NoDoor
from control_plane.declarations.projects import ProjectEdit
from control_plane.declarations.schedules import ScheduleRequest
from control_plane.declarations.task_documents import TaskRequest
from control_plane.web.forms.fields import form_fields
from tests.integration.web.test_actions_as_commands import CHANGING
from tests.support.fleet import Api
from tests.support.forms import FormValues

PAGE = {"Accept": "text/html"}
PART = {"Accept": "text/x-part"}
SECRET = "sk-very-secret-key"


def error_of(page: str, field: str) -> str:
    """What is said beside this field."""
    inside = re.search(rf'data-field="{re.escape(field)}">(.*?)</div>', page, re.DOTALL)
    assert inside, field
    found = re.search(r'<p class="error"[^>]*>(.*?)</p>', inside.group(1))
    return html.unescape(found.group(1)) if found else ""


def edit_form(browser: httpx.Client, operation: str, **names: str) -> dict[str, str]:
    answer = browser.get(f"/actions/{operation}", params=names, headers=PAGE)
    assert answer.status_code == 200, answer.text
    return FormValues(answer.text).values


def test_no_field_speaks_of_options_of_a_command() -> None:
    changing = [each for each in CHANGING.values() if not isinstance(each.command, NoDoor)]
    fields = [(operation.name, each) for operation in changing for each in form_fields(operation)]
    said = {(name, each.name): f"{each.label} {each.hint} {each.absent}" for name, each in fields}
    assert [place for place, words in said.items() if "--" in words] == []
    assert [(name, each.name) for name, each in fields if "`" in each.hint] == []
    explained = {"switch", "hidden"}, {"name", "slug", "kind"}
    silent = [(name, each.name) for name, each in fields if each.shape not in explained[0] and not each.hint]
    assert [place for place in silent if place[1] not in explained[1]] == []


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
            form = {"name": "main", "model": "openai/x", "api_key": SECRET, **typed}
            answer = browser.post("/actions/add_provider", data=form, headers=PAGE)
            page = answer.text
            assert (answer.status_code, {field: error_of(page, field) for field in said}) == (422, said)
            assert page.count('aria-invalid="true"') == len(said)
            assert [text for text in {**form, "api_key": ""}.values() if html.escape(text) not in page] == []
            assert SECRET not in page
        long = {"slug": "demo", "git_url": "https://git.example/x.git", "description": "long " * 5000}
        refused = browser.post("/actions/add_project", data=long, headers=PAGE)
        nested = {"name": "nightly", "cron": "0 2 * * *", "task.title": "Tidy", "task.priority": "500"}
        scheduled = browser.post("/actions/create_schedule", data=nested, headers=PAGE).text
    assert (refused.status_code, "long long" in refused.text) == (413, True)
    assert error_of(scheduled, "task.priority") == "Must be at most 100"
    assert api.client.call(providers.LIST) == []


def test_a_form_that_was_sent_leads_on(api: Api) -> None:
    with api.browser() as browser:
        form = {"name": "main", "model": "openai/x", "api_key": SECRET, "check": ""}
        answer = browser.post("/actions/add_provider", data=form, headers=PAGE)
        assert (answer.status_code, answer.headers["location"]) == (303, "/models")
        answer = browser.post("/actions/edit_provider", data={"name": "main", "next": "https://evil.example"})
        assert answer.headers["location"].startswith("/")
    assert api.client.call(providers.SHOW, name="main")["key"] == "sealed"


def test_only_what_was_changed_is_sent_and_an_emptied_field_removes_the_value(api: Api) -> None:
    api.add_work()
    api.client.call(projects.EDIT, ProjectEdit(branch="next", setup=["make"]), slug="demo")
    with api.browser() as browser:
        form = edit_form(browser, "edit_project", slug="demo")
        assert form["setup"] == "make"
        api.client.call(projects.EDIT, ProjectEdit(description="Changed meanwhile"), slug="demo")
        assert browser.post("/actions/edit_project", data={**form, "branch": "", "setup": ""}).status_code == 303
    shown = api.client.call(projects.SHOW, slug="demo")
    assert (shown["branch"], shown["setup"], shown["description"]) == (None, [], "Changed meanwhile")


def test_what_someone_else_changed_is_shown_beside_and_overwritten_by_the_second_save(api: Api) -> None:
    api.add_work()
    with api.browser() as browser:
        form = edit_form(browser, "edit_project", slug="demo")
        api.client.call(projects.EDIT, ProjectEdit(branch="theirs"), slug="demo")
        stale = browser.post("/actions/edit_project", data={**form, "branch": "mine"}, headers=PAGE)
        assert stale.status_code == 409
        assert error_of(stale.text, "branch") == "Someone else changed this to: theirs"
        again = FormValues(stale.text).values
        assert again["branch"] == "mine"
        assert browser.post("/actions/edit_project", data=again).status_code == 303
    assert api.client.call(projects.SHOW, slug="demo")["branch"] == "mine"


def test_a_nested_task_keeps_what_the_form_does_not_change(api: Api) -> None:
    api.add_work()
    task = TaskRequest(title="Tidy", description="All of it", project="demo", priority=3)
    api.client.call(schedules.ADD, ScheduleRequest(name="nightly", cron="0 2 * * *", task=task))
    with api.browser() as browser:
        form = edit_form(browser, "edit_schedule", name="nightly")
        assert browser.post("/actions/edit_schedule", data={**form, "task.priority": "5"}).status_code == 303
    shown = api.client.call(schedules.SHOW, name="nightly")["task"]
    assert (shown["title"], shown["description"], shown["priority"]) == ("Tidy", "All of it", 5)


def test_a_thing_that_vanished_is_a_404_with_the_text_kept(api: Api) -> None:
    api.add_work()
    with api.browser() as browser:
        form = edit_form(browser, "edit_project", slug="demo")
        api.client.call(projects.REMOVE, slug="demo")
        answer = browser.post("/actions/edit_project", data={**form, "description": "my text"}, headers=PART)
        assert (answer.status_code, "my text" in answer.text) == (404, True)
        assert "not found" in answer.text
        assert browser.get("/actions/edit_project?slug=demo", headers=PART).status_code == 404


def test_names_that_a_link_does_not_give_are_asked_for(api: Api) -> None:
    api.add_work()
    with api.browser() as browser:
        page = browser.get("/actions/set_budget", headers=PAGE).text
        assert ('<select id="f-kind"' in page, 'id="f-name"' in page) == (True, True)
        form = {"asks_names": "yes", "kind": "project", "name": "", "usd": "$5", "per": "day"}
        assert error_of(browser.post("/actions/set_budget", data=form, headers=PAGE).text, "name") == "Is required"
        assert browser.post("/actions/set_budget", data={**form, "name": "demo"}).headers["location"] == "/cost"


def test_a_secret_is_shown_once_as_a_page_and_in_the_dialog(api: Api) -> None:
    with api.browser() as browser:
        page = browser.post("/actions/create_join_token", data={"uses": "1"}, headers=PAGE).text
        assert re.search(r"DRONE_TOKEN=fj_\S+ drone register --url http", page)
        assert "<html" in page
        part = browser.post("/actions/create_api_token", data={"role": "viewer"}, headers=PART).text
        assert (re.search(r"fa_\w+", part) is not None, "<html" in part) == (True, False)
        assert "fj_" not in browser.get("/settings/access", headers=PAGE).text


def test_the_form_says_what_the_command_for_what_was_typed_is(api: Api) -> None:
    form = {"slug": "shop", "git_url": "https://git.example/x.git", "setup": "make deps", "check": "true"}
    with api.browser() as browser:
        page = browser.post("/actions/add_project/command", data=form, headers=PAGE).text
    line = html.unescape(re.findall(r"<code>(fleet .*?)</code>", page)[0])
    assert line == "fleet project add shop --git-url https://git.example/x.git --setup 'make deps'"
    assert api.client.call(projects.LIST) == []
