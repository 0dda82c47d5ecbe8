"""Fleet, models, automation, cost and settings in a browser: dialogs, live parts, narrow windows, hostile names."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect
from sqlalchemy import update

from control_plane.db.drones import Drone
from control_plane.db.projects import Project
from control_plane.declarations import drones, projects, providers, schedules
from control_plane.declarations.projects import ProjectEdit
from control_plane.declarations.schedules import ScheduleRequest
from control_plane.declarations.task_documents import TaskRequest
from control_plane.lookups.organizations import system_caller
from tests.browser.conftest import Person, first_of
from tests.support import wait_until
from tests.support.filled import fill
from tests.support.fleet import PlayedRun

PAGES = ("/fleet", "/projects", "/models", "/automation", "/cost", "/settings", "/settings/access", "/settings/audit")
HOSTILE = "x<img src=x onerror=alert(1)>\u202eevil" + "W" * 200


@pytest.fixture
def run(person: Person) -> PlayedRun:
    """A run of a submitted order, on the only drone."""
    person.api.add_work()
    return person.api.add_drone().take(person.api.submit())


def dialog(person: Person, link: str) -> None:
    """Open a form and wait for it."""
    person.page.get_by_role("link", name=link).first.click()
    person.page.locator("dialog[open] form").wait_for()


def test_a_model_is_added_in_a_dialog_and_appears_on_the_page(person: Person) -> None:
    page = person.open("/models")
    dialog(person, "Add model")
    page.get_by_label("Name").fill("main")
    page.get_by_label("Model", exact=True).fill("openai/x")
    page.get_by_role("dialog").get_by_role("button", name="Add model").click()
    expect(page.get_by_role("heading", name="main")).to_be_visible()
    expect(page.locator("#dialog")).not_to_be_visible()


def test_a_wrong_field_is_marked_in_place_and_nothing_typed_is_lost(person: Person) -> None:
    page = person.open("/models")
    dialog(person, "Add model")
    page.get_by_label("Name").fill("main")
    page.get_by_label("Model", exact=True).fill("openai/x")
    page.get_by_label("API key").fill("sk-typed")
    page.get_by_text("More options").click()
    page.get_by_label("Context window").fill("many")
    page.get_by_role("dialog").get_by_role("button", name="Add model").click()
    expect(page.get_by_text("Must be a whole number")).to_be_visible()
    expect(page.get_by_label("Context window")).to_be_focused()
    expect(page.get_by_label("API key")).to_have_value("sk-typed")
    page.get_by_label("Context window").fill("1000")
    page.get_by_role("dialog").get_by_role("button", name="Add model").click()
    expect(page.get_by_role("heading", name="main")).to_be_visible()
    assert person.api.client.call(providers.SHOW, name="main")["key"] == "sealed"


def test_what_someone_else_changed_is_shown_and_the_second_save_overwrites(person: Person) -> None:
    person.api.add_work()
    page = person.open("/projects")
    dialog(person, "Edit")
    person.api.client.call(projects.EDIT, ProjectEdit(branch="theirs"), slug="demo")
    page.get_by_label("Branch").fill("mine")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Someone else changed this to: theirs")).to_be_visible()
    expect(page.get_by_label("Branch")).to_have_value("mine")
    page.get_by_role("button", name="Save").click()
    wait_until(lambda: person.api.client.call(projects.SHOW, slug="demo")["branch"] == "mine")


def test_a_thing_that_vanished_is_said_in_the_dialog_and_the_text_stays(person: Person) -> None:
    person.api.add_work()
    page = person.open("/projects")
    dialog(person, "Edit")
    page.get_by_label("Description").fill("my text")
    person.api.client.call(projects.REMOVE, slug="demo")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("dialog").get_by_text("not found")).to_be_visible()
    expect(page.get_by_label("Description")).to_have_value("my text")


def test_a_machine_is_added_and_the_dialog_says_when_it_has_joined(person: Person) -> None:
    page = person.open("/fleet")
    dialog(person, "Add a machine")
    page.get_by_role("button", name="Create token").click()
    expect(page.locator("#joined")).to_contain_text("waiting")
    command = page.locator("dialog[open] code").first.inner_text()
    token = command.partition("DRONE_TOKEN=")[2].partition(" ")[0]
    person.api.add_drone("newcomer", join_token=token)
    expect(page.locator("#joined")).to_contain_text("newcomer")
    page.get_by_role("button", name="Done").click()
    expect(page.get_by_role("heading", name="newcomer")).to_be_visible()


def test_the_fleet_is_live_and_a_drone_is_drained_and_removed_there(person: Person, run: PlayedRun) -> None:
    page = person.open("/fleet")
    card = page.locator("article.drone")
    expect(card).to_contain_text("busy")
    expect(card).to_contain_text("Fix the failing test")
    card.get_by_role("button", name="Drain").click()
    expect(card).to_contain_text("draining")
    run.ends()
    expect(card).not_to_contain_text("Fix the failing test")
    card.locator("summary[aria-label^='More actions']").click()
    card.get_by_role("link", name="Remove…").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove drone").click()
    expect(page.get_by_text("No drones yet")).to_be_visible()
    assert person.api.client.call(drones.LIST) == []


def test_a_waiting_order_starts_first_and_moves(person: Person) -> None:
    person.api.add_work()
    person.api.add_drone("mila")
    orders = [person.api.submit(f"order {n}", labels={"no": "where"})["id"] for n in range(2)]
    page = person.open("/fleet")
    rows = page.locator("ol.queue > li")
    expect(rows.first).to_contain_text("order 0")
    page.get_by_role("button", name="Start first").click()
    expect(rows.first).to_contain_text("order 1")
    rows.first.locator("summary").click()
    rows.first.get_by_role("link", name="Move to another drone…").click()
    page.get_by_role("dialog").get_by_label("Drone").fill("mila")
    page.get_by_role("dialog").get_by_role("button", name="Move order").click()
    expect(page.locator("article.drone")).to_contain_text("1 order")
    assert orders


def test_a_schedule_is_disabled_from_its_menu(person: Person) -> None:
    person.api.add_work()
    task = TaskRequest(title="Tidy", project="demo")
    person.api.client.call(schedules.ADD, ScheduleRequest(name="nightly", cron="0 2 * * *", task=task))
    page = person.open("/automation")
    page.locator("summary[aria-label='More actions for nightly']").click()
    page.get_by_role("button", name="Disable").click()
    wait_until(lambda: not person.api.client.call(schedules.SHOW, name="nightly")["enabled"])


@pytest.mark.parametrize("width", first_of(320, 375, 1280))
def test_no_page_is_wider_than_its_window_whatever_things_are_called(person: Person, width: int) -> None:
    fill(person.api, system_caller(person.api.core), "mark")
    with person.api.core.database.write() as db:
        db.execute(update(Drone).values(name=HOSTILE[:60], version=HOSTILE[:30], host=HOSTILE))
        db.execute(update(Project).values(slug=HOSTILE[:60], description=HOSTILE))
    person.page.set_viewport_size({"width": width, "height": 800})
    wide = {path: found for path in PAGES if (found := width_of(person, path)) > width}
    assert wide == {}


def width_of(person: Person, path: str) -> int:
    page = person.open(path)
    assert page.locator("img[src=x]").count() == 0
    return int(page.evaluate("document.documentElement.scrollWidth"))
