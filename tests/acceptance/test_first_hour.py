"""What a new user meets first: defaults where there is only one, the newest order, and ids by their beginning."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from drone.model.scripted.server import ScriptedServer
from tests.support.repositories import calc_project
from tests.support.whole_fleet import WholeFleet

pytestmark = pytest.mark.timeout(200)


def test_the_only_project_is_the_default_and_orders_are_named_in_short(
    start_fleet: Callable[..., WholeFleet], model: ScriptedServer, tmp_path: Path
) -> None:
    fleet = start_fleet(drones=0)
    without = fleet.fleet("submit", "Do it")
    assert (without.returncode, "E-PROJECT-NONE" in without.stderr) == (2, True)
    nothing = fleet.fleet("show", "@last")
    assert (nothing.returncode, "E-ORDER-LAST" in nothing.stderr) == (3, True)

    fleet.add_work(model.url, f"file://{calc_project(tmp_path / 'calc.git')}")
    first, second = (fleet.fleet("submit", text).stdout.strip() for text in ("Do it", "Do it again"))
    assert fleet.json("show", "@last")["id"] == second
    assert fleet.json("show", first[:11])["id"] == first
    assert fleet.json("cancel", "@last")["id"] == second
    session = fleet.json("show", first)["session"]
    assert fleet.json("submit", "More", "--session", session[:11])["session"] == session

    listed = fleet.fleet("orders").stdout.splitlines()
    assert [line.split()[0] for line in listed[1:]] == [order["id"] for order in fleet.json("orders")]
    assert "Do it again" in "\n".join(listed)

    fleet.json("project", "add", "other", "--no-check", "--git-url", "https://example.org/x.git")
    several = fleet.fleet("submit", "Do it")
    assert several.returncode == 2
    assert "demo, other" in several.stderr


def test_the_configuration_file_names_the_server(start_fleet: Callable[..., WholeFleet], tmp_path: Path) -> None:
    fleet = start_fleet(drones=0)
    elsewhere = WholeFleet(tmp_path / "elsewhere")
    file = elsewhere.root / "config" / "dronefleet" / "fleet.toml"
    file.parent.mkdir(parents=True)
    file.write_text(f'url = "{fleet.url}"\ntoken = "{fleet.token}"\n')
    file.chmod(0o644)
    refused = elsewhere.fleet("orders")
    assert (refused.returncode, f"chmod 600 {file}" in refused.stderr) == (2, True)
    file.chmod(0o600)
    assert elsewhere.json("orders") == []


def test_the_demo_stays_runs_any_prompt_and_can_be_removed(start_fleet: Callable[..., WholeFleet]) -> None:
    fleet = start_fleet(options=("--no-flower", "--demo"))
    assert "fleet submit 'Fix slug.sh so that sh test.sh passes' --project demo --follow" in fleet.log.read_text()
    assert "not a real model" in fleet.log.read_text()
    first = fleet.fleet("submit", "Fix slug.sh so that sh test.sh passes", "--project", "demo", "--follow")
    assert first.returncode == 0, first.stderr
    assert "checks   passed" in first.stdout
    before = fleet.json("provider", "show", "demo")

    fleet.stop()
    fleet.start()
    assert fleet.json("provider", "show", "demo") == before
    again = fleet.ended(fleet.json("submit", "Anything else")["id"])
    assert (again["status"], again["pushed"]) == ("succeeded", True)

    fleet.stop()
    fleet.options = ("--no-flower",)
    begin = len(fleet.log.read_text())
    fleet.start()
    printed = fleet.log.read_text()[begin:]
    assert "fleet provider add main" in printed
    assert "fleet project rm demo --yes && fleet provider rm demo --yes" in printed
    assert fleet.fleet("project", "rm", "demo", "--yes").returncode == 0
    assert fleet.fleet("provider", "rm", "demo", "--yes").returncode == 0
    assert fleet.json("show", "@last")["status"] == "succeeded"


def test_a_demo_does_not_take_over_what_somebody_else_named_so(start_fleet: Callable[..., WholeFleet]) -> None:
    fleet = start_fleet(drones=0)
    fleet.add_work("http://127.0.0.1:9/v1", "https://example.org/x.git")
    fleet.stop()
    refused = fleet.fleet("up", "--port", "0", "--no-flower", "--drones", "0", "--demo")
    assert refused.returncode == 4
    assert "another project named demo already exists" in refused.stderr
    fleet.start()
    assert fleet.json("project", "show", "demo")["git_url"] == "https://example.org/x.git"
    assert [each["name"] for each in fleet.json("provider", "ls")] == ["scripted"]
