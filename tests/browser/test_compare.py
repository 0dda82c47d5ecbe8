"""Orders side by side on a wide and on a narrow screen."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from control_plane.db.drones import Drone
from shared.events import ABILITIES
from tests.browser.conftest import Person, first_of
from tests.support.axe import need_axe, scrolls_sideways, violations
from tests.support.patches import SMALL, deliver


@pytest.mark.parametrize("scheme", first_of("light", "dark"))
def test_columns_stand_side_by_side_and_stacked_on_a_phone(person: Person, scheme: str) -> None:
    need_axe()
    api, page = person.api, person.page
    api.add_work()
    drone = api.add_drone()
    prompts = (
        "Fix the failing test",
        "Fix the failing tests",
        "Write the guide, with a first line that is longer than what fits on a phone",
    )
    orders = [
        deliver(api, drone.take(api.submit(prompt)), SMALL.replace(b"2)", b"%d)" % number))
        for number, prompt in enumerate(prompts)
    ]
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    person.open("/compare?" + "&".join(f"order={each}" for each in (*orders, "000000000000")))
    for width, in_a_row in ((1280, True), (320, False)):
        page.set_viewport_size({"width": width, "height": 800})
        boxes = [page.locator(f"#column-{number}").bounding_box() for number in (1, 2, 3, 4)]
        assert (len({box["y"] for box in boxes if box}) == 1) == in_a_row
        assert (violations(page), scrolls_sideways(page)) == ([], False)
    page.set_viewport_size({"width": 1280, "height": 800})
    page.locator(".tabs").get_by_text("src/refund.py").click()
    page.wait_for_url("**#compared-file")
    expect(page.locator("code.del")).to_have_count(3)
    page.get_by_label("Remove from the comparison: Write the guide").click()
    expect(page.locator("article")).to_have_count(3)
    page.get_by_label("Add an order").select_option(orders[2])
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator("article")).to_have_count(4)


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
    for width in (1280, 320):
        page.set_viewport_size({"width": width, "height": 800})
        assert (violations(page), scrolls_sideways(page)) == ([], False)
    page.set_viewport_size({"width": 1280, "height": 800})
    expect(page.get_by_role("button", name="Take this one")).to_have_count(2)
    page.locator("#column-2").get_by_role("button", name="Take this one").click()
    expect(page.locator("#column-2")).to_contain_text("Taken")
    expect(page.get_by_role("button", name="Take this one")).to_have_count(0)
    with api.http() as http:
        taken = http.get(f"/api/v1/races/{race['race']['id']}").json()["race"]
    assert (taken["winner"], taken["status"]) == (race["orders"][1]["id"], "won")
