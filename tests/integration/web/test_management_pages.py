"""The pages of fleet, projects, models, automation, cost and settings over HTTP."""

from __future__ import annotations

import html

import httpx
import pytest
from sqlalchemy import select, update

from control_plane.db.access import Pool
from control_plane.db.code_hosts import HostEvent, HostLink, HostUser
from control_plane.db.drones import Drone
from control_plane.db.runs import Run
from control_plane.declarations import budgets, drones, organizations, webhooks
from control_plane.declarations.budgets import BudgetRequest
from control_plane.declarations.organizations import OrganizationRequest
from control_plane.declarations.pools import PoolRequest
from control_plane.declarations.webhooks import WebhookRequest
from control_plane.lookups.organizations import system_caller
from control_plane.operations.drones import pools
from control_plane.web.charts import bars_of_days, nice_top
from tests.support.filled import fill
from tests.support.fleet import Api, PlayedRun

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


def test_an_empty_page_says_what_it_is_for_and_the_command(api: Api) -> None:
    with api.browser() as browser:
        pages = {path: page(browser, path) for path in COMMANDS}
    missing = [(path, each) for path, words in COMMANDS.items() for each in words if f"fleet {each}" not in pages[path]]
    assert missing == []


def test_pages_show_what_there_is_and_their_parts_are_the_same(api: Api) -> None:
    fill(api, system_caller(api.core), MARK)
    with api.browser() as browser:
        for path in PAGES:
            whole, part = page(browser, path), browser.get(path, headers=PART).text
            assert "<html" not in part, path
            assert part.strip()[:40] in whole, path
            assert MARK in whole or path == "/settings", path


def test_a_card_says_why_its_drone_takes_no_orders(api: Api) -> None:
    drone = api.add_drone("mila")
    states: list[tuple[dict[str, object], dict[str, object], str]] = [
        ({}, {"full": "80 MB free in /x"}, "needs care"),
        ({}, {"withheld": "not at night"}, "closed by owner"),
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


def test_a_card_shows_its_sandbox_its_machine_and_the_running_order(api: Api) -> None:
    api.add_work()
    drone = api.add_drone("mila", sandbox="none")
    waits = api.submit("Needs a GPU", labels={"gpu": "yes"})
    use = {"cpu_percent": 37.5, "memory_percent": 61.2, "disk_free_mb": 120_345, "disk_mb": 512_000}
    run = drone.take(api.submit("Fix the rounding\nof refunds"))
    with api.core.database.write() as db:
        db.execute(update(Drone).where(Drone.id == drone.id).values(beat={"machine": use}))
    running = f'<a href="/orders/{run.order_id}">Fix the rounding</a>'
    figures = "CPU 40 %, memory 60 %, 120 GB free"
    with api.browser() as browser:
        for path in ("/fleet", "/fleet/mila"):
            shown = page(browser, path)
            for words in ("commands run unconfined", figures, running, "1 of 1 slot"):
                assert words in shown, (path, words)
        assert f"/actions/move_order?order_id={waits['id']}" in page(browser, "/fleet")


def test_cost_is_shown_for_the_range_and_zone_of_the_address(api: Api) -> None:
    fill(api, system_caller(api.core), MARK)
    with api.browser() as browser:
        assert "mark-project" in page(browser, "/cost?range=7&zone=Europe/Berlin")
        assert "Nothing was spent" in page(browser, "/cost?since=2020-01-01&until=2020-01-31")
        assert "is not a day" in page(browser, "/cost?since=yesterday", 422)
        page(browser, "/cost?zone=Nowhere", 422)
        page(browser, "/cost?range=99999999999", 200)


def test_cost_as_csv_holds_no_formula(api: Api) -> None:
    api.add_work()
    run = api.add_drone("mila").take(api.submit())
    with api.core.database.write() as db:
        db.execute(update(Drone).where(Drone.id == run.drone.id).values(name="=cmd()"))
        db.execute(update(Run).values(cost_usd=None))
    with api.browser() as browser:
        answer = browser.get("/cost.csv?range=all")
    assert answer.headers["content-type"].startswith("text/csv")
    lines = answer.text.splitlines()
    assert lines[0] == "by,name,id,spent_usd,reserved_usd,runs,unknown_costs"
    assert any(line.startswith("drone,'=cmd()") for line in lines), lines


def test_a_budget_is_shown_with_what_is_left_and_messages_to_a_webhook_to_be_sent_again(api: Api) -> None:
    api.add_work()
    api.client.call(budgets.SET, BudgetRequest(usd=20, per="day"), kind="project", name="demo")
    api.client.call(webhooks.ADD, WebhookRequest(name="chat", url="https://chat.invalid/x"))
    with api.browser() as browser:
        shown = page(browser, "/cost")
        assert "No messages yet" in page(browser, "/automation/webhooks/chat")
        browser.post("/actions/test_webhook", data={"name": "chat"})
        messages = page(browser, "/automation/webhooks/chat")
    assert ("$0.00 of $20.00" in shown, "$20.00 left" in shown) == (True, True)
    assert ("fleet.test" in messages, "/actions/resend_delivery" in messages) == (True, True)


def test_a_code_host_has_a_page_with_its_users_and_what_happened_there(api: Api) -> None:
    filled = fill(api, system_caller(api.core), MARK)
    name, at = filled.names["code-hosts"], api.core.clock.now()
    with api.core.database.write() as db:
        link = db.scalars(select(HostLink)).one()
        known = {"organization_id": link.organization_id, "link_id": link.id, "created_at": at}
        db.add(HostUser(login="alice", user_id="0" * 12, **known))
        comment = {"kind": "comment", "place": "issues/3", "author": "<b>eve</b>", "outcome": "ignored: it was edited"}
        link.last_error = "the host refused"
        db.add(HostEvent(organization_id=link.organization_id, link_id=link.id, key="comment:1", at=at, **comment))
    with api.browser() as browser:
        shown = page(browser, f"/automation/hosts/{name}")
        browser.post("/actions/unmap_host_user", data={"name": name, "login": "alice"})
        after = page(browser, f"/automation/hosts/{name}")
    for words in ("alice", "not a member", "issues/3", "&lt;b&gt;eve", "gnored: it was edited", "he host refused"):
        assert words in shown, words
    assert "<b>eve" not in shown
    assert "No users yet" in after


def test_the_audit_log_is_filtered_and_paged_by_the_address(api: Api) -> None:
    for number in range(60):
        api.client.call(organizations.ADD, OrganizationRequest(name=f"team_{number}"))
    with api.browser() as browser:
        first = page(browser, "/settings/audit?action=create_organization")
        older = html.unescape(first.rpartition('<a class="button" href="')[2].partition('"')[0])
        second = page(browser, older)
        page(browser, "/settings/audit?since=yesterday", 422)
    assert ("team_59" in first, "team_5 " in first, "team_3<" in second) == (True, False, True)


def test_the_checks_of_the_server_are_on_their_page_and_a_removed_drone_on_none(api: Api) -> None:
    api.add_drone("mila")
    with api.browser() as browser:
        shown = page(browser, "/settings/health")
        api.client.call(drones.REMOVE, name="mila")
        page(browser, "/fleet/mila", 404)
    assert ("D-DATABASE" in shown, "/actions/revoke_drone_keys?name=mila" in shown) == (True, True)


def test_a_chart_has_a_bar_for_each_day_with_cost_and_its_axis_ends_at_a_round_number() -> None:
    chart = bars_of_days([("2026-11-01", 0.0), ("2026-11-02", 1.5), ("2026-11-03", 3.0)])
    assert [round(each.height) for each in chart.bars] == [0, 48, 96]
    assert [label for _, label in chart.lines] == ["$0", "$2.5", "$5"]
    assert [nice_top(each) for each in (0, 1, 1.1, 10, 11)] == [1, 1, 2, 10, 20]
    assert nice_top(0.003) == pytest.approx(0.005)


def test_the_fleet_page_shows_pools_and_which_drones_belong_to_one(run: PlayedRun, api: Api) -> None:
    admin = system_caller(api.core)
    pools.add(api.core, admin, PoolRequest(name="burst", labels={"cloud": "yes"}, max_drones=7))
    with api.core.database.write() as db:
        pool = db.scalars(select(Pool)).one()
        db.execute(update(Drone).values(pool_id=pool.id, last_seen_at=api.core.clock.now()))
    with api.browser() as browser:
        shown = page(browser, "/fleet")
        assert "burst: it leaves when it has nothing to do" in shown
        assert '<td class="num">1 of 7</td>' in shown
        assert "/actions/rotate_pool?name=burst" in shown
        assert "<dt>Pool</dt><dd>burst" in page(browser, "/fleet/mila")
