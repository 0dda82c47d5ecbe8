"""`fleet retention` in the terminal, the note on an order's page, and what `fleet patch` says of a removed one."""

from __future__ import annotations

import json
import subprocess
from datetime import timedelta

import pytest
from sqlalchemy import update

from control_plane.db.orders import Order
from shared.events import Delivered
from tests.support.command_tree import invoke
from tests.support.fleet import Api


def fleet(api: Api, *words: str, token: str = "") -> subprocess.CompletedProcess[str]:
    return invoke("fleet", *words, env={"FLEET_URL": api.url, "FLEET_API_TOKEN": token or api.token})


@pytest.fixture
def old_order(api: Api) -> str:
    """An order that ended 200 days ago, with a pushed patch."""
    api.add_work()
    drone = api.add_drone()
    run = drone.take(api.submit())
    patch = api.store_blob(run, b"the patch")
    work = {"branch": f"fleet/{run.order_id}", "head_commit": "c" * 40, "base_commit": "b" * 40, "pushed": True}
    run.step(Delivered(**work, patch_sha256=patch, patch_bytes=9))
    run.ends()
    order_id = run.order_id
    with api.core.database.write() as db:
        ended = api.core.clock.now() - timedelta(days=200)
        db.execute(update(Order).where(Order.id == order_id).values(ended_at=ended))
    return str(order_id)


def test_the_rules_are_shown_with_what_each_kind_holds(api: Api, old_order: str) -> None:
    shown = fleet(api, "retention", "show")
    assert shown.stdout.splitlines()[0].split() == ["KIND", "KEPT", "ROWS", "BYTES", "OLDEST", "SETTING"]
    (work,) = [line for line in shown.stdout.splitlines() if line.startswith("work")]
    assert work.split()[1:5] == ["180", "days", "1", "9"]
    assert {each["kind"] for each in json.loads(fleet(api, "retention", "show", "--json").stdout)} >= {"logs", "steps"}


def test_a_dry_run_removes_nothing_and_a_run_removes_what_it_said(api: Api, old_order: str) -> None:
    dry = fleet(api, "retention", "run", "--dry-run", "--json")
    assert {"kind": "work", "rows": 1, "bytes": 9} in json.loads(dry.stdout)
    assert fleet(api, "patch", old_order).stdout == "the patch"
    assert json.loads(fleet(api, "retention", "run", "--json").stdout) == json.loads(dry.stdout)
    gone = fleet(api, "patch", old_order)
    assert (gone.returncode != 0, "Traceback" in gone.stderr) == (True, False)
    assert f"the patch of order {old_order} is no longer stored" in gone.stderr
    assert f"fleet show {old_order}" in gone.stderr


def test_an_order_says_what_was_removed_in_the_terminal_and_on_its_page(api: Api, old_order: str) -> None:
    fleet(api, "retention", "run")
    note = "Its patch is no longer stored."
    assert note in fleet(api, "show", old_order).stdout
    assert json.loads(fleet(api, "show", old_order, "--json").stdout)["removed"] == note
    with api.browser() as browser:
        assert note in browser.get(f"/orders/{old_order}", follow_redirects=True).text
        for panel in ("changes", "log", "details", "checks"):
            assert browser.get(f"/orders/{old_order}/{panel}").status_code == 200


def test_only_admins_of_everything_may(api: Api) -> None:
    refused = fleet(api, "retention", "run", token=api.token_for("operator"))
    assert (refused.returncode, "E-ROLE" in refused.stderr) == (6, True)
