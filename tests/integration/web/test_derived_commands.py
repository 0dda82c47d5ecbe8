"""The derived commands at a real server: what they send and print, for projects, money, the audit log and retention."""

from __future__ import annotations

import csv
import io
import json
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import update

from control_plane.contract.declarations import orders, projects
from control_plane.db.audit import AuditRecord
from control_plane.db.orders import Order
from control_plane.db.runs import Run
from control_plane.operations.audit.sealing import seal_head
from shared.events import Delivered
from tests.integration.web.conftest import Fleet
from tests.support.command_tree import invoke
from tests.support.fleet import Api, PlayedRun
from tests.support.spending import reserve, spend, spend_so_far


def completed(line: str, **environment: str) -> set[str]:
    """What a shell is offered at the end of a line."""
    asked = {"_FLEET_COMPLETE": "complete_fish", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    done = invoke("fleet", env={**asked, "_TYPER_COMPLETE_ARGS": line, **environment})
    assert done.stderr == ""
    return {offered.partition("\t")[0] for offered in done.stdout.splitlines()}


def test_a_wrong_token_is_refused_with_its_origin(api: Api, fleet: Fleet, tmp_path: Path) -> None:
    assert "FLEET_API_TOKEN" in fleet("project", "ls", FLEET_API_TOKEN="fa_wrong").stderr
    file = tmp_path / "dronefleet" / "fleet.toml"
    file.parent.mkdir()
    file.write_text(f'url = "{api.url}"\ntoken = "fa_wrong"\n')
    file.chmod(0o600)
    refused = fleet("project", "ls", FLEET_API_TOKEN="", FLEET_URL="", XDG_CONFIG_HOME=str(tmp_path))
    assert (refused.returncode, str(file) in refused.stderr) == (6, True)


def test_what_is_removed_is_asked_for_first(api: Api, fleet: Fleet) -> None:
    api.add_work()
    assert "--yes" in fleet("project", "rm", "demo").stderr
    assert len(api.client.call(projects.LIST)) == 1
    assert fleet("project", "rm", "demo", "--yes").returncode == 0
    assert api.client.call(projects.LIST) == []


def test_the_shell_is_offered_choices_and_names_that_the_server_has(api: Api) -> None:
    api.add_work()
    order = api.submit("Fix the test")["id"]
    here = {"FLEET_URL": api.url, "FLEET_API_TOKEN": api.token}
    assert completed("fleet project edit demo --pull-requests ", **here) == {"never", "ready", "open"}
    assert completed("fleet project show ", **here) == {"demo"}
    # Those of commands that are written by hand, too.
    assert completed(f"fleet approve {order[:4]}", **here) == {order}
    assert completed("fleet task create 'Fix it' --assignee ", **here) == {"user"}
    assert completed("fleet project show ", FLEET_URL="http://127.0.0.1:9") == set()


def test_a_pull_request_is_for_a_task_named_in_any_case_or_for_an_order(fleet: Fleet) -> None:
    for named, code in (("PAYM-0001", "E-TASK-404"), ("paym-0001", "E-TASK-404"), ("0123456789ab", "E-ORDER-404")):
        assert code in fleet("pull-request", named).stderr, named


MODEL = "openrouter/openai/gpt-x"


def test_wrong_money_is_refused_with_what_to_do_and_prices_and_budgets_are_shown(api: Api, fleet: Fleet) -> None:
    api.add_work()
    for words, code, said in (
        ("budget set project demo 0 --per day", 2, "fleet budget rm"),
        ("budget set projet demo 5 --per day", 2, "project?"),
        ("budget set project dmeo 5 --per day", 3, "demo?"),
        ("price set m --input 1", 2, "output"),
        ("cost --csv --json", 2, "--json"),
    ):
        refused = fleet(*words.split())
        assert (refused.returncode, said in refused.stderr) == (code, True), refused.stderr
    assert json.loads(fleet("budget", "ls", "--json").stdout) == []
    made = fleet("price", "set", MODEL, "--input", "$2.5", "--output", "10", "--json")
    assert json.loads(fleet("price", "show", MODEL, "--json").stdout) == json.loads(made.stdout)
    spend(api.core, api.add_drone().take(api.submit()).id, 12.5)
    made = fleet("budget", "set", "project", "demo", "$50", "--per", "total")
    lines = dict(line.split(maxsplit=1) for line in made.stdout.splitlines())
    assert (lines["limit"], lines["spent"], lines["left"]) == ("$50.00", "$12.50 (25 %)", "$37.50")
    fleet("project", "edit", "demo", "--budget", "$20/day")
    _, day, total = fleet("budget", "ls").stdout.splitlines()
    assert (day.split()[:3], total.split()[3]) == (["project", "demo", "day"], "$50.00")


def test_cost_is_a_table_with_a_total_and_exact_in_json_and_in_csv_as_rfc_4180_says(api: Api, fleet: Fleet) -> None:
    api.add_work()
    drone = api.add_drone(concurrency=3)
    ended, active, unknown = (drone.take(api.submit()) for _ in range(3))
    spend(api.core, ended.id, 0.123456789)
    reserve(api.core, active.id, 2)
    spend_so_far(api.core, active.id, 0.5)
    with api.core.database.write() as db:
        db.get_one(Run, unknown.id).cost_usd = None

    shown = fleet("cost", "--by", "project")
    assert [line.split() for line in shown.stdout.splitlines()[1:]] == [
        ["demo", "$0.6235", "$1.5000", "2"],
        ["total", "$0.6235", "$1.5000", "-"],
    ]
    assert "1 run" in shown.stderr
    (document,) = json.loads(fleet("cost", "--json").stdout)
    assert (document["by"], document["spent_usd"], document["reserved_usd"]) == ("day", 0.623456789, 1.5)
    assert list(csv.reader(io.StringIO(fleet("cost", "--csv").stdout))) == [
        ["day", "spent_usd", "reserved_usd", "runs", "unknown_costs"],
        [document["name"], "0.623456789", "1.50", "2", "1"],
    ]


@pytest.fixture
def busy(api: Api) -> Api:
    """A fleet with a few records, signed."""
    api.add_work()
    with api.http() as script:
        script.delete("/api/v1/projects/nothing")
    seal_head(api.core)
    return api


FILTERS = [
    ("--target", "demo", "--outcome", "changed"),
    ("--address", "127.0.0.1", "--until", "2999-01-01T00:00:00Z"),
]


def test_the_chain_is_verified_against_a_kept_head_and_tampering_ends_with_an_exit_code(
    busy: Api, fleet: Fleet
) -> None:
    kept = json.loads(fleet("audit", "head", "--json").stdout)
    verified = fleet("audit", "verify", "--head", f"{kept['seq']}:{kept['hash']}")
    assert (verified.returncode, f"{kept['seq']:,}" in verified.stdout) == (0, True)
    replaced = fleet("audit", "verify", "--head", f"{kept['seq']}:{'0' * 64}")
    assert (replaced.returncode, f"record {kept['seq']}" in replaced.stdout) == (1, True)
    refused = fleet("audit", "verify", "--head", "4711")
    assert (refused.returncode, "NUMBER:HASH" in refused.stderr) == (2, True)
    with busy.core.database.write() as db:
        db.execute(update(AuditRecord).where(AuditRecord.seq == 2).values(target="another"))
    verified = fleet("audit", "verify", "--json")
    assert (verified.returncode, json.loads(verified.stdout)["problem"]) == (1, "changed")


def test_an_export_has_each_record_of_the_list_with_its_hashes_and_needs_an_admin(
    busy: Api, fleet: Fleet, tmp_path: Path
) -> None:
    file = tmp_path / "audit.jsonl"
    exported = fleet("audit", "export", "--everywhere", "--output", str(file))
    *records, end = map(json.loads, file.read_text().splitlines())
    assert exported.returncode == 0, exported.stderr
    assert [each["seq"] for each in records] == list(range(1, len(records) + 1))
    assert [each["previous_hash"] for each in records[1:]] == [each["hash"] for each in records[:-1]]
    assert (end["kind"], end["records"], end["head"]["hash"]) == ("end", len(records), records[-1]["hash"])
    for filters in FILTERS:
        listed = fleet("audit", "ls", "--json", *filters)
        *records, end = map(json.loads, fleet("audit", "export", *filters).stdout.splitlines())
        assert [each["seq"] for each in records] == [each["seq"] for each in json.loads(listed.stdout)][::-1], filters
        assert 0 < end["records"] < 4, filters
    future = fleet("audit", "export", "--since", "2999-01-01T00:00:00Z")
    assert json.loads(future.stdout) == {"kind": "end", "records": 0, "head": None}
    refused = fleet("audit", "export", FLEET_API_TOKEN=busy.token_for("operator"))
    assert (refused.returncode, refused.stdout) == (6, "")


def test_what_the_retention_removed_is_said_everywhere(api: Api, fleet: Fleet, run: PlayedRun) -> None:
    work = {"branch": f"fleet/{run.order_id}", "head_commit": "c" * 40, "base_commit": "b" * 40, "pushed": True}
    run.step(Delivered(**work, patch_sha256=api.store_blob(run, b"the patch"), patch_bytes=9))
    run.ends()
    order = run.order_id
    with api.core.database.write() as db:
        db.get_one(Order, order).ended_at = api.core.clock.now() - timedelta(days=200)

    assert fleet("patch", order).stdout == "the patch"
    assert {"kind": "work", "rows": 1, "bytes": 9} in json.loads(fleet("retention", "run", "--json").stdout)
    gone = fleet("patch", order)
    assert (gone.returncode != 0, f"fleet show {order}" in gone.stderr) == (True, True)
    note = api.client.call(orders.SHOW, order_id=order)["removed"]
    assert note in fleet("show", order).stdout
    with api.browser() as browser:
        assert note in browser.get(f"/orders/{order}").text
        for panel in ("changes", "log", "details", "checks"):
            assert browser.get(f"/orders/{order}/{panel}").status_code == 200
