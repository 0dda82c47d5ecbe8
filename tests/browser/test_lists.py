"""Lists of orders as users see them."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from control_plane.declarations import orders
from tests.browser.conftest import Person, first_of
from tests.support import wait_until
from tests.support.fleet import Api


@pytest.fixture
def work(api: Api) -> Api:
    api.add_work()
    api.wait_for_hub()
    return api


def test_orders_are_selected_with_the_keyboard_and_canceled(person: Person, work: Api) -> None:
    for number in range(3):
        work.submit(f"Order {number}")
    page = person.open("/orders")
    page.keyboard.press("j")
    page.keyboard.press("x")
    page.get_by_label("Select Order 0").check()
    person.sees("2 selected")
    page.on("dialog", lambda dialog: dialog.accept())
    page.locator("#selected").get_by_role("button", name="Cancel").click()
    wait_until(lambda: [each["status"] for each in work.client.call(orders.LIST)] == ["canceled", "queued", "canceled"])
    page.locator("#selected").wait_for(state="hidden")


def test_selected_orders_are_compared_side_by_side(person: Person, work: Api) -> None:
    first, second = (work.submit(f"Order {number}")["id"] for number in range(2))
    page = person.open("/orders")
    page.get_by_label("Select Order 0").check()
    assert page.get_by_role("link", name="Compare").count() == 0
    page.get_by_label("Select Order 1").check()
    page.get_by_role("link", name="Compare").click()
    page.wait_for_url(f"**/compare?order={second}&order={first}")


def test_more_orders_are_appended_and_stay_while_new_ones_come(person: Person, work: Api) -> None:
    for number in range(55):
        work.submit(f"Order {number}")
    page = person.open("/orders")
    expect(page.locator("#orders [data-row]")).to_have_count(50)
    page.get_by_label("Select Order 54").check()
    page.get_by_role("link", name="Load more").click()
    page.get_by_role("link", name="Order 0", exact=True).wait_for()
    work.submit("A new one")
    page.get_by_role("link", name="A new one").wait_for()
    expect(page.locator("#orders [data-row]")).to_have_count(56)
    expect(page.get_by_label("Select Order 54")).to_be_checked()


def test_a_filter_is_in_the_address_as_soon_as_it_is_chosen(person: Person, work: Api) -> None:
    work.submit("Fix the parser")
    page = person.open("/orders")
    page.get_by_label("Status").select_option("queued")
    page.wait_for_url("**/orders?status=queued")
    person.sees("Fix the parser")
    page.get_by_role("link", name="Status: queued").click()
    page.wait_for_url("**/orders")


@pytest.mark.parametrize("width", first_of(320, 375, 1024, 1280))
def test_no_list_is_wider_than_its_window(person: Person, work: Api, width: int) -> None:
    work.submit("x" * 3000)
    person.page.set_viewport_size({"width": width, "height": 700})
    widths = [
        person.open(path).evaluate("document.documentElement.scrollWidth")
        for path in ("/orders", "/orders/new", "/orders?text=x&project=demo")
    ]
    assert widths == [width] * 3
