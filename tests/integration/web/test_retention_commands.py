"""`fleet retention` in the terminal, the note on an order's page, and what `fleet patch` says of a removed one."""

from __future__ import annotations

import json
import subprocess
from datetime import timedelta

from control_plane.db.orders import Order
from shared.events import Delivered
from tests.support.command_tree import invoke
from tests.support.fleet import Api, PlayedRun


def fleet(api: Api, *words: str) -> subprocess.CompletedProcess[str]:
    return invoke("fleet", *words, env={"FLEET_URL": api.url, "FLEET_API_TOKEN": api.token})


def test_a_dry_run_removes_nothing_and_what_a_run_removed_is_said_in_the_terminal_and_on_the_page(
    api: Api, run: PlayedRun
) -> None:
    work = {"branch": f"fleet/{run.order_id}", "head_commit": "c" * 40, "base_commit": "b" * 40, "pushed": True}
    run.step(Delivered(**work, patch_sha256=api.store_blob(run, b"the patch"), patch_bytes=9))
    run.ends()
    order = run.order_id
    with api.core.database.write() as db:
        db.get_one(Order, order).ended_at = api.core.clock.now() - timedelta(days=200)

    dry = fleet(api, "retention", "run", "--dry-run", "--json")
    assert {"kind": "work", "rows": 1, "bytes": 9} in json.loads(dry.stdout)
    assert fleet(api, "patch", order).stdout == "the patch"
    assert json.loads(fleet(api, "retention", "run", "--json").stdout) == json.loads(dry.stdout)
    gone = fleet(api, "patch", order)
    assert (gone.returncode != 0, f"fleet show {order}" in gone.stderr) == (True, True)
    note = json.loads(fleet(api, "show", order, "--json").stdout)["removed"]
    assert note in fleet(api, "show", order).stdout
    with api.browser() as browser:
        assert note in browser.get(f"/orders/{order}").text
        for panel in ("changes", "log", "details", "checks"):
            assert browser.get(f"/orders/{order}/{panel}").status_code == 200
