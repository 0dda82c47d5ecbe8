"""Fleet and models in a browser: dialogs and live parts."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from control_plane.contract.declarations import drones, providers
from control_plane.core.lookups.organizations import system_caller
from control_plane.operations import projects
from tests.browser.conftest import Person
from tests.support.fleet import PlayedRun
from tests.support.made import make_project
from tests.support.organizations import add_organization

pytestmark = [pytest.mark.browser, pytest.mark.long]


def test_a_wrong_field_is_marked_in_the_dialog_nothing_typed_is_lost_and_the_model_appears(person: Person) -> None:
    page = person.open("/models")
    page.get_by_role("link", name="Add model").first.click()
    page.locator("dialog[open] form").wait_for()
    typed = {"Name": "main", "Model": "openai/x", "API key": "sk-typed"}
    for label, text in typed.items():
        page.get_by_label(label, exact=label == "Model").fill(text)
    page.get_by_text("More options").click()
    window, add = (
        page.get_by_label("Context window"),
        page.get_by_role("dialog").get_by_role("button", name="Add model"),
    )
    window.fill("many")
    add.click()
    expect(page.get_by_text("Must be a whole number")).to_be_visible()
    expect(window).to_be_focused()
    expect(page.get_by_label("API key")).to_have_value("sk-typed")
    window.fill("1000")
    add.click()
    expect(page.get_by_role("heading", name="main")).to_be_visible()
    expect(page.locator("#dialog")).not_to_be_visible()
    assert person.api.client.call(providers.SHOW, name="main")["key"] == "sealed"


def test_an_unknown_name_is_marked_in_the_dialog_and_nothing_typed_is_lost(person: Person) -> None:
    person.open("/cost").get_by_role("link", name="Set budget").first.click()
    dialog = person.page.get_by_role("dialog")
    dialog.locator("#f-kind").select_option("project")
    dialog.locator("#f-per").select_option("day")
    name, amount = dialog.locator("#f-name"), dialog.locator("#f-usd")
    name.fill("nothing")
    amount.fill("5")
    dialog.locator("button.primary").click()
    expect(dialog.locator("#f-name-error")).to_be_visible()
    expect(name).to_be_focused()
    expect(amount).to_have_value("5")


def test_a_dialog_of_a_page_is_refused_once_another_tab_has_chosen_another_organization(person: Person) -> None:
    api, other = person.api, person.context.new_page()
    add_organization(api.core, system_caller(api.core), "payments")
    for organization in ("default", "payments"):
        make_project(api.core, system_caller(api.core, organization), "shop")
    page = person.open("/projects")
    other.goto(f"{api.url}/settings")
    other.locator("#org-menu summary").click()
    other.get_by_role("button", name="payments").click()
    other.locator("#org-menu summary", has_text="payments").wait_for()
    page.locator("summary[aria-label^='More actions']").click()
    page.get_by_role("link", name="Remove…").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove project").click()
    person.sees("This page shows the organization 'default', but 'payments' was chosen meanwhile")
    assert projects.list_(api.core, system_caller(api.core, "payments")) != []


def test_the_fleet_is_live_and_a_drone_is_drained_and_removed_there(person: Person, run: PlayedRun) -> None:
    page = person.open("/fleet")
    card = page.locator("article.drone")
    expect(card).to_contain_text("busy")
    expect(card).to_contain_text("Publish the release")
    card.get_by_role("button", name="Drain").click()
    expect(card).to_contain_text("draining")
    run.ends()
    expect(card).not_to_contain_text("Publish the release")
    card.locator("summary[aria-label^='More actions']").click()
    card.get_by_role("link", name="Remove…").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove drone").click()
    expect(page.get_by_text("No drones yet")).to_be_visible()
    assert person.api.client.call(drones.LIST) == []
