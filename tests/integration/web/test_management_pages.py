"""The pages of inbox, orders, fleet, projects, models, automation, cost and settings over HTTP, and their files."""

from __future__ import annotations

import hashlib
import html
import json
import re
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx
import pytest
from sqlalchemy import select, update

from control_plane.contract.declarations import (
    agents,
    batches,
    drones,
    memory,
    orders,
    organizations,
    providers,
    sessions,
    tasks,
)
from control_plane.contract.declarations.agents import AgentRequest
from control_plane.contract.declarations.batches import BatchRequest, BatchRowRequest
from control_plane.contract.declarations.pools import PoolRequest
from control_plane.contract.declarations.providers import ProviderRequest
from control_plane.contract.declarations.sessions import SessionEdit
from control_plane.contract.declarations.task_documents import TaskRequest
from control_plane.core.lookups.organizations import system_caller
from control_plane.db.access import Pool
from control_plane.db.drones import Drone
from control_plane.db.orders import Order
from control_plane.db.projects import Project, Provider
from control_plane.db.runs import Run
from control_plane.operations.drones import pools
from control_plane.web.assets import FOREVER, STATIC, asset
from shared.events import RememberStep
from tests.support.filled import fill
from tests.support.fleet import Api
from tests.support.organizations import add_organization
from tests.support.spending import reserve
from tests.support.waiting import COMMAND, everything_waits

PAGES = ("/fleet", "/projects", "/models", "/automation", "/cost", "/settings", "/settings/access")
HTML, PART = {"Accept": "text/html"}, {"Accept": "text/x-part"}
MARK = "mark"


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
    for number in range(50):
        work.submit(f"Order {number}")
    work.submit("Fix the parser")
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


def test_a_form_that_is_sent_twice_makes_one_order_and_a_changed_one_gets_a_new_key(work: Api) -> None:
    def key_in(page: httpx.Response) -> str:
        return re.findall(r'name="idempotency_key" value="(\w+)"', page.text)[0]

    with work.browser() as browser:
        key = key_in(browser.get("/orders/new", headers=HTML))
        form = {"prompt": "Fix the parser", "project": "demo", "idempotency_key": key}
        places = {browser.post("/actions/submit", data=form).headers["location"] for _ in range(2)}
        changed = browser.post("/actions/submit", data={**form, "prompt": "Another"}, headers=HTML)
    assert (len(places), len(work.client.call(orders.LIST))) == (1, 1)
    assert (changed.status_code, key_in(changed) != key) == (409, True)


def test_the_inbox_shows_the_whole_command_with_what_can_be_done_and_what_ended_since_the_last_visit(api: Api) -> None:
    waiting, now = everything_waits(api), int(api.core.clock.now().timestamp())
    cookies = {"day away": f"0.{now - 86_400}", "just here": f"{now + 60}.{now}", "nonsense": "x.y", "long": "9" * 80}
    pages = {}
    for name, cookie in cookies.items():
        with api.browser() as browser:
            browser.cookies.set("fleet-visit", cookie)
            pages[name] = page(browser, "/")
    acts = [f'action="/actions/{each}"' for each in ("approve", "deny", "answer_order", "resume", "comment_task")]
    for words in (COMMAND.replace("&", "&amp;"), "<title>(16) Inbox", "While you were away", *acts):
        assert words in pages["day away"], words
    listed = {name: each.count(f'/orders/{waiting.checks.order_id}" data-title') for name, each in pages.items()}
    assert (listed["day away"], listed["just here"]) == (2, 1)
    assert all("Recently finished" in pages[each] for each in ("nonsense", "long"))


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


def test_the_first_page_names_what_failed_its_check_with_what_to_do_and_tests_it_again(api: Api) -> None:
    api.add_work()
    report = {"ok": False, "summary": "Nothing listens at <b>.", "next": "fleet provider edit x --api-base URL"}
    with api.core.database.write() as db:
        failed = {"check_state": "failed", "check_report": {**report, "at": "2026-11-27T00:00:00+00:00"}}
        db.execute(update(Provider).values(failed))
        db.execute(update(Project).values(failed))
        name, slug = db.scalars(select(Provider.name)).one(), db.scalars(select(Project.slug)).one()
    with api.browser() as browser:
        shown = page(browser, "/")
        for what, href, field, heading in (
            (name, "/models", "name", "Model does not work"),
            (slug, "/projects", "slug", "Project does not work"),
        ):
            assert f'href="{href}" data-title="{what}">{what}</a>' in shown, what
            assert f'name="{field}" value="{what}"' in shown, what
            assert heading in shown
        assert "<title>(2) Inbox" in shown
        assert "Nothing listens at &lt;b&gt;." in shown
        assert f"Next: {report['next']}" in shown
        with api.core.database.write() as db:
            db.execute(update(Provider).values(check_state="ok"))
            db.execute(update(Project).values(check_state="unchecked"))
        assert "does not work" not in page(browser, "/")


def test_a_proposed_note_is_kept_in_the_inbox_and_then_stands_with_its_project(work: Api) -> None:
    run = work.add_drone("mila").take(work.submit("Mend it"))
    run.step(RememberStep(text="Use <b>make</b>", why="It is slow otherwise"))
    note = work.client.call(memory.LIST)[0]["id"]
    with work.browser() as browser:
        before = page(browser, "/")
        assert browser.post("/actions/accept_memory", data={"note_id": note}).status_code == 303
        after, listed = page(browser, "/"), page(browser, "/projects")
    assert ("Use &lt;b&gt;make&lt;/b&gt;" in before, note in after) == (True, False)
    assert (f'id="note-{note}"' in listed, "1 kept" in listed, "<b>make" in listed) == (True, True, False)


@pytest.fixture
def parsers(api: Api) -> Api:
    """One thing of each kind that is called after a parser."""
    api.add_work("parser")
    api.client.call(organizations.PAUSE, name="default")
    api.client.call(agents.ADD, AgentRequest(name="parser_agent", instructions="You work."))
    api.client.call(tasks.ADD, TaskRequest(title="Parser of dates", assignee="user"))
    api.add_drone("parser-box")
    api.client.call(providers.ADD, ProviderRequest(name="parser-model", model="openai/scripted"))
    row = BatchRowRequest(id="1", prompt="Parse", project="parser", provider="scripted")
    api.client.call(batches.SUBMIT, BatchRequest(name="parsers", rows=[row]))
    order = api.submit("Fix the Parser, 100%", project="parser")
    api.client.call(sessions.EDIT, SessionEdit(name="Old commas"), session_id=order["session"])
    return api


def test_every_kind_is_found_by_a_part_of_its_name_and_signs_of_the_database_mean_themselves(parsers: Api) -> None:
    def found(text: str) -> list[str]:
        return [f"{each['kind']}: {each['label']}" for each in browser.get("/search", params={"text": text}).json()]

    kinds = {"Drone", "Project", "Agent", "Task", "Session", "Order", "Model", "Batch"}
    add_organization(parsers.core, system_caller(parsers.core), "payments")
    with parsers.browser() as browser:
        assert {each.partition(":")[0] for each in found("PARSER")} == kinds
        assert found("commas") == found("fix commas") == ["Session: Old commas"]
        assert found("defa-00") == ["Task: DEFA-0001 Parser of dates"]
        assert "Agent: parser_agent" in found("@parser")
        assert [each for each in found("100%") if each.startswith("Order")] == ["Order: Fix the Parser, 100%"]
        assert (found("1%0"), found("_")) == ([], ["Agent: parser_agent"])
        browser.post("/organization", data={"organization": "payments"})
        assert found("parser") == []


def test_without_a_text_the_palette_has_what_was_worked_on_last_and_what_the_caller_may_create(parsers: Api) -> None:
    def offered(role: str) -> list[tuple[str, str, str]]:
        with parsers.browser(token=parsers.token_for(role)) as browser:
            found = browser.get("/search").raise_for_status().json()
            forms = [each["href"] for each in found if each["is_form"]]
            assert [each for each in forms if browser.get(each, headers=PART).status_code != 200] == []
        return [(each["kind"], each["label"], each["href"]) for each in found]

    everything = {role: offered(role) for role in ("viewer", "operator", "admin")}
    creates = {role: [label for kind, label, _ in found if kind == "Create"] for role, found in everything.items()}
    assert [kind for kind, *_ in everything["admin"]][:3] == ["Session", "Task", "Batch"]
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
        manifest = browser.get(href)
        icons = [browser.get(urljoin(href, each["src"])) for each in manifest.json()["icons"]]
        [touch] = re.findall(r'<link rel="apple-touch-icon" href="([^"]+)">', head.text)
        icons.append(browser.get(touch))
    assert manifest.headers["content-type"].startswith("application/manifest+json")
    assert {name: manifest.json()[name] for name in ("name", "start_url", "display")} == {
        "name": "Dronefleet",
        "start_url": "/",
        "display": "standalone",
    }
    assert [each.headers["content-type"] for each in icons] == ["image/svg+xml", "image/png", "image/png"]
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
