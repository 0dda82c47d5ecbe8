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


@pytest.mark.parametrize(
    ("path", "command"),
    [
        ("/fleet", "fleet token add"),
        ("/projects", "fleet project add"),
        ("/models", "fleet provider add"),
        ("/automation", "fleet schedule add"),
        ("/automation", "fleet trigger add"),
        ("/automation", "fleet webhook add"),
        ("/automation", "fleet hosts add"),
        ("/cost", "fleet budget set"),
        ("/settings/access", "fleet user add"),
    ],
)
def test_an_empty_page_says_what_it_is_for_and_the_command(api: Api, path: str, command: str) -> None:
    with api.browser() as browser:
        assert command in page(browser, path)


def test_pages_show_what_there_is_and_their_parts_are_the_same(api: Api) -> None:
    fill(api, system_caller(api.core), MARK)
    with api.browser() as browser:
        for path in PAGES:
            whole, part = page(browser, path), browser.get(path, headers=PART).text
            assert "<html" not in part, path
            assert part.strip()[:40] in whole, path
            assert MARK in whole or path == "/settings", path


def test_a_viewer_sees_no_actions(api: Api) -> None:
    fill(api, system_caller(api.core), MARK)
    with api.browser(token=api.token_for("viewer")) as browser:
        own = f"/fleet/{MARK}-drone", f"/automation/webhooks/{MARK}-webhooks", f"/automation/hosts/{MARK}-host"
        for path in (*PAGES, *own):
            actions = page(browser, path).count("/actions/")
            # Everyone may log out their own browsers.
            assert actions == (1 if path == "/settings/access" else 0), path
        page(browser, "/settings/audit", 403)
        page(browser, "/settings/health", 403)


def test_another_organization_sees_nothing_of_it(api: Api) -> None:
    fill(api, system_caller(api.core), MARK)
    api.client.call(organizations.ADD, OrganizationRequest(name="other_team"))
    with api.http() as http:
        made = http.post("/api/v1/api-tokens?org=other_team", json={"role": "admin"}).json()
    with api.browser(token=made["token"]) as browser:
        for path in (*PAGES, "/settings/audit", "/cost.csv"):
            assert f"{MARK}-" not in page(browser, path), path
        page(browser, f"/fleet/{MARK}-drone", 404)
        page(browser, f"/automation/webhooks/{MARK}-webhooks", 404)
        page(browser, f"/automation/hosts/{MARK}-host", 404)


@pytest.mark.parametrize(
    ("values", "beat", "words", "why"),
    [
        ({}, {"full": "80 MB free in /x"}, "needs care", "Its disk is full: 80 MB free in /x"),
        ({}, {"withheld": "not at night"}, "closed by owner", "policy allows no orders now: not at night"),
        ({}, {"draining": True, "leaving": True}, "stopping", "stops when its current runs"),
        ({"draining": True}, {}, "draining", "takes no new orders"),
        ({"last_seen_at": None}, {}, "not started", "was never started"),
    ],
)
def test_a_card_says_why_its_drone_takes_no_orders(
    api: Api, values: dict[str, object], beat: dict[str, object], words: str, why: str
) -> None:
    drone = api.add_drone("mila")
    with api.core.database.write() as db:
        db.execute(update(Drone).where(Drone.id == drone.id).values(beat=beat, **values))
    with api.browser() as browser:
        shown = html.unescape(page(browser, "/fleet"))
    assert (f">{words}</span>" in shown, why in shown) == (True, True)


def test_a_drone_without_a_sandbox_is_shown_as_unconfined(api: Api) -> None:
    api.add_drone("mila", sandbox="none")
    with api.browser() as browser:
        for path in ("/fleet", "/fleet/mila"):
            assert "commands run unconfined" in page(browser, path), path


def test_a_card_shows_how_busy_its_machine_is_in_steps(api: Api) -> None:
    drone = api.add_drone("mila")
    use = {"cpu_percent": 37.5, "memory_percent": 61.2, "disk_free_mb": 120_345, "disk_mb": 512_000}
    with api.core.database.write() as db:
        db.execute(update(Drone).where(Drone.id == drone.id).values(beat={"machine": use}))
    with api.browser() as browser:
        for path in ("/fleet", "/fleet/mila"):
            assert "CPU 40 %, memory 60 %, 120 GB free" in page(browser, path), path


def test_a_card_shows_the_running_order_by_title_and_the_queue(api: Api) -> None:
    api.add_work()
    drone = api.add_drone("mila")
    run = drone.take(api.submit("Fix the rounding\nof refunds"))
    with api.browser() as browser:
        for path in ("/fleet", "/fleet/mila"):
            shown = page(browser, path)
            assert f'<a href="/orders/{run.order_id}">Fix the rounding</a>' in shown
            assert "1 of 1 slot" in shown


def test_an_order_that_waits_is_shown_with_its_reason(api: Api) -> None:
    api.add_work()
    order = api.submit("Needs a GPU", labels={"gpu": "yes"})
    with api.browser() as browser:
        shown = page(browser, "/fleet")
    assert ("Waiting for a drone" in shown, "Needs a GPU" in shown) == (True, True)
    assert f"/actions/move_order?order_id={order['id']}" in shown


def test_the_dialog_waits_until_the_machine_has_joined(api: Api) -> None:
    with api.browser() as browser:
        made = browser.post("/actions/create_join_token", data={"uses": "1"}, headers=PART).text
        address = made.partition('data-part="')[2].partition('"')[0]
        token = made.partition("DRONE_TOKEN=")[2].partition(" ")[0]
        assert "waiting" in browser.get(address, headers=PART).text
        api.add_drone("newcomer", join_token=token)
        joined = browser.get(address, headers=PART).text
    assert ("joined" in joined, "/fleet/newcomer" in joined) == (True, True)


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


def test_a_budget_is_shown_with_what_is_left(api: Api) -> None:
    api.add_work()
    api.client.call(budgets.SET, BudgetRequest(usd=20, per="day"), kind="project", name="demo")
    with api.browser() as browser:
        shown = page(browser, "/cost")
    assert ("$0.00 of $20.00" in shown, "$20.00 left" in shown) == (True, True)


def test_messages_to_a_webhook_can_be_read_and_sent_again(api: Api) -> None:
    api.client.call(webhooks.ADD, WebhookRequest(name="chat", url="https://chat.invalid/x"))
    with api.browser() as browser:
        assert "No messages yet" in page(browser, "/automation/webhooks/chat")
        browser.post("/actions/test_webhook", data={"name": "chat"})
        shown = page(browser, "/automation/webhooks/chat")
    assert ("fleet.test" in shown, "/actions/resend_delivery" in shown) == (True, True)


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
        assert ("team_59" in first, "team_5 " in first, "team_3<" in second) == (True, False, True)
        assert "Newest" in second
        assert "No records match" in page(browser, "/settings/audit?action=nothing")
        assert "since" in page(browser, "/settings/audit?since=yesterday", 422)


def test_the_checks_of_the_server_are_on_their_page(api: Api) -> None:
    api.add_drone("mila")
    with api.browser() as browser:
        shown = page(browser, "/settings/health")
    assert ("D-DATABASE" in shown, "/actions/revoke_drone_keys?name=mila" in shown) == (True, True)


def test_a_drone_that_was_removed_is_not_found(api: Api) -> None:
    api.add_drone("mila")
    api.client.call(drones.REMOVE, name="mila")
    with api.browser() as browser:
        page(browser, "/fleet/mila", 404)


def test_a_chart_has_a_bar_for_each_day_with_cost() -> None:
    chart = bars_of_days([("2026-11-01", 0.0), ("2026-11-02", 1.5), ("2026-11-03", 3.0)])
    assert [round(each.height) for each in chart.bars] == [0, 48, 96]
    assert [label for _, label in chart.lines] == ["$0", "$2.5", "$5"]


@pytest.mark.parametrize(("value", "top"), [(0, 1), (0.003, 0.005), (1, 1), (1.1, 2), (7, 10), (10, 10), (11, 20)])
def test_an_axis_ends_at_a_round_number(value: float, top: float) -> None:
    assert nice_top(value) == pytest.approx(top)


def test_a_page_of_a_running_fleet_is_small(run: PlayedRun, api: Api) -> None:
    with api.browser() as browser:
        assert all(len(page(browser, path)) < 60_000 for path in PAGES)
    assert run.order_id


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
