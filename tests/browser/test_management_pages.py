"""Fleet, models, automation, cost and settings in a browser: dialogs, live parts, narrow windows, hostile names."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from control_plane.declarations import drones, providers
from tests.browser.conftest import Person
from tests.support.fleet import PlayedRun

pytestmark = [pytest.mark.browser, pytest.mark.long]


@pytest.fixture
def run(person: Person) -> PlayedRun:
    """A run of a submitted order, on the only drone."""
    person.api.add_work()
    return person.api.add_drone().take(person.api.submit())


def dialog(person: Person, link: str) -> None:
    """Open a form and wait for it."""
    person.page.get_by_role("link", name=link).first.click()
    person.page.locator("dialog[open] form").wait_for()


def test_a_wrong_field_is_marked_in_the_dialog_nothing_typed_is_lost_and_the_model_appears(person: Person) -> None:
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
    expect(page.locator("#dialog")).not_to_be_visible()
    assert person.api.client.call(providers.SHOW, name="main")["key"] == "sealed"


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
