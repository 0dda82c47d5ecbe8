"""The list of orders and the page of a new one, over HTTP."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from control_plane.declarations import orders
from tests.support.fleet import Api

HTML = {"Accept": "text/html"}
PART = {"Accept": "text/x-part"}


@pytest.fixture
def work(api: Api) -> Api:
    api.add_work()
    return api


def test_the_address_narrows_the_list_and_a_chip_removes_one_term(work: Api) -> None:
    work.submit("Fix the parser")
    work.submit("Write the guide")
    with work.browser() as browser:
        page = browser.get("/orders?text=parser&project=demo", headers=HTML).text
    assert ("Fix the parser" in page, "Write the guide" in page) == (True, False)
    chips = [urlsplit(each.replace("&amp;", "&")).query for each in re.findall(r'class="chip" href="([^"]+)"', page)]
    assert {tuple(parse_qs(each)) for each in chips} == {("project",), ("text",), ()}


def test_a_wrong_filter_is_named_and_stays_in_the_form(work: Api) -> None:
    work.submit("Fix the parser")
    with work.browser() as browser:
        for query in ("status=dreaming", "project=unknown", "since=yesterday", "before=zzz"):
            answer = browser.get(f"/orders?{query}", headers=HTML)
            assert (answer.status_code, 'role="alert"' in answer.text, "Fix the parser" in answer.text) == (
                200,
                True,
                False,
            )


def test_more_is_a_link_to_a_longer_list_and_then_to_the_rest(work: Api) -> None:
    for number in range(51):
        work.submit(f"Order {number}")
    with work.browser() as browser:
        first = browser.get("/orders?project=demo", headers=PART).text
        longer = browser.get("/orders?project=demo&limit=100", headers=PART).text
    assert (rows(first), rows(longer)) == (50, 51)
    assert 'href="/orders?project=demo&amp;limit=100"' in first
    assert "more-rows" not in longer


def rows(page: str) -> int:
    return len(re.findall(r'id="order-\w+"', page))


def test_selected_orders_are_acted_on_and_each_refusal_is_named(work: Api) -> None:
    first, second, third = (work.submit(f"Order {number}")["id"] for number in range(3))
    with work.browser() as browser:
        done = browser.post("/actions/cancel_order/each?next=/orders", data={"order": [first, second]})
        partly = browser.post("/actions/retry/each", data={"order": [first, third]})
    assert (done.status_code, done.headers["location"]) == (303, "/orders")
    assert [each["status"] for each in work.client.call(orders.LIST)] == ["queued", "canceled", "queued"]
    assert (partly.status_code, partly.json()["code"]) == (409, "E-ACTION-PARTLY")
    assert third in partly.json()["why"]


def test_a_form_that_is_sent_twice_makes_one_order_and_a_changed_one_gets_a_new_key(work: Api) -> None:
    with work.browser() as browser:
        key = key_in(browser.get("/orders/new", headers=HTML))
        form = {"prompt": "Fix the parser", "project": "demo", "idempotency_key": key}
        places = {browser.post("/actions/submit", data=form).headers["location"] for _ in range(2)}
        changed = browser.post("/actions/submit", data={**form, "prompt": "Another"}, headers=HTML)
    assert len(places) == 1
    assert len(work.client.call(orders.LIST)) == 1
    assert changed.status_code == 409
    assert key_in(changed) != key


def key_in(page: httpx.Response) -> str:
    found = re.search(r'name="idempotency_key" value="(\w+)"', page.text)
    assert found
    return found[1]


def test_a_refused_order_comes_back_as_it_was_with_the_reason_beside_the_field(work: Api) -> None:
    form = {"prompt": "Line one\nline two", "project": "demo", "mode": "plan", "max_iterations": "many"}
    with work.browser() as browser:
        page = browser.post("/actions/submit", data=form, headers=HTML)
    assert page.status_code == 422
    assert "Line one\nline two" in page.text
    assert '<option value="plan" selected>' in page.text
    assert 'value="many"' in page.text
    assert 'id="f-max_iterations-error">Maximum steps must be a whole number' in page.text
    assert '<details id="all-options" open>' in page.text
    assert work.client.call(orders.LIST) == []
