"""The pages of inbox, orders, fleet, projects, models, automation, cost and settings over HTTP, and their files."""

from __future__ import annotations

import hashlib
import html
import json
import re
from datetime import timedelta, timezone
from typing import Any
from urllib.parse import parse_qs, urlencode, urljoin, urlsplit

import httpx
import pytest
from sqlalchemy import select, update

from control_plane.contract.declarations import (
    drones,
    orders,
    sessions,
    tokens,
)
from control_plane.contract.declarations.pools import PoolRequest
from control_plane.contract.declarations.sessions import SessionEdit
from control_plane.core.lookups.organizations import system_caller
from control_plane.db.access import Pool
from control_plane.db.drones import Drone
from control_plane.db.orders import Order
from control_plane.db.runs import Run
from control_plane.operations.drones import pools
from control_plane.web.assets import FOREVER, STATIC, asset
from tests.support.filled import fill
from tests.support.fleet import BROWSER_KEY, Api
from tests.support.made import submit
from tests.support.organizations import add_organization
from tests.support.spending import reserve

PAGES = ("/fleet", "/projects", "/models", "/automation", "/cost", "/settings", "/settings/access")
HTML, PART = {"Accept": "text/html"}, {"Accept": "text/x-part"}
MARK = "mark"
OF_PAGE = re.compile(r'<input type="hidden" name="page_organization" value="([^"]*)">')


def page(browser: httpx.Client, path: str, status: int = 200) -> str:
    answer = browser.get(path, headers=HTML)
    assert answer.status_code == status, answer.text
    return answer.text


COMMANDS = {
    "/fleet": ("token add",),
    "/projects": ("project add",),
    "/models": ("provider add",),
    "/automation": ("schedule add", "trigger add", "webhook add", "hosts add"),
    "/cost": ("budget set",),
    "/settings/access": ("user add",),
    "/graphs": ("graph run",),
    "/batches": ("batch run",),
}


def test_an_empty_page_says_the_command_and_a_full_one_what_there_is_of_which_parts_are_the_same(api: Api) -> None:
    with api.browser() as browser:
        empty = {path: page(browser, path) for path in COMMANDS}
        fill(api, system_caller(api.core), MARK)
        pages = {path: page(browser, path) for path in PAGES}
        parts = {path: browser.get(path, headers=PART).text for path in PAGES}
    missing = [(path, each) for path, words in COMMANDS.items() for each in words if f"fleet {each}" not in empty[path]]
    assert missing == []
    assert [path for path, part in parts.items() if "<html" in part or part.strip()[:40] not in pages[path]] == []
    assert [path for path, whole in pages.items() if MARK not in whole and path != "/settings"] == []


def test_a_card_says_why_its_drone_takes_no_orders(api: Api) -> None:
    drone = api.add_drone("mila")
    states: list[tuple[dict[str, object], dict[str, object], str]] = [
        ({}, {"full": "80 MB free in /x"}, "needs care"),
        ({}, {"withheld": "not at night"}, "closed by owner"),
        ({}, {"open_network": "nsenter is not installed"}, "online"),
        ({}, {"draining": True, "leaving": True}, "stopping"),
        ({"draining": True}, {}, "draining"),
        ({"draining": False, "last_seen_at": None}, {}, "not started"),
    ]
    with api.browser() as browser:
        for values, beat, words in states:
            with api.core.database.write() as db:
                db.execute(update(Drone).where(Drone.id == drone.id).values(beat=beat, **values))
            shown = html.unescape(page(browser, "/fleet"))
            assert f">{words}</span>" in shown, words
            assert all(str(why) in shown for why in beat.values() if why is not True), words


def test_a_card_shows_its_sandbox_its_machine_its_pool_and_the_running_order(api: Api) -> None:
    api.add_work()
    drone = api.add_drone("mila", sandbox="none")
    waits = api.submit("Needs a GPU", labels={"gpu": "yes"})
    use = {"cpu_percent": 37.5, "memory_percent": 61.2, "disk_free_mb": 120_345, "disk_mb": 512_000}
    run = drone.take(api.submit("Fix the rounding\nof refunds"))
    request = PoolRequest(name="burst", labels={"cloud": "yes"}, max_drones=7)
    pools.add(api.core, system_caller(api.core), request)
    with api.core.database.write() as db:
        pool = db.scalars(select(Pool.id)).one()
        db.execute(
            update(Drone).where(Drone.id == drone.id).values(beat={"machine": use, "network": "hosts"}, pool_id=pool)
        )
    running = f'<a href="/orders/{run.order_id}">Fix the rounding</a>'
    both = (
        "commands run unconfined",
        "only hosts that its owner lists",
        "CPU 40 %, memory 60 %, 120 GB free",
        running,
        "1 of 1 slot",
    )
    expected = {
        "/fleet": (
            *both,
            f"/actions/move_order?order_id={waits['id']}",
            "burst: it leaves when it has nothing to do",
            '<td class="num">1 of 7</td>',
            "/actions/rotate_pool?name=burst",
        ),
        "/fleet/mila": (*both, "<dt>Pool</dt><dd>burst", "/actions/revoke_drone_keys?name=mila"),
        "/settings/health": ("D-DATABASE",),
    }
    with api.browser() as browser:
        pages = {path: page(browser, path) for path in expected}
        with api.core.database.write() as db:
            db.execute(update(Drone).values(last_seen_at=api.core.clock.now() - timedelta(hours=1)))
        assert re.findall(r"\d+ of \d+ (?:online|slots)", page(browser, "/fleet")) == ["0 of 1 online", "0 of 0 slots"]
        api.client.call(drones.REMOVE, name="mila")
        page(browser, "/fleet/mila", 404)
    missing = {(path, each) for path, words in expected.items() for each in words if each not in pages[path]}
    assert missing == set()


def test_cost_is_shown_for_the_range_of_the_address_and_as_csv_holds_no_formula(api: Api) -> None:
    names = fill(api, system_caller(api.core), MARK).names
    with api.core.database.write() as db:
        db.execute(update(Drone).where(Drone.name == names["drones"]).values(name="=cmd()"))
        db.execute(update(Run).values(cost_usd=None))
    reserve(api.core, names["runs"], 2)
    with api.browser() as browser:
        shown = page(browser, "/cost?range=7&zone=Europe/Berlin")
        # What is reserved, at the end of the row of each dimension, and as a part of its bar.
        rows = dict(re.findall(r'<tr><th scope="row">([^ <]+) (<svg class="share".+?)</tr>', shown, re.DOTALL))
        of_project, of_model = (rows[name] for name in (names["projects"], "openai/scripted"))
        for row in (of_project, of_model):
            assert row.endswith('<td class="num">$2.00</td>')
            assert 'class="reserved" x="0.0" width="100.0"' in row
        assert "Nothing was spent" in page(browser, "/cost?since=2020-01-01&until=2020-01-31")
        assert "is not a day" in page(browser, "/cost?since=yesterday", 422)
        page(browser, "/cost?zone=Nowhere", 422)
        page(browser, "/cost?range=99999999999", 200)
        reserve(api.core, names["runs"], 2, spent=1)
        # Any character may stand before the hour.
        page(browser, "/cost?since=20200101é120000Z")
        # The date of the time itself is another than that of the zone.
        for name, hours, offset, zone in (("since", -1, 14, "Etc/GMT+12"), ("until", 1, -12, "Etc/GMT-14")):
            moment = (api.core.clock.now() + timedelta(hours=hours)).astimezone(timezone(timedelta(hours=offset)))
            given = {name: moment.isoformat(), "zone": zone}
            assert re.findall(r"-\d\d: \$1.00</title>", page(browser, f"/cost?{urlencode(given)}")), given
        page(browser, "/cost?since=0001-01-01T00:00:00Z&zone=America/New_York")
        answer = browser.get("/cost.csv?range=all")
    assert answer.headers["content-type"].startswith("text/csv")
    lines = answer.text.splitlines()
    assert lines[0] == "by,name,id,spent_usd,reserved_usd,runs,unknown_costs"
    assert any(line.startswith("drone,'=cmd()") for line in lines), lines


@pytest.fixture
def work(api: Api) -> Api:
    api.add_work()
    return api


def test_the_address_narrows_and_lengthens_the_list_and_a_wrong_filter_is_named(work: Api) -> None:
    for prompt in (*(f"Order {number}" for number in range(50)), "Fix the parser"):
        submit(work.core, system_caller(work.core), prompt, project="demo")
    with work.browser() as browser:
        narrow = page(browser, "/orders?text=parser&project=demo")
        first, longer = page(browser, "/orders?project=demo"), page(browser, "/orders?project=demo&limit=100")
        wrong = [page(browser, f"/orders?{each}") for each in ("status=x", "project=x", "since=x", "before=zzz")]
    assert ("Fix the parser" in narrow, "Order 1" in narrow) == (True, False)
    chips = [urlsplit(each.replace("&amp;", "&")).query for each in re.findall(r'class="chip" href="([^"]+)"', narrow)]
    assert {tuple(parse_qs(each)) for each in chips} == {("project",), ("text",), ()}
    assert [len(re.findall(r'id="order-\w+"', each)) for each in (first, longer)] == [50, 51]
    more = 'href="/orders?project=demo&amp;limit=100"'
    assert (more in first, "more-rows" in longer) == (True, False)
    assert [('role="alert"' in each, "Fix the parser" in each) for each in wrong] == [(True, False)] * 4


def test_selected_orders_are_acted_on_and_each_refusal_is_named(work: Api) -> None:
    first, second, third = (work.submit(f"Order {number}")["id"] for number in range(3))
    with work.browser() as browser:
        done = browser.post("/actions/cancel_order/each?next=/orders", data={"order": [first, second]})
        partly = browser.post("/actions/retry/each", data={"order": [first, third]})
    assert (done.status_code, done.headers["location"]) == (303, "/orders")
    assert [each["status"] for each in work.client.call(orders.LIST)] == ["queued", "canceled", "queued"]
    assert (partly.status_code, partly.json()["code"]) == (409, "E-ACTION-PARTLY")
    assert third in partly.json()["why"]


def test_a_changed_order_is_not_taken_for_the_one_that_was_sent_and_gets_a_new_key(work: Api) -> None:
    def key_in(page: httpx.Response) -> str:
        return re.findall(r'name="idempotency_key" value="(\w+)"', page.text)[0]

    with work.browser() as browser:
        key = key_in(browser.get("/orders/new", headers=HTML))
        form = {"prompt": "Fix the parser", "project": "demo", "idempotency_key": key}
        assert browser.post("/actions/submit", data=form).status_code == 303
        changed = browser.post("/actions/submit", data={**form, "prompt": "Another"}, headers=HTML)
    assert (changed.status_code, key_in(changed) != key) == (409, True)


def test_a_card_says_since_when_its_drone_is_idle_and_when_its_queue_moves_on(work: Api) -> None:
    """After as long as its orders usually take; unknown of one that already takes longer, and from too few orders."""
    mila, now = work.add_drone("mila"), work.core.clock.now()

    def began(order_id: str, minutes: int, **row: Any) -> None:
        values = {"started_at": now - timedelta(minutes=minutes), **row}
        with work.core.database.write() as db:
            db.execute(update(Order).where(Order.id == order_id).values(values))

    with work.browser() as browser:
        said = [fleet_facts(browser)]
        for minutes in (5, 90, 20):
            run = mila.take(work.submit())
            run.ends()
            began(run.order_id, minutes, ended_at=now)
            said.append(fleet_facts(browser))
        running = mila.take(work.submit())
        began(work.submit()["id"], 0, started_at=None, status="assigned", drone_id=mila.id)
        for minutes in (8, 30):
            began(running.order_id, minutes)
            said.append(fleet_facts(browser))
    idle, at_work = [(True, True, "")] * 3, [(False, False, "11 min"), (False, False, "")]
    assert said == [(True, False, ""), *idle, *at_work]


def fleet_facts(browser: httpx.Client) -> tuple[bool, bool, str]:
    """Whether the drone is idle, whether it says since when, and when the next order of its queue starts."""
    text = page(browser, "/fleet")
    soon = re.search(r"next in about ([\w ]+)", text)
    return ">Idle" in text, "last order ended <time" in text, soon[1] if soon else ""


def test_what_a_page_sends_is_refused_once_another_organization_than_the_pages_was_chosen(work: Api) -> None:
    add_organization(work.core, system_caller(work.core), "payments")
    order = work.submit()["id"]
    sent = {"name": "ida", "role": "operator", "act": "save", "order": order}
    paths = ("/actions/create_join_token", "/actions/create_join_token/command", "/actions/cancel_order/each")
    with work.browser() as browser:
        forms = {path: page(browser, path) for path in (*PAGES, "/orders", "/orders/new", f"/orders/{order}")}
        browser.post("/organization", data={"organization": "payments"})
        now = OF_PAGE.findall(page(browser, "/orders/new"))
        refused = [
            browser.post(path, data={**sent, "page_organization": "default"}, headers={"Accept": accept})
            for path in (*paths, f"/orders/{order}/plan")
            for accept in ("application/json", "text/x-part")
        ]
        project = {"slug": "shop", "git_url": "https://git.example/shop.git", "page_organization": now[0]}
        done = browser.post("/actions/add_project", data=project)
    assert {(each.status_code, each.json()["code"]) for each in refused} == {(409, "E-FORM-ORGANIZATION")}
    assert (set(now), done.status_code) == ({"payments"}, 303)
    assert [path for path, text in forms.items() if len(OF_PAGE.findall(text)) != text.count('method="post"')] == []
    assert {name for text in forms.values() for name in OF_PAGE.findall(text)} == {"default"}


def test_a_page_of_a_chosen_organization_links_to_what_belongs_to_it(api: Api) -> None:
    payments = add_organization(api.core, system_caller(api.core), "payments")
    order = fill(api, payments, MARK).names["orders"]
    with api.browser() as browser:
        browser.post("/organization", data={"organization": "payments"})
        links = set(re.findall(r'href="(/api/v1/[^"]+)"', page(browser, f"/orders/{order}/details")))
        assert (len(links), {browser.get(each).status_code for each in links}) == (2, {200})


def test_a_login_link_shows_its_own_organization_and_a_pasted_token_the_one_that_was_chosen_last(api: Api) -> None:
    add_organization(api.core, system_caller(api.core), "payments")
    link = parse_qs(urlsplit(api.client.call(tokens.CREATE_LOGIN_LINK)["url"]).query)["token"][0]
    shown = {}
    with api.browser() as browser:
        browser.post("/organization", data={"organization": "payments"})
        for kind, secret in {"token": api.token, "link": link}.items():
            browser.post("/login", data={kind: secret, "browser_key": BROWSER_KEY})
            shown[kind] = set(OF_PAGE.findall(page(browser, "/orders/new")))
    assert shown == {"token": {"payments"}, "link": {"default"}}


@pytest.fixture
def filled(api: Api) -> Api:
    """One thing of each kind, with the mark in its name."""
    fill(api, system_caller(api.core), MARK)
    return api


def test_every_kind_is_found_by_a_part_of_its_name_and_signs_of_the_database_mean_themselves(filled: Api) -> None:
    def found(text: str) -> list[str]:
        return [f"{each['kind']}: {each['label']}" for each in browser.get("/search", params={"text": text}).json()]

    kinds = {"Drone", "Project", "Agent", "Task", "Session", "Order", "Model", "Batch"}
    order = filled.submit("Fix the parser, 100%", project=f"{MARK}-project")
    filled.client.call(sessions.EDIT, SessionEdit(name="Old commas"), session_id=order["session"])
    add_organization(filled.core, system_caller(filled.core), "payments")
    with filled.browser() as browser:
        assert {each.partition(":")[0] for each in found(MARK.upper())} == kinds
        assert found("commas") == found("fix commas") == ["Session: Old commas"]
        assert f"Task: DEFA-0001 {MARK}" in found("defa-00")
        assert f"Agent: {MARK}_agent" in found(f"@{MARK}")
        assert [each for each in found("100%") if each.startswith("Order")] == ["Order: Fix the parser, 100%"]
        assert (found("1%0"), f"Agent: {MARK}_agent" in found("_")) == ([], True)
        assert not [each for each in found("_") if each.startswith(("Drone", "Project", "Model"))]
        browser.post("/organization", data={"organization": "payments"})
        assert found(MARK) == []


def test_without_a_text_the_palette_has_what_was_worked_on_last_and_what_the_caller_may_create(filled: Api) -> None:
    def offered(role: str) -> list[tuple[str, str, str]]:
        with filled.browser(token=filled.token_for(role)) as browser:
            found = browser.get("/search").raise_for_status().json()
            forms = [each["href"] for each in found if each["is_form"]]
            assert [each for each in forms if browser.get(each, headers=PART).status_code != 200] == []
        return [(each["kind"], each["label"], each["href"]) for each in found]

    everything = {role: offered(role) for role in ("viewer", "operator", "admin")}
    creates = {role: [label for kind, label, _ in found if kind == "Create"] for role, found in everything.items()}
    assert list(dict.fromkeys(kind for kind, *_ in everything["admin"]))[:3] == ["Session", "Task", "Batch"]
    assert creates["viewer"] == ["Create log-in link"]
    assert {"New order", "New task", "New session", "Submit batch"} <= set(creates["operator"])
    assert {"Add model", "Add project", "Add schedule", "Add a machine", "Add agent"} <= set(creates["admin"])
    assert {"Add model", "Add project"} & set(creates["operator"]) == set()
    settings = {role: [href for kind, _, href in found if kind == "Settings"] for role, found in everything.items()}
    assert [("/settings/audit" in settings[role], "/settings" in settings[role]) for role in settings] == [
        (False, True),
        (False, True),
        (True, True),
    ]


def test_static_files_are_kept_by_browsers_and_have_other_addresses_once_they_change(api: Api) -> None:
    with api.http(None) as browser:
        own = browser.get(asset("css/base.css"))
        earlier = browser.get("/static/000000000000/css/base.css")
        none = browser.get(asset("css/none.css"))
    assert (own.status_code, own.headers["cache-control"]) == (200, FOREVER)
    assert (earlier.text, "immutable" in earlier.headers.get("cache-control", "")) == (own.text, False)
    assert none.status_code == 404


def test_the_application_can_be_added_to_the_home_screen(api: Api) -> None:
    """As iOS needs it for push; the manifest and its icons are read without a log-in."""
    with api.http(None) as browser:
        head = browser.get("/login", headers=HTML)
        [href] = re.findall(r'<link rel="manifest" href="([^"]+)">', head.text)
        [touch] = re.findall(r'<link rel="apple-touch-icon" href="([^"]+)">', head.text)
        manifest = browser.get(href)
        icons = [browser.get(urljoin(href, each["src"])) for each in [{"src": touch}, *manifest.json()["icons"]]]
    assert manifest.headers["content-type"].startswith("application/manifest+json")
    assert (manifest.json()["start_url"], manifest.json()["display"]) == ("/", "standalone")
    assert [each.headers["content-type"] for each in icons] == ["image/png", "image/svg+xml", "image/png"]
    assert "manifest-src 'self'" in head.headers["content-security-policy"]


def test_every_vendored_file_is_the_one_that_the_list_names() -> None:
    listed = json.loads((STATIC / "vendor" / "parts.json").read_text())["files"]
    hashes = {each["file"]: each["sha256"] for each in listed}
    present = {each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in (STATIC / "vendor").glob("*.js")}
    assert hashes == present


def test_every_icon_that_a_template_names_is_in_the_sprite() -> None:
    sprite = set(re.findall(r'<symbol id="([^"]+)"', (STATIC / "icons.svg").read_text()))
    named = {
        name
        for each in (STATIC.parent / "templates").rglob("*.html")
        for name in re.findall(r"icon\(\"([a-z0-9-]+)\"", each.read_text())
    }
    assert (len(named) > 5, named - sprite) == (True, set())


def test_all_styles_together_have_40_kB_at_most() -> None:
    assert sum(each.stat().st_size for each in (STATIC / "css").glob("*.css")) <= 40_000
