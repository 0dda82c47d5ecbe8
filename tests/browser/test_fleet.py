"""The page of the fleet: what is done there with drones, and with the orders that wait for them."""

from __future__ import annotations

import shlex

import pytest
from playwright.sync_api import expect

from control_plane.contract.declarations import drones, orders
from control_plane.db.orders import Order
from tests.browser.conftest import Person
from tests.support import wait_until
from tests.support.fleet import Api

pytestmark = [pytest.mark.browser, pytest.mark.long]


@pytest.fixture
def work(api: Api) -> Api:
    """Two drones, of which mila works on one order and has two in its queue."""
    api.add_work()
    mila = api.add_drone("mila", labels={"gpu": "yes"})
    api.add_drone("oka")
    api.wait_for_hub()
    mila.take(api.submit("Now"))
    return api


def test_a_drone_is_renamed_and_drained_with_their_commands_at_hand(person: Person, work: Api) -> None:
    page = person.open("/fleet")
    person.context.grant_permissions(["clipboard-read", "clipboard-write"])
    card = page.locator("article", has=page.get_by_role("link", name="oka", exact=True))
    card.get_by_label("More actions for oka").click()
    card.get_by_role("button", name="Copy “Drain” as command").click()
    person.sees("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == "fleet drone drain oka"
    card.get_by_role("link", name="Rename…").click()
    page.get_by_role("dialog").locator("#f-new_name").fill("mona")
    page.get_by_role("dialog").locator("button.primary").click()
    renamed = page.locator("article", has=page.get_by_role("link", name="mona", exact=True))
    renamed.get_by_role("button", name="Drain").click()
    renamed.get_by_role("button", name="Resume").wait_for()
    assert work.client.call(drones.SHOW, name="mona")["draining"]


def test_a_waiting_order_starts_first_and_is_moved(person: Person, work: Api) -> None:
    first, second = (work.submit(text, labels={"gpu": "tpu"}) for text in ("Sooner", "Later"))
    page = person.open("/fleet")
    row = page.locator(f"#waits-{second['id']}")
    row.get_by_role("button", name="Start first").click()
    wait_until(lambda: work.client.call(orders.SHOW, order_id=second["id"])["priority"] == 1)
    expect(page.locator(".queue > .row").first).to_contain_text("Later")
    row = page.locator(f"#waits-{first['id']}")
    row.get_by_label("More actions for Sooner").click()
    copied = row.get_by_role("button", name="Copy “Start first” as command").get_attribute("value")
    assert shlex.split(str(copied)) == ["fleet", "prioritize", first["id"], "--priority", "2"]
    row.get_by_role("link", name="Move to another drone…").click()
    dialog = page.get_by_role("dialog")
    dialog.locator("#f-drone").fill("mila")
    dialog.locator("button.primary").click()
    dialog.wait_for(state="hidden")
    mila = work.client.call(drones.SHOW, name="mila")["id"]
    with work.core.database.read() as db:
        assert db.get_one(Order, first["id"]).wanted_drone_id == mila


@pytest.mark.parametrize("path", ["/fleet", "/settings/access"])
def test_a_machine_is_added_with_a_command_and_appears_in_the_dialog(person: Person, work: Api, path: str) -> None:
    page = person.open(path)
    page.get_by_role("link", name="Add a machine").click()
    dialog = page.get_by_role("dialog")
    dialog.locator("button.primary").click()
    command = dialog.get_by_text("drone register").first
    command.wait_for()
    token = next(word for word in command.inner_text().replace("=", " ").split() if word.startswith("fj_"))
    work.add_drone("iris", join_token=token)
    dialog.get_by_role("link", name="iris").wait_for()
