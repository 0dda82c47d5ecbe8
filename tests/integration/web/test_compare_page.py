"""Orders side by side: their figures, their prompts, and the changes of one file."""

from __future__ import annotations

import re

from control_plane.declarations.organizations import ADD, OrganizationRequest
from tests.support.fleet import Api, PlayedRun
from tests.support.patches import SMALL, deliver

PART = {"Accept": "text/x-part"}


def two(api: Api, run: PlayedRun, patch: bytes = SMALL) -> list[str]:
    """The run's order and another one, which differ in prompt and patch."""
    other = run.drone.take(api.submit("Fix the failing tests"))
    return [deliver(api, run), deliver(api, other, patch)]


def columns(html: str) -> list[str]:
    return re.split(r'<article class="card"', html)[1:]


def test_two_orders_are_side_by_side_with_what_differs(api: Api, run: PlayedRun) -> None:
    orders = two(api, run, SMALL.replace(b"# The contract, section 4.", b"# See the contract."))
    with api.browser() as browser:
        html = browser.get(f"/compare?order={orders[0]}&order={orders[1]}", headers=PART).text
    first, second = columns(html)
    assert "<mark" not in first
    assert '<mark class="word">tests</mark>' in second
    assert first.count("3 files") == second.count("3 files") == 1
    assert html.count("The same change as in") == 1
    assert "<!doctype" not in html


def test_the_tabs_lead_to_the_changes_of_each_file(api: Api, run: PlayedRun) -> None:
    orders = two(api, run, SMALL.replace(b"2)", b"4)"))
    with api.browser() as browser:
        html = browser.get(f"/compare?orders={','.join(orders)}").text
        address = next(each for each in re.findall(r'href="(/compare[^"]+file=[^"#]+)#', html) if each)
        tabs = dict(re.findall(r'href="(/compare[^"]+)#compared-file"[^>]*><span class="mono">([^<]+)', html))
        assert set(tabs.values()) == {"docs/guide.md", "src/refund.py", "run.sh"}
        code = next(each for each, name in tabs.items() if name == "src/refund.py").replace("&amp;", "&")
        chosen = browser.get(code).text
    assert address
    assert chosen.count('<code class="del">') == 2
    assert "?comment=" not in chosen


def test_a_column_that_is_gone_or_foreign_says_so(api: Api, run: PlayedRun) -> None:
    orders = two(api, run)
    api.client.call(ADD, OrganizationRequest(name="other"))
    with api.browser() as browser:
        mixed = browser.get(f"/compare?order={orders[0]}&order=000000000000&order=%3Cb%3E")
        none = browser.get("/compare?order=000000000000")
        browser.post("/organization", data={"organization": "other"})
        foreign = browser.get(f"/compare?order={orders[0]}")
    assert (mixed.status_code, none.status_code, foreign.status_code) == (200, 404, 404)
    assert mixed.text.count("or belongs to another organization") == 2
    assert "<h2>Order &lt;b&gt; not found</h2>" in mixed.text
    assert "Fix the failing test" not in foreign.text


def test_without_orders_and_with_too_many_the_page_says_what_to_do(api: Api, run: PlayedRun) -> None:
    with api.browser() as browser:
        empty = browser.get("/compare")
        many = browser.get("/compare", params={"order": [run.order_id, *map(str, range(8))]})
    assert (empty.status_code, "Choose an order" in empty.text) == (200, True)
    assert "Only the first 6 orders are compared; 3 more are left out" in many.text


def test_a_viewer_compares_too(api: Api, run: PlayedRun) -> None:
    orders = two(api, run)
    with api.browser(token=api.token_for("viewer")) as browser:
        answer = browser.get(f"/compare?order={orders[0]}&order={orders[1]}")
    assert (answer.status_code, len(columns(answer.text))) == (200, 2)
