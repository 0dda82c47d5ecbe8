"""Pull requests and exports with a whole fleet: command line, control plane, drone and a code host (a stand-in)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from drone.model.scripted.server import ScriptedServer
from tests.support import wait_until
from tests.support.code_hosts import CodeHost
from tests.support.git_servers import serving
from tests.support.repositories import CALC, bare_remote, git
from tests.support.whole_fleet import WholeFleet

pytestmark = [pytest.mark.timeout(300), pytest.mark.apart]
FORM = "## Summary\n\n- [ ] I read it\n"


def test_a_project_that_wants_pull_requests_gets_one_for_its_order_and_the_next_takes_its_place(
    start_fleet: Callable[..., WholeFleet], model: ScriptedServer, tmp_path: Path
) -> None:
    remote = bare_remote(tmp_path / "hosted" / "shop" / "calc.git", {**CALC, ".github/pull_request_template.md": FORM})
    with serving(CodeHost(tmp_path / "hosted", login="kim:hunter2")) as host:
        fleet = start_fleet()
        fleet.add_work(model.url, host.url("shop/calc.git", "kim:hunter2"))
        wishes = ("--pull-requests", "open", "--trailer", "Assisted-by", "--trailer", "Fleet-Order")
        fleet.json("project", "edit", "demo", *wishes)
        fleet.online("local-1")

        first = fleet.submit("Mend the sum, script:fix")
        opened = wait_until(lambda: _in_state(fleet, first["id"], "opened"), seconds=120, every=0.3)
        second = fleet.submit("Note it, script:note", "--session", first["session"])
        wait_until(lambda: _in_state(fleet, second["id"], "opened"), seconds=120, every=0.3)
        assert [pull["state"] for pull in host.pulls] == ["closed", "open"]
        again = fleet.json("pull-request", second["id"], "--title", "Another title")
        assert again["pull_request"]["state"] == "asked"
        wait_until(lambda: _in_state(fleet, second["id"], "updated"), seconds=120, every=0.3)

    body = host.pulls[0]["body"]
    assert opened["pull_request"]["url"] == host.pulls[0]["html_url"]
    assert (host.pulls[0]["base"], host.pulls[0]["head"]["ref"]) == ("main", opened["branch"])
    assert body.startswith("## Summary\n\ncalc.add adds now, and its test passes.\n\n- [ ] I read it\n")
    assert body.endswith(f"Assisted-by: openai/scripted via Dronefleet\nFleet-Order: {first['id']}\n")
    assert [pull["title"] for pull in host.pulls] == ["Mend the sum, script:fix", "Another title"]
    assert len(host.comments) == 1
    message = git(remote, "log", "-1", "--format=%B", opened["branch"])
    assert message.endswith(f"Assisted-by: openai/scripted via Dronefleet\nFleet-Order: {first['id']}")
    assert "hunter2" not in fleet.fleet("show", first["id"], "--json").stdout


def test_an_organization_travels_by_the_command_line(
    start_fleet: Callable[..., WholeFleet], model: ScriptedServer, tmp_path: Path
) -> None:
    remote = bare_remote(tmp_path / "calc.git")
    fleet = start_fleet()
    fleet.add_work(model.url, f"file://{remote}")
    fleet.online("local-1")
    order = fleet.ended(fleet.submit("Mend the sum, script:fix")["id"])
    file = tmp_path / "default.jsonl"
    done = fleet.fleet("organization", "export", "default", "--output", str(file))
    assert done.returncode == 0, done.stderr
    made = fleet.json("organization", "import", str(file), "--name", "moved")
    assert (made["name"], made["paused"]) == ("moved", True)
    (moved,) = fleet.json("orders", "--org", "moved")
    assert {key: moved[key] for key in ("status", "branch", "drone", "stats")} == {
        key: order[key] for key in ("status", "branch", "drone", "stats")
    }
    piped = fleet.fleet("organization", "export", "moved").stdout
    assert fleet.json("organization", "import", "-", "--name", "again", text=piped)["totals"] == made["totals"]
    refused = fleet.fleet("organization", "import", "-", "--name", "cut", text=piped[:-200])
    assert refused.returncode == 2
    assert "line " in refused.stderr
    assert fleet.fleet("organization", "show", "cut").returncode == 3


def _in_state(fleet: WholeFleet, order_id: str, state: str) -> dict[str, object] | None:
    order = fleet.order(order_id)
    return order if (order["pull_request"] or {}).get("state") == state else None
