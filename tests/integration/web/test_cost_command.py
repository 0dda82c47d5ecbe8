"""`fleet cost` at a real server: a table with a total, JSON, and CSV for spreadsheets."""

from __future__ import annotations

import csv
import io
import json
import subprocess

import pytest

from control_plane.db.runs import Run
from tests.support.command_tree import invoke
from tests.support.fleet import Api
from tests.support.spending import reserve, spend


def fleet(api: Api, *words: str) -> subprocess.CompletedProcess[str]:
    return invoke("fleet", "cost", *words, env={"FLEET_URL": api.url, "FLEET_API_TOKEN": api.token})


@pytest.fixture
def busy(api: Api) -> Api:
    """A fleet with a run that ended, one that still reserves money, and one of unknown cost."""
    api.add_work()
    drone = api.add_drone(concurrency=3)
    ended, active, unknown = (drone.take(api.submit()) for _ in range(3))
    spend(api.core, ended.id, 0.123456789)
    reserve(api.core, active.id, 2)
    spend(api.core, active.id, 0.5, final=False)
    with api.core.database.write() as db:
        db.get_one(Run, unknown.id).cost_usd = None
    return api


def test_the_table_ends_with_the_total_and_says_what_is_not_included(busy: Api) -> None:
    shown = fleet(busy, "--by", "project")
    assert [line.split() for line in shown.stdout.splitlines()] == [
        ["PROJECT", "SPENT", "RESERVED", "RUNS"],
        ["demo", "$0.6235", "$1.5000", "2"],
        ["total", "$0.6235", "$1.5000", "-"],
    ]
    assert shown.stderr.startswith("not included: 1 run of a model without a known price; set one: fleet price set")


def test_json_is_a_list_with_exact_amounts(busy: Api) -> None:
    (day,) = json.loads(fleet(busy, "--json").stdout)
    assert (day["by"], day["spent_usd"], day["reserved_usd"]) == ("day", 0.623456789, 1.5)
    assert (day["runs"], day["unknown_costs"], day["id"]) == (2, 1, None)


def test_csv_is_as_rfc_4180_says_with_iso_days_and_all_digits(busy: Api) -> None:
    command = fleet(busy, "--csv")
    day = json.loads(fleet(busy, "--json").stdout)[0]["name"]
    rows = list(csv.reader(io.StringIO(command.stdout)))
    assert rows == [
        ["day", "spent_usd", "reserved_usd", "runs", "unknown_costs"],
        [day, "0.623456789", "1.50", "2", "1"],
    ]


def test_what_is_wrong_is_told(busy: Api) -> None:
    for words, said in (
        (("--csv", "--json"), "cannot be used together"),
        (("--by", "hour"), "by: must be 'day', 'project', 'agent', 'model', 'drone', 'user' or 'organization'"),
        (("--zone", "Mars"), "unknown time zone"),
        (("--since", "yesterday"), "is not a day or a time"),
    ):
        refused = fleet(busy, *words)
        assert (refused.returncode, said in refused.stderr) == (2, True), refused.stderr


def test_without_cost_there_is_a_sentence(api: Api) -> None:
    assert fleet(api).stderr == "no cost in this time\n"
    assert json.loads(fleet(api, "--json").stdout) == []
