"""Orders side by side on a wide and on a narrow screen."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from control_plane.db.drones import Drone
from shared.events import ABILITIES
from tests.browser.conftest import Person
from tests.support.axe import need_axe, violations
from tests.support.patches import SMALL, deliver

pytestmark = [pytest.mark.browser, pytest.mark.long]


def test_a_race_is_decided_where_its_orders_stand_side_by_side(person: Person) -> None:
    need_axe()
    api, page = person.api, person.page
    api.add_work()
    drone = api.add_drone()
    with api.core.database.write() as db:
        row = db.get_one(Drone, drone.id)
        row.beat, row.concurrency = {"abilities": list(ABILITIES)}, 4
    with api.http() as http:
        request = {"prompt": "Make it faster", "project": "demo", "count": 2, "pick": "person"}
        race = http.post("/api/v1/races", json=request).raise_for_status().json()
    for order, number in zip(race["orders"], (b"8)", b"9)"), strict=True):
        deliver(api, drone.take(order), SMALL.replace(b"2)", number))
    person.open("/")
    page.get_by_role("link", name="Compare and take one").click()
    expect(page.get_by_role("heading", name="Race:")).to_contain_text("undecided")
    assert violations(page) == []
    expect(page.get_by_role("button", name="Take this one")).to_have_count(2)
    page.locator("#column-2").get_by_role("button", name="Take this one").click()
    expect(page.locator("#column-2")).to_contain_text("Taken")
    expect(page.get_by_role("button", name="Take this one")).to_have_count(0)
    with api.http() as http:
        taken = http.get(f"/api/v1/races/{race['race']['id']}").json()["race"]
    assert (taken["winner"], taken["status"]) == (race["orders"][1]["id"], "won")
